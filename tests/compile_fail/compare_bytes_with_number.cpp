// Must not compile: comparing a quantity with a bare number hides the unit.
#include "sim/core/units.h"

int main() {
  const bool good = medley::Bytes(1) < medley::Bytes(2);
#ifdef MEDLEY_EXPECT_FAILURE
  const bool bad = medley::Bytes(1) < 2.0;
  (void)bad;
#endif
  return good ? 0 : 1;
}
