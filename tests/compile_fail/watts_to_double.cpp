// Must not compile: a quantity leaves the type system through value() only.
#include "sim/core/units.h"

int main() {
  const double good = medley::Watts(700.0).value();
#ifdef MEDLEY_EXPECT_FAILURE
  const double bad = medley::Watts(700.0);
  (void)bad;
#endif
  return good > 0.0 ? 0 : 1;
}
