#include "sim/scenario/read.h"

namespace medley {

ContentionSpec read_contention(ResolvingReader& root) {
  ContentionSpec spec;
  ResolvingReader at = root.object_or_empty("contention");
  spec.steps = at.choice_or("steps", {"shared", "alone"}, "shared") == "shared";
  spec.layered = at.choice_or("fidelity", {"folded", "layered"}, "folded") == "layered";
  at.finish();
  return spec;
}

SharingSpec read_sharing(ResolvingReader& pool) {
  SharingSpec spec;
  if (!pool.has("sharing")) {
    pool.in().raw("sharing");
    return spec;
  }
  ResolvingReader at = pool.object_or_empty("sharing");
  const std::string mode =
      at.choice_or("mode", {"exclusive", "time_slice", "mps", "mig"}, "exclusive");
  spec.mode = mode == "time_slice" ? SharingSpec::Mode::kTimeSlice
              : mode == "mps"      ? SharingSpec::Mode::kMps
              : mode == "mig"      ? SharingSpec::Mode::kMig
                                   : SharingSpec::Mode::kExclusive;
  spec.fraction = at.number_or("fraction", 1.0, Range{Range::positive().min, 1.0});
  if (spec.mode == SharingSpec::Mode::kExclusive && spec.fraction < 1.0) {
    at.problem("fraction", "an exclusive device has nothing to share",
               "choose a mode: time_slice, mps or mig");
  }
  at.finish();
  return spec;
}

}  // namespace medley
