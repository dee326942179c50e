#include "workloads/generator.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "sim/core/error.h"

namespace medley {

double weibull_shape(double cv) {
  const auto cv_of = [](double k) {
    return std::sqrt(std::expm1(std::lgamma(1.0 + 2.0 / k) - 2.0 * std::lgamma(1.0 + 1.0 / k)));
  };
  double low = 0.1;  // cv 429
  double high = 500.0;
  for (int i = 0; i < 200 && high - low > 1e-14 * low; ++i) {
    const double middle = (low + high) / 2.0;
    (cv_of(middle) > cv ? low : high) = middle;
  }
  return (low + high) / 2.0;
}

ArrivalTimes::ArrivalTimes(const ArrivalSpec& spec, std::uint64_t seed, const std::string& stream)
    : spec_(spec), rng_(seed, stream) {
  if (spec.gap == ArrivalSpec::Gap::kGamma) {
    shape_ = 1.0 / (spec.cv * spec.cv);
    scale_ = 1.0 / shape_;
  } else if (spec.gap == ArrivalSpec::Gap::kWeibull) {
    shape_ = weibull_shape(spec.cv);
    scale_ = std::exp(-std::lgamma(1.0 + 1.0 / shape_));
  }
}

double ArrivalTimes::gap() {
  switch (spec_.gap) {
    case ArrivalSpec::Gap::kPoisson:
      return rng_.exponential(1.0);
    case ArrivalSpec::Gap::kGamma:
      return rng_.gamma(shape_, scale_);
    case ArrivalSpec::Gap::kWeibull:
      return rng_.weibull(shape_, scale_);
    default:
      return 1.0;
  }
}

double ArrivalTimes::next() {
  if (!first_ || spec_.gap != ArrivalSpec::Gap::kConstant) sum_ += gap();
  first_ = false;
  return spec_.rate.invert(sum_);
}

Zipf::Zipf(std::int64_t n, double exponent) {
  double sum = 0.0;
  for (std::int64_t k = 1; k <= n; ++k) {
    upto_.push_back(sum += std::pow(static_cast<double>(k), -exponent));
  }
  for (double& u : upto_) u /= sum;
}

std::size_t Zipf::sample(Rng& rng) const {
  const auto it = std::upper_bound(upto_.begin(), upto_.end(), rng.uniform());
  return std::min(static_cast<std::size_t>(it - upto_.begin()), upto_.size() - 1);
}

namespace {
constexpr std::uint32_t kNone = Request::kNone;
constexpr std::size_t kMostRequests = std::size_t{1} << 31;

/// A group of requests with a common prompt prefix.
struct Group {
  std::int64_t tokens = 0;
  std::uint32_t blocks = 0;  ///< whole ones
  std::uint32_t ids_begin = 0;
};

class Generator {
 public:
  Generator(const GeneratorSpec& spec, const std::string& source, std::uint64_t seed)
      : spec_(spec),
        source_(source),
        input_(seed, source + "/input"),
        output_(seed, source + "/output"),
        turns_(seed, source + "/turns"),
        think_(seed, source + "/think"),
        user_think_(seed, source + "/user-think"),
        prefix_(seed, source + "/prefix"),
        times_(spec.arrivals, seed, source + "/arrivals") {}

  Trace run() {
    trace_.models = trace_.classes = trace_.tenants = {"default"};
    make_groups();
    const bool closed = spec_.arrivals.gap == ArrivalSpec::Gap::kClosedLoop;
    closed ? run_closed() : run_open();
    finish();
    return std::move(trace_);
  }

 private:
  bool full() const {
    return spec_.requests && static_cast<std::int64_t>(made_.size()) >= *spec_.requests;
  }

  void run_open() {
    const double end = spec_.duration ? spec_.duration->value() : RateCurve::kForever;
    while (!full()) {
      const double t = times_.next();
      if (!(t < end)) return;
      add_unit(SimTime::from_seconds(Seconds(t)), kNone, 0.0);
    }
  }

  void run_closed() {
    const auto users = static_cast<std::size_t>(spec_.arrivals.concurrency);
    std::vector<std::uint32_t> last(users, kNone);
    for (std::size_t unit = 0; !full(); ++unit) {
      const std::size_t user = unit % users;
      if (last[user] == kNone) {
        const double part = static_cast<double>(user) / static_cast<double>(users);
        last[user] = add_unit(SimTime::from_seconds(part * spec_.arrivals.ramp_up), kNone, 0.0);
      } else {
        const double pause = spec_.arrivals.think_time.sample(user_think_);
        last[user] = add_unit(SimTime::max(), last[user], pause);
      }
    }
  }

  void make_groups() {
    if (!spec_.shared_prefix) return;
    const std::int32_t block = spec_.hash_block_tokens;
    for (std::int64_t g = 0; g < spec_.shared_prefix->groups; ++g) {
      Group group;
      group.tokens = spec_.shared_prefix->tokens.sample_count(prefix_, 0);
      group.blocks = static_cast<std::uint32_t>(group.tokens / block);
      group.ids_begin = next_id_index();
      for (std::uint32_t i = 0; i < group.blocks; ++i) {
        add_id(trace_.hash_ids.size());
      }
      groups_.push_back(group);
    }
    popularity_.emplace(spec_.shared_prefix->groups, spec_.shared_prefix->zipf);
  }

  std::uint32_t next_id_index() const {
    if (trace_.hash_ids.size() > UINT32_MAX) {
      throw InputError("", "",
                       fmt::format("source {} needs more than 4,294,967,295 prefix ids", source_),
                       R"(set a larger "hash_block_tokens")");
    }
    return static_cast<std::uint32_t>(trace_.hash_ids.size());
  }

  /// An id of its own is its index: consecutive, so that files of them stay small.
  void add_id(std::uint64_t id) { trace_.hash_ids.push_back(id); }

  const Group* pick_group() {
    if (!popularity_) return nullptr;
    const bool shares = prefix_.uniform() < spec_.shared_prefix->share;
    const std::size_t g = popularity_->sample(prefix_);  // drawn always: one request, two draws
    return shares ? &groups_[g] : nullptr;
  }

  /// One request, or all turns of one session. Returns the index of the last request made.
  std::uint32_t add_unit(SimTime start, std::uint32_t previous, double pause) {
    const Group* group = pick_group();
    if (!spec_.session) {
      Request r = draw(group != nullptr ? group->tokens : 0, spec_.input_tokens);
      if (group != nullptr) {
        r.hash_begin = group->ids_begin;
        r.hash_count = group->blocks;
      }
      return add(r, start, previous, pause);
    }
    return add_session(group, start, previous, pause);
  }

  std::uint32_t add_session(const Group* group, SimTime start, std::uint32_t previous,
                            double pause) {
    const SessionSpec& s = *spec_.session;
    const auto session = static_cast<std::uint32_t>(trace_.sessions.size());
    trace_.sessions.push_back(fmt::format("{}-{}", source_, session));
    const std::int64_t turns = s.turns.sample_count(turns_, 1);
    const std::uint32_t ids_begin = next_id_index();
    std::int64_t context = group != nullptr ? group->tokens : 0;
    for (std::int64_t turn = 0; turn < turns && !full(); ++turn) {
      const bool first = turn == 0;
      Request r =
          draw(context, first && s.first_input_tokens ? *s.first_input_tokens : spec_.input_tokens);
      context = std::int64_t{r.input_tokens} + r.output_tokens;
      if (!first && s.max_context_tokens > 0 && context > s.max_context_tokens) break;
      r.session = session;
      r.turn = static_cast<std::uint16_t>(std::min<std::int64_t>(turn, UINT16_MAX));
      r.hash_begin = ids_begin;
      r.hash_count = extend_ids(group, ids_begin, r.input_tokens);
      if (!first) pause = s.think_time.sample(think_);
      previous = add(r, first ? start : SimTime::max(), previous, pause);
    }
    return previous;
  }

  /// Makes the session's stream of ids cover `tokens`; returns how many that takes.
  std::uint32_t extend_ids(const Group* group, std::uint32_t begin, std::int32_t tokens) {
    const std::int32_t block = spec_.hash_block_tokens;
    const auto blocks = static_cast<std::uint32_t>((std::int64_t{tokens} + block - 1) / block);
    const std::uint32_t shared = group != nullptr ? group->blocks : 0;
    for (auto i = next_id_index() - begin; i < blocks; ++i) {
      add_id(i < shared ? trace_.hash_ids[group->ids_begin + i] : trace_.hash_ids.size());
    }
    return blocks;
  }

  Request draw(std::int64_t before, const Distribution& input) {
    Request r;
    const std::int64_t whole = before + input.sample_count(input_, 1);
    if (whole > INT32_MAX) {
      throw InputError("", "", fmt::format("source {}: a prompt grows past 2^31 tokens", source_),
                       R"(set "max_context_tokens" of its sessions)");
    }
    r.input_tokens = static_cast<std::int32_t>(whole);
    r.output_tokens = static_cast<std::int32_t>(spec_.output_tokens.sample_count(output_, 1));
    return r;
  }

  std::uint32_t add(Request r, SimTime start, std::uint32_t previous, double pause) {
    if (made_.size() >= kMostRequests) {
      throw InputError("", "", fmt::format("source {} makes more than 2^31 requests", source_));
    }
    const auto at = static_cast<std::uint32_t>(made_.size());
    r.row = at;
    r.arrival = previous == kNone ? start : SimTime::max();
    made_.push_back(r);
    if (previous != kNone) {
      links_.push_back({previous, at, Seconds(pause), spec_.arrivals.shared_queue ? 1U : 0U});
    }
    return at;
  }

  /// Open requests first (they are in order of time already), then the closed ones by row.
  void finish() {
    std::vector<std::uint32_t> place(made_.size());
    trace_.requests.reserve(made_.size());
    for (const bool open : {true, false}) {
      for (const Request& r : made_) {
        if ((r.arrival != SimTime::max()) != open) continue;
        place[r.row] = static_cast<std::uint32_t>(trace_.requests.size());
        trace_.requests.push_back(r);
      }
    }
    for (const FollowUp& f : links_) {
      trace_.follow_ups.push_back({place[f.previous], place[f.next], f.delay, f.loop});
    }
    std::stable_sort(trace_.follow_ups.begin(), trace_.follow_ups.end(),
                     [](const FollowUp& a, const FollowUp& b) { return a.previous < b.previous; });
    if (spec_.session || spec_.shared_prefix) trace_.hash_block_tokens = spec_.hash_block_tokens;
    ImportAccount account;
    account.source = source_;
    account.format = "generated";
    account.rows_read = account.kept = static_cast<std::int64_t>(made_.size());
    trace_.accounts.push_back(std::move(account));
  }

  const GeneratorSpec& spec_;
  const std::string& source_;
  Rng input_, output_, turns_, think_, user_think_, prefix_;
  ArrivalTimes times_;
  std::vector<Group> groups_;
  std::optional<Zipf> popularity_;
  std::vector<Request> made_;
  std::vector<FollowUp> links_;
  Trace trace_;
};
}  // namespace

Trace generate_trace(const GeneratorSpec& spec, const std::string& source, std::uint64_t seed) {
  Trace trace = Generator(spec, source, seed).run();
  if (trace.requests.empty()) {
    throw InputError("", "", fmt::format("source {} generates no request", source),
                     "a longer duration or a higher rate");
  }
  return trace;
}

void replace_arrivals(Trace& trace, const ArrivalSpec& spec, const std::string& source,
                      std::uint64_t seed) {
  const auto n = static_cast<std::uint32_t>(trace.requests.size());
  trace.follow_ups.clear();
  if (spec.gap == ArrivalSpec::Gap::kClosedLoop) {
    Rng think(seed, source + "/user-think");
    const auto users = static_cast<std::uint32_t>(std::min<std::int64_t>(spec.concurrency, n));
    for (std::uint32_t i = 0; i < n; ++i) {
      const double part = static_cast<double>(i) / static_cast<double>(users);
      trace.requests[i].arrival =
          i < users ? SimTime::from_seconds(part * spec.ramp_up) : SimTime::max();
      if (i >= users) {
        trace.follow_ups.push_back(
            {i - users, i, Seconds(spec.think_time.sample(think)), spec.shared_queue ? 1U : 0U});
      }
    }
    return;
  }
  ArrivalTimes times(spec, seed, source + "/arrivals");
  for (Request& r : trace.requests) {
    const double t = times.next();
    if (t >= RateCurve::kForever) {
      throw InputError(
          "", "", fmt::format("source {}: its arrivals end before its {} requests do", source, n),
          R"(take the "first" N, or let the rate go on)");
    }
    r.arrival = SimTime::from_seconds(Seconds(t));
  }
}

}  // namespace medley
