#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "sim/core/rng.h"
#include "tests/support/models.h"

using namespace medley;

namespace {
using Form = LinearForm StepOp::*;
constexpr Form kForms[] = {&StepOp::flops, &StepOp::weight_bytes, &StepOp::kv_bytes,
                           &StepOp::activation_bytes, &StepOp::message_bytes};

struct Plan {
  int tp;
  int pp;
  bool ep;
};
constexpr Plan kPlans[] = {{1, 1, false}, {2, 1, false}, {8, 1, false}, {8, 1, true},
                           {2, 2, false}, {1, 3, false}, {4, 4, true}};

std::vector<ModelSpec> servable_models() {
  std::vector<ModelSpec> models = ModelZoo({zoo_directory()}).all();
  std::erase_if(models, [](const ModelSpec& m) { return !plan_problem(m, 1, 1, false).empty(); });
  return models;
}

Features random_batch(const ModelSpec& m, Rng& rng) {
  FeatureBuilder builder(feature_context(m));
  const auto below = [&](std::uint64_t n) { return static_cast<std::int64_t>(rng.below(n)); };
  for (std::int64_t i = below(4); i > 0; --i)
    builder.add_chunk({1 + below(3000), below(20000), true});
  for (std::int64_t i = 1 + below(40); i > 0; --i) builder.add_decode(1 + below(30000));
  return builder.features();
}
}  // namespace

TEST_CASE("every coefficient of every zoo model and plan is finite and not negative") {
  const std::vector<Precision> formats = {
      {}, {DType::kFp8, DType::kFp8, DType::kFp8}, {DType::kInt4, DType::kBf16, DType::kBf16}};
  for (const ModelSpec& m : servable_models()) {
    for (const Plan& plan : kPlans) {
      if (!plan_problem(m, plan.tp, plan.pp, plan.ep).empty()) continue;
      for (const Precision& precision : formats) {
        for (const StepOp& op : lower_step(m, precision, plan.tp, plan.pp, plan.pp - 1, plan.ep)) {
          INFO(m.name << " " << op.name);
          CHECK(op.repeats > 0);
          bool good = true;
          double sum = 0.0;
          for (const Form form : kForms) {
            for (const double c : (op.*form).coefficient) {
              good = good && std::isfinite(c) && c >= 0.0;
              sum += c;
            }
          }
          CHECK(good);
          CHECK(sum > 0.0);
        }
      }
    }
  }
}

TEST_CASE("a step that hits every expert reads exactly the weights that a rank holds") {
  for (const ModelSpec& m : servable_models()) {
    for (const Plan& plan : kPlans) {
      if (!plan_problem(m, plan.tp, plan.pp, plan.ep).empty()) continue;
      for (const DType weights : {DType::kBf16, DType::kFp8, DType::kFp4}) {
        for (int stage = 0; stage < plan.pp; ++stage) {
          INFO(m.name << " tp " << plan.tp << " pp " << plan.pp << " stage " << stage);
          Features x{};
          at(x, Feature::kOne) = 1.0;
          at(x, Feature::kHasDecodes) = 1.0;
          at(x, Feature::kExpertsHit) = m.experts();
          const double read = total(lower_step(m, {weights, DType::kBf16, DType::kBf16}, plan.tp,
                                               plan.pp, stage, plan.ep),
                                    &StepOp::weight_bytes, x);
          const double held = stage_weight_bytes(m, plan.tp, plan.pp, stage, weights).value();
          // The embedding table is read by row; a tied head on the same rank reads it whole.
          const double element = bytes_of(weight_dtype(m, WeightPart::kEmbedding, weights));
          const double table = static_cast<double>(m.vocab) * m.hidden / plan.tp * element;
          const bool tied_here = m.tied_embeddings && plan.pp == 1 && m.family == "decoder";
          const double unread =
              stage == 0 ? (tied_here ? 0.0 : table) + m.other_parameters * element : 0.0;
          CHECK(near(read + unread, held, 1e-9));
        }
      }
    }
  }
}

TEST_CASE("stages and ranks partition the whole") {
  for (const ModelSpec& m : servable_models()) {
    INFO(m.name);
    Rng rng(7, m.name);
    const Features x = random_batch(m, rng);
    const std::vector<StepOp> whole = lower_step(m, {}, 1, 1, 0, false);
    const int pp = std::min(3, m.total_layers());
    for (const Form form :
         {&StepOp::flops, &StepOp::weight_bytes, &StepOp::kv_bytes, &StepOp::activation_bytes}) {
      double stages = 0.0;
      for (int s = 0; s < pp; ++s) stages += total(lower_step(m, {}, 1, pp, s, false), form, x);
      CHECK(near(stages, total(whole, form, x), 1e-9));
    }
    double kv = 0.0;
    double state = 0.0;
    for (int s = 0; s < pp; ++s) {
      kv += kv_bytes_per_token(m, 1, pp, s, DType::kBf16);
      state += state_bytes_per_sequence(m, 1, pp, s);
    }
    CHECK(near(kv, kv_bytes_per_token(m, 1, 1, 0, DType::kBf16)));
    CHECK(near(state, state_bytes_per_sequence(m, 1, 1, 0)));
    if (plan_problem(m, 2, 1, false).empty()) {
      const double rank = matrix_flops(lower_step(m, {}, 2, 1, 0, false), x);
      const double all = matrix_flops(whole, x);
      CHECK(rank < all);
      CHECK(2.0 * rank >= all * (1.0 - 1e-12));  // what is replicated counts twice
      const double half = weight_bytes(m, 2, 1, DType::kBf16).value();
      const double full = weight_bytes(m, 1, 1, DType::kBf16).value();
      CHECK(half < full);
      CHECK(2.0 * half >= full * (1.0 - 1e-12));
    }
  }
}

TEST_CASE("more of anything never costs less") {
  for (const ModelSpec& m : servable_models()) {
    INFO(m.name);
    Rng rng(11, m.name);
    const std::vector<StepOp> ops = lower_step(m, {}, 1, 1, 0, false);
    for (int round = 0; round < 10; ++round) {
      const auto below = [&](std::uint64_t n) { return static_cast<std::int64_t>(rng.below(n)); };
      const std::int64_t tokens = 1 + below(4000);
      const std::int64_t prior = below(20000);
      const std::int64_t length = 1 + below(30000);
      const FeatureContext context = feature_context(m);
      const Features base = make_features(context, {{tokens, prior, true}}, {length});
      for (const Features& more : {make_features(context, {{tokens + 1, prior, true}}, {length}),
                                   make_features(context, {{tokens, prior + 1, true}}, {length}),
                                   make_features(context, {{tokens, prior, true}}, {length + 1}),
                                   make_features(context, {{tokens, prior, true}}, {length, 1})}) {
        for (std::size_t f = 0; f < more.size(); ++f) CHECK(more[f] >= base[f]);
        for (const Form form : kForms) CHECK(total(ops, form, more) >= total(ops, form, base));
      }
    }
  }
}

TEST_CASE("KV for a context never exceeds full growth and never shrinks") {
  for (const ModelSpec& m : servable_models()) {
    INFO(m.name);
    const double per_token = kv_bytes_per_token(m, 1, 1, 0, DType::kBf16);
    double last = 0.0;
    for (const std::int64_t tokens : {0, 1, 100, 127, 128, 129, 4096, 5000, 100'000}) {
      const double held = kv_bytes_for_context(m, 1, 1, 0, DType::kBf16, tokens);
      CHECK(held <= per_token * static_cast<double>(tokens));
      CHECK(held >= last);
      last = held;
    }
  }
}
