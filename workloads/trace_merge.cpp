#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "sim/core/error.h"
#include "workloads/name_table.h"
#include "workloads/trace_link.h"
#include "workloads/trace_transform.h"

namespace medley {

namespace {
constexpr std::uint32_t kNone = Request::kNone;

/// Where each of `names` goes in the common table.
std::vector<std::uint16_t> merge_names(NameTable& table, const std::vector<std::string>& names,
                                       std::string_view what) {
  std::vector<std::uint16_t> to;
  for (const std::string& name : names) {
    const auto id = table.id(name, UINT16_MAX);
    if (!id) throw InputError("", "", fmt::format("the workload has more than 65,536 {}", what));
    to.push_back(static_cast<std::uint16_t>(*id));
  }
  return to;
}

std::int32_t common_block(const std::vector<Trace>& traces) {
  std::int32_t block = 0;
  for (const Trace& t : traces) block = std::gcd(block, t.hash_block_tokens);
  return block;
}

class Merger {
 public:
  explicit Merger(std::vector<Trace> traces) : traces_(std::move(traces)) {}

  Trace run(bool distinct_prefixes) {
    const std::int32_t block = common_block(traces_);
    for (std::size_t k = 0; k < traces_.size(); ++k) {
      if (traces_[k].hash_block_tokens != 0) reblock(traces_[k], block);
      append(traces_[k], distinct_prefixes ? k : 0);
      traces_[k] = {};
    }
    out_.hash_block_tokens = block;
    out_.models = models_.take();
    out_.classes = classes_.take();
    out_.tenants = tenants_.take();
    sort();
    return std::move(out_);
  }

 private:
  void append(Trace& t, std::size_t salt) {
    const auto models = merge_names(models_, t.models, "models");
    const auto classes = merge_names(classes_, t.classes, "SLO classes");
    const auto tenants = merge_names(tenants_, t.tenants, "tenants");
    const auto base = static_cast<std::uint32_t>(out_.requests.size());
    const auto ids_base = out_.hash_ids.size();
    const auto session_base = static_cast<std::uint32_t>(out_.sessions.size());
    if (ids_base + t.hash_ids.size() > UINT32_MAX || base + t.requests.size() > UINT32_MAX) {
      throw InputError("", "", "the sources together exceed 4,294,967,295 requests or prefix ids");
    }
    std::uint32_t rows = 0;
    for (Request r : t.requests) {
      rows = std::max(rows, r.row + 1);
      r.row += row_base_;
      r.model = models[r.model];
      r.slo_class = classes[r.slo_class];
      r.tenant = tenants[r.tenant];
      if (r.session != kNone) r.session += session_base;
      if (r.hash_count > 0) r.hash_begin += static_cast<std::uint32_t>(ids_base);
      out_.requests.push_back(r);
    }
    row_base_ += rows;
    for (const std::uint64_t id : t.hash_ids) {
      out_.hash_ids.push_back(salt == 0 ? id : derived_id(id, salt));
    }
    std::uint32_t loops = 0;
    for (const FollowUp& f : t.follow_ups) {
      loops = std::max(loops, f.loop);
      const std::uint32_t loop = f.loop > 0 ? f.loop + loop_base_ : 0;
      out_.follow_ups.push_back({f.previous + base, f.next + base, f.delay, loop});
    }
    loop_base_ += loops;
    std::move(t.sessions.begin(), t.sessions.end(), std::back_inserter(out_.sessions));
    std::move(t.accounts.begin(), t.accounts.end(), std::back_inserter(out_.accounts));
  }

  /// Closed requests carry SimTime::max() and so end up behind the open ones, by row.
  void sort() {
    std::vector<std::uint32_t> order(out_.requests.size());
    std::iota(order.begin(), order.end(), 0U);
    std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
      return out_.requests[a].arrival < out_.requests[b].arrival;
    });
    std::vector<std::uint32_t> place(order.size());
    std::vector<Request> sorted;
    sorted.reserve(order.size());
    for (const std::uint32_t i : order) {
      place[i] = static_cast<std::uint32_t>(sorted.size());
      sorted.push_back(out_.requests[i]);
    }
    out_.requests = std::move(sorted);
    for (FollowUp& f : out_.follow_ups) {
      f = {place[f.previous], place[f.next], f.delay, f.loop};
    }
    std::stable_sort(out_.follow_ups.begin(), out_.follow_ups.end(),
                     [](const FollowUp& a, const FollowUp& b) { return a.previous < b.previous; });
  }

  std::vector<Trace> traces_;
  Trace out_;
  NameTable models_, classes_, tenants_;
  std::uint32_t row_base_ = 0;
  std::uint32_t loop_base_ = 0;
};
}  // namespace

Trace superpose(std::vector<Trace> traces, bool distinct_prefixes) {
  MEDLEY_CHECK(!traces.empty(), "superpose: no trace");
  if (traces.size() == 1) return std::move(traces.front());
  return Merger(std::move(traces)).run(distinct_prefixes);
}

void reblock(Trace& trace, std::int32_t block) {
  const std::int32_t old = trace.hash_block_tokens;
  if (old == block || old == 0) return;
  MEDLEY_CHECK(block > 0 && old % block == 0, "reblock: not a divisor");
  const auto parts = static_cast<std::uint64_t>(old / block);
  if (trace.hash_ids.size() * parts > UINT32_MAX) {
    throw InputError("", "", "prefix ids of the sources do not fit one block size",
                     R"(set "prefix_ids": "ignore" for one of them)");
  }
  constexpr std::uint64_t kPart = std::uint64_t{1} << 32;  // no salt of a source or copy
  std::vector<std::uint64_t> ids;
  ids.reserve(trace.hash_ids.size() * parts);
  for (const std::uint64_t id : trace.hash_ids) {
    for (std::uint64_t p = 0; p < parts; ++p) ids.push_back(derived_id(id, kPart + p));
  }
  trace.hash_ids = std::move(ids);
  trace.hash_block_tokens = block;
  for (Request& r : trace.requests) {
    const std::int64_t covered =
        std::min<std::int64_t>(r.input_tokens, std::int64_t{r.hash_count} * old);
    const bool whole = covered == r.input_tokens;
    r.hash_begin = static_cast<std::uint32_t>(r.hash_begin * parts);
    r.hash_count =
        static_cast<std::uint32_t>(whole ? (covered + block - 1) / block : covered / block);
  }
}

}  // namespace medley
