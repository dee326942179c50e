#include "sim/runtime/failures.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>

namespace medley {

FailureTimeline::FailureTimeline(const FailureSpec& spec, std::uint64_t seed,
                                 const std::vector<FailingPart>& served) {
  for (const FailureSpec::Event& e : spec.events) add_event(e);
  for (const FailingPart& part : served) {
    if (spec.of(part.kind).mtbf) add_process(spec.of(part.kind), seed, part);
  }
  for (const FailingPart& cable : spec.cables) {
    add_process(spec.of(FailingKind::kLink), seed, cable);
  }
}

std::uint32_t FailureTimeline::part_of(const FailingPart& part) {
  const auto [at, fresh] =
      index_.try_emplace({part.kind, part.name}, static_cast<std::uint32_t>(parts_.size()));
  if (fresh) parts_.push_back(part);
  return at->second;
}

/// What lies beyond the reach of the clock never happens.
void FailureTimeline::push(SimTime from, double span_s, std::uint32_t source) {
  constexpr double kLongestRun = 9e9;
  if (from.seconds().value() + span_s > kLongestRun) return;
  heap_.push_back({SimTime::after(from, Seconds(span_s)), source});
  std::push_heap(heap_.begin(), heap_.end(), std::greater<>());
}

void FailureTimeline::add_event(const FailureSpec::Event& event) {
  Source s;
  s.part = part_of(event.part);
  s.for_good = !event.lasts;
  if (event.lasts) s.lasts = *event.lasts;
  sources_.push_back(std::move(s));
  push(event.at, 0.0, static_cast<std::uint32_t>(sources_.size() - 1));
}

void FailureTimeline::add_process(const FailureSpec::Random& law, std::uint64_t seed,
                                  const FailingPart& part) {
  Source s;
  s.part = part_of(part);
  s.random = true;
  s.law = law;
  s.scale = law.mtbf->value() / std::tgamma(1.0 + 1.0 / law.shape);
  s.rng = Rng(seed, "failures/" + std::string(to_string(part.kind)) + "/" + part.name);
  const double first = s.rng.weibull(law.shape, s.scale);
  sources_.push_back(std::move(s));
  push(SimTime(), first, static_cast<std::uint32_t>(sources_.size() - 1));
}

void FailureTimeline::pop(SimTime now, std::vector<Change>& out) {
  while (next() <= now) {
    std::pop_heap(heap_.begin(), heap_.end(), std::greater<>());
    const Due due = heap_.back();
    heap_.pop_back();
    Source& s = sources_[due.source];
    s.down = !s.down;
    out.push_back({s.part, s.down, s.for_good});
    if (s.random) {
      push(due.time,
           s.down ? s.rng.exponential(s.law.mttr.value()) : s.rng.weibull(s.law.shape, s.scale),
           due.source);
    } else if (s.down && !s.for_good) {
      push(due.time, s.lasts.value(), due.source);
    }
  }
}

SimTime FailureControl::next() const {
  SimTime first = timeline.next();
  for (const UnitHealth& h : health) first = std::min(first, h.ready);
  return first;
}

}  // namespace medley
