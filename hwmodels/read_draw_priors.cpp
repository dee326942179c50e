#include <nlohmann/json.hpp>

#include "hwmodels/draw.h"
#include "hwmodels/read.h"

namespace medley {

/// {"parameters": {"efficiency": {"measured": 0.05, ..., "reason": "..."}, ...},
///  "model_error": {"tables": {"value": 0.02, "reason": "..."}, ...}}
DrawPriors read_draw_priors(ObjectReader& reader) {
  constexpr double kMost = 2.0;  // of the logarithm: a factor of 7
  DrawPriors priors;
  ObjectReader parameters = reader.object("parameters");
  for (int k = 0; k < kDrawKinds; ++k) {
    const auto at = static_cast<std::size_t>(k);
    ObjectReader entry = parameters.object(to_string(static_cast<DrawKind>(k)));
    for (int c = 0; c < kProvenanceClasses; ++c) {
      priors.sigma[at][static_cast<std::size_t>(c)] =
          entry.number(to_string(static_cast<Provenance>(c)), Range{0.0, kMost});
    }
    priors.reason[at] = entry.text("reason");
    entry.finish();
  }
  parameters.finish();
  ObjectReader model = reader.object("model_error");
  for (int b = 0; b < kModelBases; ++b) {
    const auto at = static_cast<std::size_t>(b);
    ObjectReader entry = model.object(to_string(static_cast<ModelBasis>(b)));
    priors.model_error[at] = entry.number("value", Range{0.0, kMost});
    priors.model_reason[at] = entry.text("reason");
    entry.finish();
  }
  model.finish();
  reader.finish();
  return priors;
}

}  // namespace medley
