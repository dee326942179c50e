#include <cmath>

#include "sim/core/rng.h"
#include "sim/report/table_file.h"
#include "sim/report/writers.h"

namespace medley {

namespace {
/// Which requests get a row: all, or a random sample in order (selection sampling, Knuth vol. 2,
/// 3.4.2 S: each subset of that size is equally likely).
class RowChoice {
 public:
  RowChoice(const ReportSpec& spec, std::int64_t rows, std::uint64_t seed)
      : rng_(seed, "report/requests"), left_(rows), wanted_(rows) {
    if (spec.requests == ReportSpec::Requests::kSample) wanted_ = std::min(spec.sample, rows);
  }
  bool take() {
    const bool yes =
        static_cast<std::int64_t>(rng_.below(static_cast<std::uint64_t>(left_))) < wanted_;
    --left_;
    if (yes) --wanted_;
    return yes;
  }

 private:
  Rng rng_;
  std::int64_t left_;
  std::int64_t wanted_;
};

std::string_view slo_text(SloVerdict verdict) {
  if (verdict == SloVerdict::kMet) return "true";
  return verdict == SloVerdict::kMissed ? "false" : "";
}

void duration(TableFile& out, double seconds, SimTime from, SimTime to) {
  if (std::isnan(seconds)) {
    out.blank();
  } else {
    out.seconds(to.ns() - from.ns());
  }
}

void write_row(TableFile& out, const Analysis& a, std::size_t i) {
  const Trace& trace = a.scenario().trace;
  const Request& q = trace.requests[i];
  const RequestRecord& r = a.result().requests[i];
  const RequestTimes t = a.times(i);
  const bool placed = r.pool < a.scenario().pools.size();
  out.integer(q.row);
  if (q.session == Request::kNone) {
    out.blank();
  } else {
    out.text(trace.sessions[q.session]);
  }
  out.integer(q.turn).text(trace.tenants[q.tenant]).text(trace.classes[q.slo_class]);
  out.text(trace.models[q.model]);
  if (placed) {
    out.text(a.scenario().pools[r.pool].name).integer(r.replica);
  } else {
    out.blank().blank();
  }
  out.seconds(r.arrival.ns());
  duration(out, t.queue, r.arrival, r.scheduled);
  const HandoffRecord* h = a.result().handoffs.empty() || !handed_over(a.result().handoffs[i])
                               ? nullptr
                               : &a.result().handoffs[i];
  duration(out, t.prefill, r.scheduled, h ? h->prefilled : r.first_token);
  duration(out, t.kv_transfer, h ? h->prefilled : SimTime(), h ? h->arrived : SimTime());
  duration(out, t.ttft, r.arrival, r.first_token);
  out.number(t.tpot);
  duration(out, t.e2e, r.arrival, r.last_token);
  out.integer(q.input_tokens).integer(r.cached_tokens).integer(r.output_tokens);
  out.integer(r.preemptions).text(to_string(r.status)).text(slo_text(a.slo(i)));
  out.number(a.energy_j(i)).number(a.cost_usd(i));
  if (h) {
    out.text(a.scenario().pools[h->prefill_pool].name).integer(h->prefill_replica);
    out.number(h->bytes);
    duration(out, t.decode_queue, h->arrived, h->joined);
  } else {
    out.blank().blank().blank().blank();
  }
  out.integer(r.tier_cached_tokens).number(r.recall_s).integer(r.migrations);
  for (int p = 0; p < TimeShares::kParts; ++p) out.number(a.time_in(i, p));
  out.end_row();
}
}  // namespace

void write_requests_csv(const Analysis& a, const std::string& path, bool gzip) {
  TableFile out("requests.csv", path, gzip);
  RowChoice choice(a.scenario().report, a.result().arrived, a.scenario().seed);
  for (std::size_t i = 0; i < a.result().requests.size(); ++i) {
    if (a.arrived(i) && choice.take()) write_row(out, a, i);
  }
  out.close();
}

}  // namespace medley
