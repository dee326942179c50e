// Must not compile: a bare number is no power.
#include "sim/core/units.h"

int main() {
  const medley::Watts good(700.0);
#ifdef MEDLEY_EXPECT_FAILURE
  const medley::Watts bad = 700.0;
  (void)bad;
#endif
  return good > medley::Watts(0) ? 0 : 1;
}
