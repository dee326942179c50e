// Must not compile: quantities of different dimension do not add.
#include "sim/core/units.h"

int main() {
  const medley::Seconds good = medley::Seconds(1) + medley::Seconds(2);
#ifdef MEDLEY_EXPECT_FAILURE
  const auto bad = medley::Seconds(1) + medley::Bytes(2);
  (void)bad;
#endif
  return good > medley::Seconds(0) ? 0 : 1;
}
