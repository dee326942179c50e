#include "workloads/trace_transform.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sim/core/error.h"
#include "workloads/trace_link.h"
#include "workloads/trace_rows.h"

namespace medley {

namespace {
constexpr std::uint32_t kNone = Request::kNone;

bool is_open(const Request& r) {
  return r.arrival != SimTime::max();
}

std::size_t open_count(const Trace& trace) {
  const auto it = std::partition_point(trace.requests.begin(), trace.requests.end(), is_open);
  return static_cast<std::size_t>(it - trace.requests.begin());
}

/// Applies `f` (int64 ns -> int64 ns) to every arrival on the clock.
template <class F>
void map_times(Trace& trace, F f) {
  for (Request& r : trace.requests) {
    if (is_open(r)) r.arrival = SimTime::from_ns(f(r.arrival.ns()));
  }
}

std::int64_t to_ns(double x, const std::string& source) {
  constexpr double kMost = 9.2e18;
  if (!(std::abs(x) < kMost)) {
    throw InputError("", "",
                     fmt::format("source {}: a time leaves the 292 years we can count", source));
  }
  return std::llrint(x);
}

class Transformer {
 public:
  Transformer(Trace& trace, const TransformSpec& spec, const std::string& source,
              std::uint64_t seed)
      : trace_(trace), spec_(spec), source_(source), seed_(seed) {}

  void run() {
    if (spec_.slice_from || spec_.slice_to) slice();
    if (spec_.first) first();
    if (spec_.thin) thin();
    scale_lengths();
    cap();
    if (spec_.repeat > 1) repeat();
    scale_rate();
    if (!spec_.warp.empty()) warp();
    if (spec_.jitter) jitter();
    if (spec_.time_step) round_times();
    shift();
  }

 private:
  ImportAccount& account() { return trace_.accounts.at(0); }

  /// Drops requests not in `keep` (given for those on the clock) with all that follows them.
  void select(std::vector<bool> keep, std::string_view reason) {
    keep.resize(trace_.requests.size(), false);
    for (const FollowUp& f : trace_.follow_ups) keep[f.next] = keep[f.previous];
    std::vector<std::uint32_t> place(keep.size(), kNone);
    std::uint32_t n = 0;
    for (std::size_t i = 0; i < keep.size(); ++i) {
      if (!keep[i]) continue;
      place[i] = n;
      trace_.requests[n++] = trace_.requests[i];
    }
    count(account().dropped, reason, static_cast<std::int64_t>(keep.size()) - n);
    account().kept = n;
    trace_.requests.resize(n);
    std::erase_if(trace_.follow_ups, [&](const FollowUp& f) { return place[f.next] == kNone; });
    for (FollowUp& f : trace_.follow_ups) {
      f = {place[f.previous], place[f.next], f.delay, f.loop};
    }
    if (n == 0) {
      throw InputError("", "",
                       fmt::format("source {}: nothing is left after `{}`", source_, reason));
    }
  }

  void slice() {
    const std::int64_t from = spec_.slice_from ? SimTime::from_seconds(*spec_.slice_from).ns() : 0;
    const std::int64_t to =
        spec_.slice_to ? SimTime::from_seconds(*spec_.slice_to).ns() : INT64_MAX;
    std::vector<bool> keep(open_count(trace_));
    for (std::size_t i = 0; i < keep.size(); ++i) {
      const std::int64_t t = trace_.requests[i].arrival.ns();
      keep[i] = t >= from && t < to;
    }
    select(std::move(keep), "outside the slice");
    map_times(trace_, [&](std::int64_t t) { return t - from; });
  }

  void first() {
    std::vector<bool> keep(open_count(trace_), true);
    for (auto i = static_cast<std::size_t>(*spec_.first); i < keep.size(); ++i) keep[i] = false;
    select(std::move(keep), "after the first N");
  }

  void thin() {
    Rng rng(seed_, source_ + "/thin");
    std::vector<std::int8_t> of_session(trace_.sessions.size(), -1);
    std::vector<bool> keep(open_count(trace_));
    for (std::size_t i = 0; i < keep.size(); ++i) {
      const std::uint32_t s = trace_.requests[i].session;
      if (s != kNone && of_session[s] >= 0) {
        keep[i] = of_session[s] == 1;
        continue;
      }
      keep[i] = rng.uniform() < *spec_.thin;
      if (s != kNone) of_session[s] = keep[i] ? 1 : 0;
    }
    select(std::move(keep), "thinned out");
  }

  static std::int32_t scaled(std::int32_t tokens, double factor) {
    const double x = std::nearbyint(static_cast<double>(tokens) * factor);
    return static_cast<std::int32_t>(std::clamp(x, 1.0, static_cast<double>(INT32_MAX)));
  }

  void set_input(Request& r, std::int32_t tokens) const {
    r.input_tokens = tokens;
    if (trace_.hash_block_tokens == 0) return;
    const std::int64_t block = trace_.hash_block_tokens;
    const auto most = static_cast<std::uint32_t>((tokens + block - 1) / block);
    r.hash_count = std::min(r.hash_count, most);
  }

  void scale_lengths() {
    if (spec_.scale_input != 1.0) {
      for (Request& r : trace_.requests) set_input(r, scaled(r.input_tokens, spec_.scale_input));
      if (trace_.hash_block_tokens != 0) {
        account().notes.push_back(
            "prompts were scaled: prefix ids cover at most the tokens they covered before");
      }
    }
    if (spec_.scale_output != 1.0) {
      for (Request& r : trace_.requests) {
        r.output_tokens = scaled(r.output_tokens, spec_.scale_output);
      }
    }
  }

  void cap() {
    std::int64_t inputs = 0;
    std::int64_t outputs = 0;
    for (Request& r : trace_.requests) {
      if (spec_.max_input_tokens && r.input_tokens > *spec_.max_input_tokens) {
        set_input(r, static_cast<std::int32_t>(*spec_.max_input_tokens));
        ++inputs;
      }
      if (spec_.max_output_tokens && r.output_tokens > *spec_.max_output_tokens) {
        r.output_tokens = static_cast<std::int32_t>(*spec_.max_output_tokens);
        ++outputs;
      }
    }
    count(account().adjusted, "input_tokens clamped to the maximum", inputs);
    count(account().adjusted, "output_tokens clamped to the maximum", outputs);
  }

  std::int64_t repeat_period() const {
    if (spec_.repeat_period) return SimTime::from_seconds(*spec_.repeat_period).ns();
    const std::size_t n = open_count(trace_);
    const double rate = mean_rate(trace_);
    if (!trace_.follow_ups.empty() || rate <= 0.0) {
      throw InputError("", "", fmt::format("source {}: how far apart are its copies?", source_),
                       R"(set "repeat_period")");
    }
    const std::int64_t last = trace_.requests[n - 1].arrival.ns();
    return last + SimTime::from_seconds(Seconds(1.0 / rate)).ns();
  }

  void repeat() {
    const std::int64_t period = repeat_period();
    std::vector<Trace> copies;
    Trace original = trace_;
    original.accounts.clear();
    for (std::int64_t k = 0; k < spec_.repeat; ++k) {
      Trace copy = original;
      std::int64_t offset = 0;
      if (__builtin_mul_overflow(period, k, &offset)) to_ns(1e300, source_);
      map_times(copy, [&](std::int64_t t) {
        std::int64_t moved = 0;
        if (__builtin_add_overflow(t, offset, &moved)) to_ns(1e300, source_);
        return moved;
      });
      for (std::string& session : copy.sessions) {
        if (k > 0) session += fmt::format("#{}", k + 1);
      }
      copies.push_back(std::move(copy));
    }
    std::vector<ImportAccount> accounts = std::move(trace_.accounts);
    trace_ = superpose(std::move(copies), spec_.repeat_fresh_prefixes);
    trace_.accounts = std::move(accounts);
    account().notes.push_back(fmt::format("repeated {} times, {} s apart: {} requests",
                                          spec_.repeat, static_cast<double>(period) * 1e-9,
                                          trace_.requests.size()));
  }

  void scale_rate() {
    double factor = spec_.scale_rate;
    if (spec_.target_rate) {
      const double rate = mean_rate(trace_);
      if (rate <= 0.0) {
        throw InputError("", "", fmt::format("source {} has no rate to bring to a target", source_),
                         "its requests need different arrival times");
      }
      factor *= *spec_.target_rate / rate;
    }
    if (factor == 1.0) return;
    map_times(trace_,
              [&](std::int64_t t) { return to_ns(static_cast<double>(t) / factor, source_); });
  }

  void warp() {
    const auto& knots = spec_.warp;
    map_times(trace_, [&](std::int64_t t) {
      const double x = static_cast<double>(t) * 1e-9;
      std::size_t i = 1;
      while (i + 1 < knots.size() && x > knots[i].first) ++i;  // beyond: the last slope goes on
      const auto [x0, y0] = knots[i - 1];
      const auto [x1, y1] = knots[i];
      const double y = y0 + (x - x0) * ((y1 - y0) / (x1 - x0));
      return to_ns(std::max(0.0, y) * 1e9, source_);
    });
  }

  void jitter() {
    Rng rng(seed_, source_ + "/jitter");
    const double spread = spec_.jitter->value() * 1e9;
    map_times(trace_, [&](std::int64_t t) {
      return t + static_cast<std::int64_t>(std::floor(rng.uniform() * spread));
    });
    const std::size_t n = open_count(trace_);
    count(account().adjusted,
          fmt::format("arrival moved by jitter up to {} s", spec_.jitter->value()),
          static_cast<std::int64_t>(n));
    sort_open(n);
  }

  void sort_open(std::size_t n) {
    std::vector<std::uint32_t> order(n);
    for (std::uint32_t i = 0; i < n; ++i) order[i] = i;
    std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
      const Request& x = trace_.requests[a];
      const Request& y = trace_.requests[b];
      return x.arrival != y.arrival ? x.arrival < y.arrival : x.row < y.row;
    });
    std::vector<Request> sorted(n);
    std::vector<std::uint32_t> place(n);
    for (std::uint32_t i = 0; i < n; ++i) {
      sorted[i] = trace_.requests[order[i]];
      place[order[i]] = i;
    }
    std::copy(sorted.begin(), sorted.end(), trace_.requests.begin());
    for (FollowUp& f : trace_.follow_ups) {
      if (f.previous < n) f.previous = place[f.previous];
    }
    std::stable_sort(trace_.follow_ups.begin(), trace_.follow_ups.end(),
                     [](const FollowUp& a, const FollowUp& b) { return a.previous < b.previous; });
  }

  void round_times() {
    const std::int64_t step =
        std::max<std::int64_t>(1, to_ns(spec_.time_step->value() * 1e9, source_));
    map_times(trace_, [&](std::int64_t t) {
      const std::int64_t rest = t % step;
      return t - rest + (rest * 2 >= step ? step : 0);
    });
    const std::size_t n = open_count(trace_);
    count(account().adjusted,
          fmt::format("arrival rounded to multiples of {} s", spec_.time_step->value()),
          static_cast<std::int64_t>(n));
    sort_open(n);
  }

  void shift() {
    const std::int64_t by = SimTime::from_seconds(spec_.shift).ns();
    if (by == 0) return;
    map_times(trace_, [&](std::int64_t t) {
      std::int64_t moved = 0;
      if (__builtin_add_overflow(t, by, &moved)) to_ns(1e300, source_);
      return moved;
    });
  }

  Trace& trace_;
  const TransformSpec& spec_;
  const std::string& source_;
  std::uint64_t seed_;
};
}  // namespace

double mean_rate(const Trace& trace) {
  const std::size_t n = open_count(trace);
  if (n < 2) return 0.0;
  const Seconds span = trace.requests[n - 1].arrival - trace.requests[0].arrival;
  return span.value() > 0.0 ? static_cast<double>(n - 1) / span.value() : 0.0;
}

void transform_trace(Trace& trace, const TransformSpec& spec, const std::string& source,
                     std::uint64_t seed) {
  Transformer(trace, spec, source, seed).run();
}

}  // namespace medley
