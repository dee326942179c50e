#include <algorithm>

#include "sim/core/error.h"
#include "workloads/generator.h"
#include "workloads/trace_reader.h"
#include "workloads/trace_transform.h"
#include "workloads/workload_spec.h"

namespace medley {

namespace {
/// Cumulative weights; index of a draw.
template <class T>
class Choice {
 public:
  explicit Choice(const std::vector<std::pair<T, double>>& weights) {
    for (const auto& [value, weight] : weights) upto_.push_back(sum_ += weight);
  }
  std::size_t draw(Rng& rng) const {
    if (upto_.size() == 1) return 0;
    const double x = rng.uniform() * sum_;
    const auto it = std::upper_bound(upto_.begin(), upto_.end(), x);
    return std::min(static_cast<std::size_t>(it - upto_.begin()), upto_.size() - 1);
  }

 private:
  double sum_ = 0.0;
  std::vector<double> upto_;
};

/// Calls `set(request, index)` with one draw per request; all turns of a session share theirs.
template <class T, class Set>
void assign(Trace& trace, const std::vector<std::pair<T, double>>& weights, Rng rng, Set set) {
  const Choice<T> choice(weights);
  constexpr std::size_t kUndrawn = ~std::size_t{0};
  std::vector<std::size_t> of_session(trace.sessions.size(), kUndrawn);
  for (Request& r : trace.requests) {
    if (r.session == Request::kNone) {
      set(r, choice.draw(rng));
      continue;
    }
    std::size_t& drawn = of_session[r.session];
    if (drawn == kUndrawn) drawn = choice.draw(rng);
    set(r, drawn);
  }
}

void assign_names(Trace& trace, std::vector<std::string>& names, std::uint16_t Request::*field,
                  const Shares& shares, Rng rng) {
  if (!shares.weights.empty()) {
    names.clear();
    for (const auto& share : shares.weights) names.push_back(share.first);
    assign(trace, shares.weights, rng,
           [&](Request& r, std::size_t i) { r.*field = static_cast<std::uint16_t>(i); });
    return;
  }
  for (std::string& name : names) {
    for (const auto& [from, to] : shares.renames) {
      if (name != from) continue;
      name = to;
      break;
    }
  }
}

/// Renaming may give two entries one name; superposing numbers them through again. Here for one
/// source.
void unite_names(Trace& trace, std::vector<std::string>& names, std::uint16_t Request::*field) {
  std::vector<std::string> distinct;
  std::vector<std::uint16_t> to;
  for (const std::string& name : names) {
    const auto it = std::find(distinct.begin(), distinct.end(), name);
    to.push_back(static_cast<std::uint16_t>(it - distinct.begin()));
    if (it == distinct.end()) distinct.push_back(name);
  }
  if (distinct.size() == names.size()) return;
  names = std::move(distinct);
  for (Request& r : trace.requests) r.*field = to[r.*field];
}

Trace build_source(const SourceSpec& source, std::uint64_t seed) {
  Trace trace = source.trace ? read_trace(*source.trace)
                             : generate_trace(source.generate.value(), source.name, seed);
  if (source.arrivals) replace_arrivals(trace, *source.arrivals, source.name, seed);
  const auto stream = [&](const char* purpose) { return Rng(seed, source.name + purpose); };
  assign_names(trace, trace.models, &Request::model, source.model, stream("/model"));
  assign_names(trace, trace.classes, &Request::slo_class, source.slo_class, stream("/class"));
  assign_names(trace, trace.tenants, &Request::tenant, source.tenant, stream("/tenant"));
  unite_names(trace, trace.models, &Request::model);
  unite_names(trace, trace.classes, &Request::slo_class);
  unite_names(trace, trace.tenants, &Request::tenant);
  if (!source.priority.empty()) {
    assign(trace, source.priority, stream("/priority"),
           [&](Request& r, std::size_t i) { r.priority = source.priority[i].first; });
  }
  transform_trace(trace, source.transform, source.name, seed);
  return trace;
}
}  // namespace

Trace build_trace(const WorkloadSpec& spec, std::uint64_t seed) {
  std::vector<Trace> traces;
  for (const SourceSpec& source : spec.sources) {
    try {
      traces.push_back(build_source(source, seed));
    } catch (const InputError& error) {
      std::vector<Problem> problems = error.problems();
      for (Problem& p : problems) {
        if (!p.file.empty()) continue;
        p.file = spec.file;
        p.pointer = source.pointer;
      }
      throw InputError(std::move(problems));
    }
  }
  return superpose(std::move(traces));
}

}  // namespace medley
