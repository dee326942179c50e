#include "sim/report/columns.h"

namespace medley {

namespace {
constexpr std::string_view kRequests = "requests.csv";
constexpr std::string_view kSummary = "summary.csv";
constexpr std::string_view kDevices = "devices.csv";
constexpr std::string_view kLinks = "links.csv";
constexpr std::string_view kEnergy = "energy.csv";
constexpr std::string_view kSeries = "timeseries.csv";
constexpr std::string_view kTiers = "tiers.csv";
constexpr std::string_view kMoves = "migrations.csv";
constexpr std::string_view kDraws = "uncertainty.csv";
constexpr std::string_view kCompare = "compare.csv";
constexpr std::string_view kLimits = "bottlenecks.csv";
}  // namespace

const std::vector<ColumnInfo>& report_columns() {
  static const std::vector<ColumnInfo> kAll = {
      {kRequests, "request_id", "",
       "row of the request in its source, from 0 (several sources: numbered on)"},
      {kRequests, "session_id", "", "session it belongs to; blank for single requests"},
      {kRequests, "turn", "1", "turn within the session, from 0"},
      {kRequests, "tenant", "", "tenant the workload names"},
      {kRequests, "slo_class", "", "class whose objectives apply"},
      {kRequests, "model", "", "model asked for"},
      {kRequests, "pool", "", "pool that served it; blank when none did"},
      {kRequests, "replica", "", "replica within the pool, from 0"},
      {kRequests, "arrival_s", "s", "arrival, from the start of the run"},
      {kRequests, "queue_s", "s", "first admitted to a batch - arrival"},
      {kRequests, "prefill_s", "s", "prompt computed - first admitted"},
      {kRequests, "kv_transfer_s", "s",
       "all KV at the decode replica - prompt computed (what the overlap did not hide, and waiting "
       "for room there); 0 where prefill and decode share a replica"},
      {kRequests, "ttft_s", "s", "first token - arrival"},
      {kRequests, "tpot_s", "s", "(last token - first token) / (output_tokens - 1); blank for 1"},
      {kRequests, "e2e_s", "s", "last token - arrival"},
      {kRequests, "input_tokens", "token", "prompt length"},
      {kRequests, "cached_tokens", "token", "prompt tokens found in the prefix cache at admission"},
      {kRequests, "output_tokens", "token", "tokens produced (by the end of the run)"},
      {kRequests, "preemptions", "1", "times it lost its KV blocks and was recomputed"},
      {kRequests, "finish_reason", "",
       "finished, rejected_too_long, rejected_never_fits, rejected_no_model or unfinished"},
      {kRequests, "slo_met", "",
       "true, false, or blank: no objectives, or unfinished and not yet late"},
      {kRequests, "energy_j", "J",
       "device energy attributed: own attention, and equal shares per token of weights, matrix "
       "work "
       "and active floor; idle is not attributed"},
      {kRequests, "cost_usd", "USD",
       "part of the pool's cost over the whole run, idle time included, in proportion to energy_j "
       "(to tokens where power is unknown)"},
      {kRequests, "prefill_pool", "",
       "pool that computed its prompt for `pool`; blank where one replica did both"},
      {kRequests, "prefill_replica", "", "replica within that pool"},
      {kRequests, "kv_transfer_bytes", "B", "KV sent to the decode replica"},
      {kRequests, "decode_queue_s", "s", "joined a batch there - all KV there"},
      {kRequests, "tier_cached_tokens", "token", "part of cached_tokens recalled from KV tiers"},
      {kRequests, "recall_s", "s",
       "waited for recalls from KV tiers (part of queue_s, but for those after preemptions)"},
      {kRequests, "migrations", "1", "times it moved to another replica while decoding"},
      {kRequests, "compute_s", "s",
       "time in steps of its batch until its last token: kernels bound by arithmetic (those of "
       "kernel tables in the proportions of the roofline; constant steps; what a power limit adds "
       "below the lowest clock)"},
      {kRequests, "memory_s", "s", "the same: kernels bound by memory"},
      {kRequests, "link_s", "s", "the same: collectives and sends between stages, as if alone"},
      {kRequests, "host_s", "s",
       "the same: kernel launches, host work that the device does not hide, and the front end"},
      {kRequests, "contention_s", "s",
       "the same: what steps took beyond what they take alone, devices or links being shared"},
      {kRequests, "stall_s", "s",
       "the same: between steps: its turn in the pipeline, and from a preemption to the next "
       "admission"},

      {kSummary, "scope", "", "fleet, pool, model, slo_class or tenant"},
      {kSummary, "name", "", "which one"},
      {kSummary, "metric", "", "see the metrics below"},
      {kSummary, "unit", "", "unit of all values in the row"},
      {kSummary, "count", "1", "observations behind the row"},
      {kSummary, "mean", "row", "mean, or the value itself for a single number"},
      {kSummary, "std", "row", "standard deviation (population)"},
      {kSummary, "min", "row", "smallest"},
      {kSummary, "p50", "row", "median; percentiles interpolate linearly between order statistics"},
      {kSummary, "p90", "row", "90th percentile"},
      {kSummary, "p95", "row", "95th percentile"},
      {kSummary, "p99", "row", "99th percentile"},
      {kSummary, "max", "row", "largest"},
      {kSummary, "lo90", "row",
       "lower end of the 90 % confidence interval of the mean (20 batch means in order of arrival; "
       "blank below 200 observations)"},
      {kSummary, "hi90", "row", "upper end"},
      {kSummary, "status", "",
       "ok, saturated, inconclusive (the run is too short to say), empty (nothing to count), or "
       "missing:<field> with blank values"},
      {kSummary, "draw_p5", "row",
       "5th percentile of `mean` over the parameter draws of --uncertainty; blank without"},
      {kSummary, "draw_p50", "row", "median over the draws"},
      {kSummary, "draw_p95", "row", "95th percentile over the draws"},
      {kSummary, "p50_draw_p5", "row", "the same of `p50`: 5th percentile over the draws"},
      {kSummary, "p50_draw_p95", "row", "95th percentile of `p50` over the draws"},
      {kSummary, "p99_draw_p5", "row", "5th percentile of `p99` over the draws"},
      {kSummary, "p99_draw_p95", "row", "95th percentile of `p99` over the draws"},

      {kDevices, "node_group", "", "group of the cluster"},
      {kDevices, "node", "", "node within the group, from 0"},
      {kDevices, "device", "", "device within the node, from 0"},
      {kDevices, "device_type", "", "catalogue name"},
      {kDevices, "pool", "", "pool it serves; blank: none"},
      {kDevices, "replica", "", "replica within the pool"},
      {kDevices, "busy_s", "s", "time in steps (a pipeline stage: its share of them)"},
      {kDevices, "utilization", "1", "busy_s over the run"},
      {kDevices, "energy_active_j", "J", "while in steps"},
      {kDevices, "energy_idle_j", "J", "model loaded, no step: context idle"},
      {kDevices, "energy_deep_idle_j", "J", "devices of no pool"},
      {kDevices, "energy_j", "J", "sum of the three"},
      {kDevices, "mean_w", "W", "energy_j over the run"},
      {kDevices, "mfu", "1", "flops over datasheet peak while busy"},
      {kDevices, "bandwidth_utilization", "1",
       "memory traffic over datasheet bandwidth while busy"},
      {kDevices, "limited_s", "s", "busy time with the clock lowered by the power limit"},
      {kDevices, "cost_usd", "USD", "its share of the node's rent or amortised price"},
      {kDevices, "power_class", "", "weakest provenance among its power numbers"},
      {kDevices, "status", "", "ok, or missing:<field> with blank energy"},
      {kDevices, "extrapolated_s", "s",
       "busy time of kernels outside the range that their model was fitted to or measured on"},
      {kDevices, "extrapolated_j", "J", "energy while in steps of the same kernels"},
      {kDevices, "waited_device_s", "s",
       "time its replica's kernels took beyond what they take alone: others were on the device"},
      {kDevices, "waited_link_s", "s",
       "time its replica's messages took beyond what they take alone: others were on the links"},

      {kLinks, "kind", "",
       "wire; of a device that replicas share: arithmetic, memory, or device (taking turns)"},
      {kLinks, "name", "", "wire of the cluster's topology, or the device"},
      {kLinks, "link", "", "catalogue name of the link it is made of"},
      {kLinks, "provenance", "", "class of its capacity"},
      {kLinks, "capacity_bytes_per_s", "B/s", "what it can carry; blank for arithmetic and turns"},
      {kLinks, "bytes", "B", "what it carried"},
      {kLinks, "utilization", "1", "share of what it could have carried in the run"},
      {kLinks, "busy_s", "s", "time with anything on it"},
      {kLinks, "saturated_s", "s", "time with all of its capacity in use"},
      {kLinks, "waited_s", "s",
       "by how much work took longer than alone, put down to what was saturated longest meanwhile; "
       "sum of the four below"},
      {kLinks, "kv_transfer_waits", "1",
       "KV transfers between replicas that waited for it longest"},
      {kLinks, "kv_transfer_waited_s", "s", "their waits"},
      {kLinks, "collective_waits", "1", "messages of steps"},
      {kLinks, "collective_waited_s", "s", "their waits"},
      {kLinks, "kernel_waits", "1", "kernels of steps, and host work on shared cores"},
      {kLinks, "kernel_waited_s", "s", "their waits"},
      {kLinks, "other_waits", "1", "other transfers: KV tiers, weights, migrations"},
      {kLinks, "other_waited_s", "s", "their waits"},

      {kEnergy, "start_s", "s", "begin of the interval"},
      {kEnergy, "end_s", "s", "end of the interval"},
      {kEnergy, "scope", "",
       "site (all nodes x PUE), node (AC: devices and overhead through the power supplies) or pool "
       "(its devices, DC)"},
      {kEnergy, "name", "", "pool, or <group>/<node>"},
      {kEnergy, "energy_j", "J", "energy in the interval"},
      {kEnergy, "mean_w", "W", "mean power"},
      {kEnergy, "peak_1s_w", "W", "highest mean over 1 s that ends in the interval"},
      {kEnergy, "peak_60s_w", "W", "the same over 60 s; blank until 60 s have passed"},
      {kEnergy, "limit_w", "W", "sum of the devices' power limits (pool)"},
      {kEnergy, "time_at_limit_s", "s",
       "device-mean time with the clock lowered by the limit (pool)"},

      {kSeries, "t_s", "s", "instant of the sample"},
      {kSeries, "pool", "", "pool"},
      {kSeries, "running", "request", "in a batch"},
      {kSeries, "waiting", "request", "queued at the replicas"},
      {kSeries, "kv_cache_pct", "%", "KV blocks in use"},
      {kSeries, "prompt_tok_s", "token/s", "prompt tokens computed since the last sample"},
      {kSeries, "gen_tok_s", "token/s", "output tokens since the last sample"},
      {kSeries, "power_w", "W", "mean device power since the last sample"},

      {kTiers, "pool", "", "pool whose KV it holds"},
      {kTiers, "level", "1", "place in the pool's list, from 0"},
      {kTiers, "where", "", "host, cxl, nvme or remote"},
      {kTiers, "node", "", "node within the pool's group; blank: of the whole pool"},
      {kTiers, "replica", "", "replica within the pool; blank: shared"},
      {kTiers, "capacity_bytes", "B", "KV it may hold"},
      {kTiers, "peak_bytes", "B", "most it held, blocks on their way to it included"},
      {kTiers, "recalls", "1", "prompts (and preempted requests) that read from it"},
      {kTiers, "recalled_tokens", "token", "tokens they read"},
      {kTiers, "bytes_in", "B", "stored by replicas, and evicted by the tier above"},
      {kTiers, "bytes_out", "B", "recalled, and evicted to the tier below"},
      {kTiers, "stored_entries", "1", "prefix entries taken in"},
      {kTiers, "evicted_entries", "1", "pushed out by others"},
      {kTiers, "dropped_entries", "1",
       "not taken in: no room beside what moves, or too much on its way (kv_staging)"},

      {kMoves, "request_id", "", "as in requests.csv"},
      {kMoves, "pool", "", "pool within which it moved"},
      {kMoves, "from_replica", "", "replica within the pool"},
      {kMoves, "to_replica", "", "replica within the pool"},
      {kMoves, "began_s", "s", "first copy starts"},
      {kMoves, "stopped_s", "s", "its last token at the first replica"},
      {kMoves, "arrived_s", "s", "all KV at the other one"},
      {kMoves, "stop_s", "s", "arrived_s - stopped_s"},
      {kMoves, "rounds", "1", "copies while it decoded"},
      {kMoves, "bytes", "B", "KV that crossed the links"},

      {kDraws, "draw", "1", "index of the parameter draw; 0: the nominal parameters"},
      {kDraws, "scope", "", "fleet, pool, model or slo_class"},
      {kDraws, "name", "", "which one"},
      {kDraws, "metric", "", "as in summary.csv"},
      {kDraws, "unit", "", "unit of the values"},
      {kDraws, "mean", "row", "mean of the draw's run, or the value itself for a single number"},
      {kDraws, "p50", "row", "median of the draw's run"},
      {kDraws, "p90", "row", "90th percentile of the draw's run"},
      {kDraws, "p99", "row", "99th percentile of the draw's run"},
      {kDraws, "status", "",
       "stability of the draw's run; infeasible (in one row without values) where it could not "
       "run"},

      {kLimits, "resource", "", "what there was more of; nominal: the run itself"},
      {kLimits, "change_pct", "%", "by how much"},
      {kLimits, "request_goodput", "request/s", "as in summary.csv; blank without objectives"},
      {kLimits, "output_throughput", "token/s", "as in summary.csv"},
      {kLimits, "ttft_p50_s", "s", "median time to first token"},
      {kLimits, "ttft_p99_s", "s", "99th percentile"},
      {kLimits, "tpot_p50_s", "s", "median time per output token"},
      {kLimits, "rate_gain_pct", "%",
       "request_goodput (without objectives: output_throughput) over the nominal one, less 100 %"},
      {kLimits, "ttft_p50_gain_pct", "%", "nominal time over this one, less 100 %"},
      {kLimits, "ttft_p99_gain_pct", "%", "likewise"},
      {kLimits, "tpot_p50_gain_pct", "%", "likewise"},
      {kLimits, "status", "", "ok, or infeasible: it could not run"},

      {kCompare, "candidate", "", "A, B, ... in the order of the command line"},
      {kCompare, "scenario", "", "name of the scenario"},
      {kCompare, "hash", "", "hash of the resolved scenario"},
      {kCompare, "metric", "", "metric of the fleet"},
      {kCompare, "unit", "", "unit of value, p5, p50, p95"},
      {kCompare, "value", "row", "under the nominal parameters"},
      {kCompare, "difference_pct", "%", "value over the first candidate's, less 100 %"},
      {kCompare, "p5", "row", "5th percentile over the parameter draws; blank without"},
      {kCompare, "p50", "row", "median over the draws"},
      {kCompare, "p95", "row", "95th percentile over the draws"},
      {kCompare, "difference_p5_pct", "%", "5th percentile of the difference within a draw"},
      {kCompare, "difference_p95_pct", "%", "95th percentile of the difference within a draw"},
      {kCompare, "better_pct", "%",
       "draws in which it is better than the first candidate, ties counted half"},
      {kCompare, "pairs", "1", "draws in which both ran and have a value"},
      {kCompare, "status", "", "stability of the run: only stable ones are answers"},
  };
  return kAll;
}

const std::vector<MetricInfo>& report_metrics() {
  static const std::vector<MetricInfo> kAll = {
      {"duration", "s", false, "length of the measured window; rates are per second of it"},
      {"num_requests", "request", false, "arrived in the window"},
      {"completed", "request", false, "of those, finished"},
      {"rejected", "request", false, "of those, refused: never fit, too long, or no such model"},
      {"unfinished", "request", false, "of those, still waiting or running when the run ended"},
      {"total_input_tokens", "token", false, "prompt tokens of completed requests"},
      {"total_output_tokens", "token", false, "output tokens of completed requests"},
      {"prefix_cache_hit_rate", "1", false, "cached over prompt tokens of admitted requests"},
      {"tier_hit_rate", "1", false, "part of prefix_cache_hit_rate recalled from KV tiers"},
      {"preemptions", "1", false, "evictions with recomputation"},
      {"migrations", "1", false, "moves of decoding requests to other replicas"},
      {"request_throughput", "request/s", false, "completions in the window per second"},
      {"request_goodput", "request/s", false,
       "completions in the window that met every objective they have, per second; empty where no "
       "class has any"},
      {"output_throughput", "token/s", false, "output tokens produced in the window per second"},
      {"total_token_throughput", "token/s", false, "prompt and output tokens in it per second"},
      {"slo_attainment", "1", false, "met every objective, of those that are decided"},
      {"slo_attainment_ttft", "1", false, "completed requests within the TTFT objective"},
      {"slo_attainment_tpot", "1", false, "completed requests within the TPOT objective"},
      {"slo_attainment_e2el", "1", false, "completed requests within the end-to-end objective"},
      {"ttft", "s", true, "time to first token: first token - arrival"},
      {"tpot", "s", true, "time per output token: (last - first) / (output - 1)"},
      {"itl", "s", true,
       "gaps between consecutive tokens of a request; whole run, quantiles within 0.4 %"},
      {"e2el", "s", true, "end-to-end latency: last token - arrival"},
      {"queue", "s", true, "admission - arrival"},
      {"prefill", "s", true, "prompt computed - admission"},
      {"kv_transfer", "s", true, "prefill and decode apart: KV there - prompt computed"},
      {"decode_queue", "s", true, "prefill and decode apart: joined a batch - KV there"},
      {"time_compute", "s", true, "compute_s of requests.csv, completed requests"},
      {"time_memory", "s", true, "memory_s of requests.csv, completed requests"},
      {"time_link", "s", true, "link_s of requests.csv, completed requests"},
      {"time_host", "s", true, "host_s of requests.csv, completed requests"},
      {"time_contention", "s", true, "contention_s of requests.csv, completed requests"},
      {"time_stall", "s", true, "stall_s of requests.csv, completed requests"},
      {"recall", "s", true, "recall_s of requests whose KV came from a tier"},
      {"migration_stop", "s", true,
       "of requests that moved: from their last token to all their KV being there"},
      {"input_tokens", "token", true, "prompt length of completed requests"},
      {"output_tokens", "token", true, "output length of completed requests"},
      {"request_energy", "J", true, "device energy attributed to a completed request"},
      {"request_cost", "USD", true, "cost_usd of a completed request"},
      {"devices", "1", false, "devices (fleet: of the cluster, unassigned ones included)"},
      {"replicas", "1", false, "replicas"},
      {"cold_start", "s", false, "mean time to load a replica's weights and start its engine"},
      {"utilization", "1", false, "device time in steps over device time of the run"},
      {"mfu", "1", false, "flops over datasheet peak while busy"},
      {"bandwidth_utilization", "1", false, "memory traffic over datasheet bandwidth while busy"},
      {"limited_share", "1", false, "share of busy time with the clock lowered by the power limit"},
      {"waited_device_share", "1", false,
       "share of busy time that kernels took beyond what they take alone: devices shared"},
      {"waited_link_share", "1", false, "the same of messages: links shared"},
      {"extrapolated_time_share", "1", false,
       "share of busy time in kernels outside the range that their model was fitted to or measured "
       "on"},
      {"extrapolated_energy_share", "1", false, "their share of the energy while in steps"},
      {"mean_running", "request", false, "mean of the samples in the window"},
      {"mean_waiting", "request", false, "mean of the samples in the window"},
      {"mean_kv_cache_usage", "1", false, "mean share of KV blocks in use"},
      {"peak_kv_cache_usage", "1", false, "highest share of KV blocks in use on any replica"},
      {"busiest_link_utilization", "1", false,
       "highest utilization in links.csv; empty where nothing is shared"},
      {"link_saturated", "s", false, "longest saturated_s in links.csv"},
      {"energy_devices", "J", false, "devices in the window, DC"},
      {"energy_it", "J", false,
       "devices with their share of node overhead, AC; spare devices of a node are shared by those "
       "in use"},
      {"energy_site", "J", false, "energy_it x PUE"},
      {"mean_power_devices", "W", false, "energy_devices per second"},
      {"mean_power_site", "W", false, "energy_site per second"},
      {"energy_per_output_token_devices", "J/token", false, "energy_devices per output token"},
      {"energy_per_output_token", "J/token", false, "energy_site per output token"},
      {"cost", "USD", false,
       "rent of the nodes (share of assigned devices), or capex over the amortisation time plus "
       "electricity"},
      {"cost_per_million_output_tokens", "USD", false, "cost per million output tokens"},
      {"cost_per_million_tokens", "USD", false, "cost per million prompt and output tokens"},
      {"electricity_cost", "USD", false, "energy_site x price.energy (part of cost when owned)"},
      {"carbon", "gCO2", false, "energy_site x price.carbon_intensity"},
      {"carbon_per_million_output_tokens", "gCO2", false, "carbon per million output tokens"},
      {"time_share_measured", "1", false, "busy time whose weakest number is measured"},
      {"energy_share_measured", "1", false, "device energy whose weakest number is measured"},
      {"time_share_datasheet", "1", false, "busy time resting on data sheets"},
      {"energy_share_datasheet", "1", false, "device energy resting on data sheets"},
      {"time_share_derived", "1", false, "busy time resting on derived numbers"},
      {"energy_share_derived", "1", false, "device energy resting on derived numbers"},
      {"time_share_assumed", "1", false, "busy time resting on assumed numbers"},
      {"energy_share_assumed", "1", false, "device energy resting on assumed numbers"},
  };
  return kAll;
}

const MetricInfo* find_metric(std::string_view metric) {
  for (const MetricInfo& m : report_metrics()) {
    if (m.metric == metric) return &m;
  }
  return nullptr;
}

std::vector<std::string> metric_names() {
  std::vector<std::string> all;
  for (const MetricInfo& m : report_metrics()) all.emplace_back(m.metric);
  return all;
}

const std::vector<ReportFile>& report_files() {
  static const std::vector<ReportFile> kAll = {
      {"manifest.json", "medley.manifest/1",
       "what ran and what it rests on: resolved scenario, versions, seed, fingerprint, imports, "
       "memory, provenance, warnings, missing values"},
      {"summary.json", "medley.summary/1", "metrics under the keys of vLLM's serving benchmark"},
      {"summary.csv", "medley.summary_csv/1", "every metric of every scope, one per row"},
      {"requests.csv", "medley.requests/1",
       "one row per request, in order of the trace (closed-loop turns after the open ones)"},
      {"requests.csv.gz", "medley.requests/1", "the same above a million rows"},
      {"devices.csv", "medley.devices/1", "one row per device"},
      {"links.csv", "medley.links/1",
       "one row per wire that carried bytes of simulated transfers and per shared device; no rows "
       "where nothing is shared"},
      {"energy.csv", "medley.energy/1", "energy and power per interval"},
      {"timeseries.csv", "medley.timeseries/1", "load and power of every pool over time"},
      {"tiers.csv", "medley.tiers/1", "one row per KV tier, where a pool has some"},
      {"migrations.csv", "medley.migrations/1",
       "one row per move of a decoding request, where there is a migration policy"},
      {"uncertainty.csv", "medley.uncertainty/1",
       "metrics of every parameter draw of --uncertainty"},
      {"bottlenecks.csv", "medley.bottlenecks/1",
       "of --bottlenecks: what more of each resource would gain, the most first"},
      {"compare.csv", "medley.compare_csv/1",
       "of medley compare: key metrics of every candidate, one per row"},
      {"compare.json", "medley.compare/1", "of medley compare: the same as a document"},
      {"trace.json", "medley.trace/1", "steps as a Chrome trace, for Perfetto"},
      {"columns.json", "medley.columns/1", "this list of columns and metrics"},
  };
  return kAll;
}

const std::vector<std::string>& report_file_names() {
  static const std::vector<std::string> kNames = [] {
    std::vector<std::string> names;
    for (const ReportFile& f : report_files()) names.emplace_back(f.name);
    return names;
  }();
  return kNames;
}

}  // namespace medley
