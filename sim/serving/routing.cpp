#include "sim/serving/routing.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <unordered_map>

#include "sim/core/error.h"
#include "sim/serving/min_index.h"

namespace medley {

namespace {

/// The least of some load measure over a candidate list. Lists that cover the whole fleet are
/// served by an index; others (a few models in one fleet, or requests that fit only some pools) get
/// an index of their own the first time they are seen.
class LoadIndex {
 public:
  explicit LoadIndex(const RouterContext& context) : member_(context.replicas) {
    for (const auto& group : *context.groups) add_group(group);
  }
  std::uint32_t least(const std::vector<std::uint32_t>& candidates, const RouterView& view,
                      double (*load)(const RouterView&, std::uint32_t)) {
    for (Group& g : groups_) {
      if (g.replicas == &candidates) {
        const std::size_t i = g.index.top();
        g.index.touch(i);
        return candidates[i];
      }
    }
    std::uint32_t best = candidates.front();
    for (const std::uint32_t r : candidates) {
      if (load(view, r) < load(view, best)) best = r;
    }
    return best;
  }
  void set(std::uint32_t replica, double value) {
    for (const auto& [group, place] : member_[replica]) groups_[group].index.set(place, value);
  }

 private:
  struct Group {
    const std::vector<std::uint32_t>* replicas;
    MinIndex index;
  };
  void add_group(const std::vector<std::uint32_t>& replicas) {
    for (std::size_t i = 0; i < replicas.size(); ++i)
      member_[replicas[i]].emplace_back(groups_.size(), i);
    groups_.push_back({&replicas, MinIndex(replicas.size())});
  }
  std::vector<Group> groups_;
  std::vector<std::vector<std::pair<std::size_t, std::size_t>>> member_;
};

double requests_of(const RouterView& v, std::uint32_t r) {
  return v.outstanding_requests(r);
}
double tokens_of(const RouterView& v, std::uint32_t r) {
  return v.outstanding_tokens(r);
}

class LeastRequests : public Router {
 public:
  explicit LeastRequests(const RouterContext& c) : index_(c) {}
  std::uint32_t route(const PublicRequest&, const std::vector<std::uint32_t>& candidates,
                      const RouterView& view, Rng&) override {
    return index_.least(candidates, view, requests_of);
  }
  void load_changed(std::uint32_t replica, const RouterView& view) override {
    index_.set(replica, view.outstanding_requests(replica));
  }

 protected:
  LoadIndex index_;
};

class LeastTokens final : public Router {
 public:
  explicit LeastTokens(const RouterContext& c) : index_(c) {}
  std::uint32_t route(const PublicRequest&, const std::vector<std::uint32_t>& candidates,
                      const RouterView& view, Rng&) override {
    return index_.least(candidates, view, tokens_of);
  }
  void load_changed(std::uint32_t replica, const RouterView& view) override {
    index_.set(replica, view.outstanding_tokens(replica));
  }

 private:
  LoadIndex index_;
};

/// Requests wait in one queue; a replica gets the next when it has room.
class CentralQueue final : public LeastRequests {
 public:
  using LeastRequests::LeastRequests;
  std::uint32_t route(const PublicRequest& request, const std::vector<std::uint32_t>& candidates,
                      const RouterView& view, Rng&) override {
    const std::uint32_t r = index_.least(candidates, view, requests_of);
    return view.has_room(r, request.input_tokens) ? r : kHold;
  }
};

class Random final : public Router {
 public:
  explicit Random(const RouterContext&) {}
  std::uint32_t route(const PublicRequest&, const std::vector<std::uint32_t>& candidates,
                      const RouterView&, Rng& rng) override {
    return candidates[rng.below(candidates.size())];
  }
};

class RoundRobin final : public Router {
 public:
  explicit RoundRobin(const RouterContext&) {}
  std::uint32_t route(const PublicRequest& request, const std::vector<std::uint32_t>& candidates,
                      const RouterView&, Rng&) override {
    if (next_.size() <= request.model) next_.resize(request.model + std::size_t{1}, 0);
    return candidates[next_[request.model]++ % candidates.size()];
  }

 private:
  std::vector<std::uint64_t> next_;  ///< by model
};

class PowerOfTwo final : public Router {
 public:
  explicit PowerOfTwo(const RouterContext&) {}
  std::uint32_t route(const PublicRequest&, const std::vector<std::uint32_t>& candidates,
                      const RouterView& view, Rng& rng) override {
    const std::uint64_t n = candidates.size();
    if (n == 1) return candidates[0];
    const std::uint64_t i = rng.below(n);
    std::uint64_t j = rng.below(n - 1);
    if (j >= i) ++j;
    const std::uint32_t a = candidates[i];
    const std::uint32_t b = candidates[j];
    return view.outstanding_requests(b) < view.outstanding_requests(a) ? b : a;
  }
};

/// Shares proportional to measured capacity, by stride scheduling: each replica's pass grows by
/// 1 / capacity per request; the smallest pass is next.
class Weighted final : public Router {
 public:
  explicit Weighted(const RouterContext& c) : pass_(c.replicas, 0.0) {}
  std::uint32_t route(const PublicRequest&, const std::vector<std::uint32_t>& candidates,
                      const RouterView& view, Rng&) override {
    std::uint32_t best = candidates.front();
    double best_pass = std::numeric_limits<double>::infinity();
    for (const std::uint32_t r : candidates) {
      const double next = pass_[r] + 1.0 / view.profile(view.pool_of(r)).decode_tokens_per_s;
      if (next < best_pass) {
        best_pass = next;
        best = r;
      }
    }
    pass_[best] = best_pass;
    return best;
  }

 private:
  std::vector<double> pass_;
};

/// Expected time to first token and time per token if `request` went to `replica` now.
///   TTFT = (prompts still to compute + its own) / prefill rate + one decode step
///   TPOT = decode step at the sequences there would be, plus the prefill work that runs between
///   its
///          decode steps: while it decodes, each sequence on board is replaced about once, by a
///          prompt like this one
struct Forecast {
  double ttft_s = 0.0;
  double tpot_s = 0.0;
};
Forecast forecast(const PublicRequest& request, std::uint32_t replica, const RouterView& view) {
  const PoolProfile& p = view.profile(view.pool_of(replica));
  const double sequences = view.outstanding_requests(replica) + 1.0;
  const auto level = static_cast<std::size_t>(std::ceil(std::log2(sequences)));
  const double step = p.step_s_at[std::min(level, p.step_s_at.size() - 1)];
  const double rounds =
      std::max(1.0, sequences / std::exp2(static_cast<double>(p.step_s_at.size() - 1)));
  const double prefill_s =
      (view.outstanding_prompt_tokens(replica) + request.input_tokens) / p.prefill_tokens_per_s;
  const double mixed_s = sequences * request.input_tokens / p.prefill_tokens_per_s;
  return {prefill_s + step,
          step * rounds + mixed_s / std::max(1.0, request.expected_output_tokens)};
}

/// The cheapest (or greenest) pool whose least loaded replica is expected to meet the class's SLO;
/// when none is, the replica with the earliest expected first token. Unknown prices rank last.
class MeetSlo : public Router {
 public:
  MeetSlo(const RouterContext& c, bool energy) : energy_(energy), headroom_(c.param("headroom")) {}
  std::uint32_t route(const PublicRequest& request, const std::vector<std::uint32_t>& candidates,
                      const RouterView& view, Rng&) override {
    const RouterView::Slo slo = view.slo(request.slo_class);
    least_.clear();
    for (const std::uint32_t r : candidates) {
      const std::uint16_t pool = view.pool_of(r);
      auto it = std::find_if(least_.begin(), least_.end(),
                             [&](const auto& e) { return e.first == pool; });
      if (it == least_.end()) {
        least_.emplace_back(pool, r);
      } else if (view.outstanding_tokens(r) < view.outstanding_tokens(it->second)) {
        it->second = r;
      }
    }
    std::uint32_t fastest = candidates.front(), best = kHold;
    double fastest_ttft = std::numeric_limits<double>::infinity();
    double best_price = std::numeric_limits<double>::infinity();
    for (const auto& [pool, replica] : least_) {
      const Forecast f = forecast(request, replica, view);
      if (f.ttft_s < fastest_ttft) {
        fastest_ttft = f.ttft_s;
        fastest = replica;
      }
      if ((slo.ttft_s && f.ttft_s * headroom_ > *slo.ttft_s) ||
          (slo.tpot_s && f.tpot_s * headroom_ > *slo.tpot_s)) {
        continue;
      }
      const double price = price_of(view.profile(pool));
      if (best == kHold || price < best_price) {
        best_price = price;
        best = replica;
      }
    }
    return best == kHold ? fastest : best;
  }

 private:
  double price_of(const PoolProfile& p) const {
    const double unknown = std::numeric_limits<double>::max();
    if (energy_) return p.joules_per_token.value_or(unknown);
    return p.usd_per_s ? *p.usd_per_s / p.decode_tokens_per_s : unknown;
  }
  bool energy_;
  double headroom_;
  std::vector<std::pair<std::uint16_t, std::uint32_t>> least_;
};
class CheapestSlo final : public MeetSlo {
 public:
  explicit CheapestSlo(const RouterContext& c) : MeetSlo(c, false) {}
};
class GreenestSlo final : public MeetSlo {
 public:
  explicit GreenestSlo(const RouterContext& c) : MeetSlo(c, true) {}
};

class SessionAffinity final : public LeastRequests {
 public:
  using LeastRequests::LeastRequests;
  std::uint32_t route(const PublicRequest& request, const std::vector<std::uint32_t>& candidates,
                      const RouterView& view, Rng&) override {
    if (request.session == Request::kNone) return index_.least(candidates, view, requests_of);
    if (home_.size() <= request.session) home_.resize(request.session + std::size_t{1}, kHold);
    std::uint32_t& home = home_[request.session];
    if (home == kHold || !std::binary_search(candidates.begin(), candidates.end(), home)) {
      home = index_.least(candidates, view, requests_of);
    }
    return home;
  }

 private:
  std::vector<std::uint32_t> home_;  ///< by session
};

/// Where the longest known prefix was last sent, unless that replica is too loaded: more than
/// `slack` requests and `factor` times above the least loaded one.
class PrefixAffinity final : public LeastRequests {
 public:
  explicit PrefixAffinity(const RouterContext& c)
      : LeastRequests(c), slack_(c.param("slack")), factor_(c.param("factor")) {}
  std::uint32_t route(const PublicRequest& request, const std::vector<std::uint32_t>& candidates,
                      const RouterView& view, Rng&) override {
    std::uint32_t target = kHold;
    for (std::uint32_t i = 0; i < request.hash_count; ++i) {
      const auto it = last_.find(request.hash_ids[i]);
      if (it == last_.end()) break;
      target = it->second;
    }
    const std::uint32_t least = index_.least(candidates, view, requests_of);
    const double low = view.outstanding_requests(least);
    const bool known =
        target != kHold && std::binary_search(candidates.begin(), candidates.end(), target);
    if (!known || (view.outstanding_requests(target) > low + slack_ &&
                   view.outstanding_requests(target) > low * factor_)) {
      target = least;
    }
    for (std::uint32_t i = 0; i < request.hash_count; ++i) last_[request.hash_ids[i]] = target;
    return target;
  }

 private:
  double slack_, factor_;
  std::unordered_map<std::uint64_t, std::uint32_t> last_;  ///< id -> replica; never iterated
};

template <class R>
std::unique_ptr<Router> make(const RouterContext& context) {
  return std::make_unique<R>(context);
}

}  // namespace

const Registry<RouterFactory>& routing_registry() {
  static const ParamInfo kHeadroom{"headroom", 1.0, 0.1, 100.0,
                                   "factor on the forecast before it is held against the SLO"};
  static const Registry<RouterFactory> registry = [] {
    Registry<RouterFactory> r("routing policy");
    r.add("central_queue", "one queue per model; a replica takes the next request when it has room",
          {}, make<CentralQueue>);
    r.add("random", "uniformly at random", {}, make<Random>);
    r.add("round_robin", "in turn, per model", {}, make<RoundRobin>);
    r.add("least_outstanding_requests", "fewest requests sent and not yet ended; ties take turns",
          {}, make<LeastRequests>);
    r.add("least_outstanding_tokens", "fewest prompt and expected output tokens outstanding", {},
          make<LeastTokens>);
    r.add("power_of_two", "the less loaded of two drawn at random", {}, make<PowerOfTwo>);
    r.add("weighted", "shares proportional to each replica's decode capacity", {}, make<Weighted>);
    r.add("cheapest_slo", "cheapest pool expected to meet the class's TTFT and TPOT", {kHeadroom},
          make<CheapestSlo>);
    r.add("greenest_slo", "pool with the least energy per token expected to meet the class's SLO",
          {kHeadroom}, make<GreenestSlo>);
    r.add("session_affinity",
          "turns of a session stay on one replica; new sessions to the least loaded", {},
          make<SessionAffinity>);
    r.add("prefix_affinity",
          "where the longest known prefix was last sent, unless it is overloaded",
          {{"slack", 8.0, 0.0, 1e9, "requests above the least loaded replica that are tolerated"},
           {"factor", 1.5, 1.0, 1e9, "and the ratio to the least loaded replica"}},
          make<PrefixAffinity>);
    return r;
  }();
  return registry;
}

}  // namespace medley
