#include <algorithm>

#include "sim/cost/step_model.h"
#include "sim/cost/step_model_impl.h"

namespace medley {

double StepModel::Impl::tables_decode_s(double decodes, double mean_kv, double max_kv) const {
  const int layers = input.model.total_layers();
  double attention = tables->attention_s(0.0, 0.0, decodes, mean_kv);
  if (alpha != 0.0)
    attention += alpha * (tables->attention_s(0.0, 0.0, decodes, max_kv) - attention);
  return input.spec.time_factor *
         (tables->dense_s(decodes, layers) + layers * attention + tables->per_sequence_s(decodes));
}

double StepModel::Impl::table_time(const Features& x, double max_kv) const {
  const double decodes = at(x, Feature::kDecodes);
  const double chunk = at(x, Feature::kChunkTokens);
  const double chunks = at(x, Feature::kSequences) - decodes;
  const double prior = at(x, Feature::kChunkContext) - chunk;
  const double mean = decodes > 0 ? at(x, Feature::kDecodeContext) / decodes : 0.0;
  const int layers = input.model.total_layers();
  double attention = tables->attention_s(chunk, chunks > 0 ? prior : 0.0, decodes, mean);
  if (alpha != 0.0 && decodes > 0) {
    const double longest = tables->attention_s(chunk, chunks > 0 ? prior : 0.0, decodes, max_kv);
    attention += alpha * (longest - attention);
  }
  return input.spec.time_factor *
         (tables->dense_s(at(x, Feature::kTokens), layers) + layers * attention +
          tables->per_sequence_s(at(x, Feature::kLogits)));
}

double StepModel::Impl::table_time_outside(const Features& x, double max_kv) const {
  const double decodes = at(x, Feature::kDecodes);
  const double chunk = at(x, Feature::kChunkTokens);
  const double prior =
      at(x, Feature::kSequences) > decodes ? at(x, Feature::kChunkContext) - chunk : 0.0;
  const double kv =
      decodes > 0 ? (alpha != 0.0 ? max_kv : at(x, Feature::kDecodeContext) / decodes) : 0.0;
  const int layers = input.model.total_layers();
  double outside = 0.0;
  if (!tables->dense_inside(at(x, Feature::kTokens)))
    outside += tables->dense_s(at(x, Feature::kTokens), layers);
  if (!tables->attention_inside(chunk, prior, decodes, kv))
    outside += layers * tables->attention_s(chunk, prior, decodes, kv);
  if (!tables->per_sequence_inside(at(x, Feature::kLogits)))
    outside += tables->per_sequence_s(at(x, Feature::kLogits));
  return input.spec.time_factor * outside;
}

double StepModel::Impl::constant_time(const Features& x) const {
  const StepModelSpec& s = input.spec;
  return s.time_factor *
         (s.per_step.value() + s.per_prompt_token.value() * at(x, Feature::kChunkTokens) +
          s.per_sequence.value() * at(x, Feature::kSequences));
}

}  // namespace medley
