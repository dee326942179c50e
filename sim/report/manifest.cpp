#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "sim/core/text_file.h"
#include "sim/core/version.h"
#include "sim/report/columns.h"
#include "sim/report/provenance_count.h"
#include "sim/report/writers.h"

namespace medley {

using Json = nlohmann::ordered_json;

namespace {
constexpr std::int64_t kContexts[] = {2048, 8192, 32768, 131072};

/// Reports say the same on every machine: no folders from the root on.
std::string portable(const std::string& path) {
  const std::filesystem::path p(path);
  return p.is_absolute() ? p.filename().string() : path;
}

Json imports(const Trace& trace) {
  Json all = Json::array();
  for (const ImportAccount& a : trace.accounts) {
    Json one = {{"source", portable(a.source)},
                {"format", a.format},
                {"rows_read", a.rows_read},
                {"kept", a.kept}};
    one["dropped"] = Json::object();
    for (const auto& [reason, rows] : a.dropped) one["dropped"][reason] = rows;
    one["adjusted"] = Json::object();
    for (const auto& [reason, rows] : a.adjusted) one["adjusted"][reason] = rows;
    one["notes"] = a.notes;
    all.push_back(std::move(one));
  }
  return all;
}

Json memory(const MemoryAccount& m) {
  Json one = {{"capacity_bytes", m.capacity.value()},
              {"gpu_memory_utilization", m.utilization},
              {"weights_bytes", m.weights.value()},
              {"activations_bytes", m.activations.value()},
              {"context_bytes", m.context.value()},
              {"kv_bytes", m.kv.value()},
              {"kv_bytes_per_token", m.kv_bytes_per_token},
              {"state_bytes_per_sequence", m.state_per_sequence.value()},
              {"block_size", m.block_size},
              {"num_gpu_blocks", m.blocks},
              {"num_gpu_blocks_override", m.overridden}};
  Json& most = one["most_concurrent_requests"];
  for (const std::int64_t context : kContexts) {
    most[std::to_string(context)] = m.concurrent(context);
  }
  return one;
}

Json pools(const Analysis& a) {
  Json all = Json::object();
  for (std::size_t p = 0; p < a.scenario().pools.size(); ++p) {
    const PoolSpec& pool = a.scenario().pools[p];
    const PoolRecord& record = a.result().pools[p];
    const NodeGroup& group = a.scenario().nodes[pool.node_group];
    Json& one = all[pool.name];
    one = {{"node_group", group.name},
           {"device", group.device.name},
           {"model", pool.model.name},
           {"backend", pool.backend.name},
           {"weights", to_string(pool.precision.weights)},
           {"activations", to_string(pool.precision.activations)},
           {"kv_cache", to_string(pool.precision.kv)},
           {"replicas", pool.replicas},
           {"tensor_parallel_size", pool.tensor_parallel},
           {"pipeline_parallel_size", pool.pipeline_parallel},
           {"stability", to_string(record.stability)},
           {"stability_reason", record.stability_reason},
           {"backlog_slope_per_s", record.backlog_slope}};
    one["memory"] = memory(record.memory);
  }
  return all;
}

Json provenance(const Analysis& a) {
  Json out = Json::object();
  for (int c = 0; c < kProvenanceClasses; ++c) {
    const std::string name(to_string(static_cast<Provenance>(c)));
    out["time_share"][name] = a.trust().time[c];
    out["energy_share"][name] = a.trust().energy[c];
  }
  for (const ProvenanceCount& count : count_provenance(a.scenario())) {
    Json one = {{"kind", count.kind}, {"name", count.name}};
    for (int c = 0; c < kProvenanceClasses; ++c) {
      one[std::string(to_string(static_cast<Provenance>(c)))] = count.known[c];
    }
    one["unknown"] = count.unknown;
    out["values"].push_back(std::move(one));
  }
  return out;
}

Json missing(const Analysis& a) {
  Json all = Json::array();
  for (const MissingValue& m : a.account().missing()) {
    all.push_back({{"field", m.field},
                   {"node_group", m.group},
                   {"leaves_blank", m.affects},
                   {"supply", m.set_line}});
  }
  return all;
}

Json uncertainty(const Uncertainty& u) {
  Json out = {{"draws", u.draws()},
              {"seed", u.seed()},
              {"failed", u.failed()},
              {"saturated", u.saturated()}};
  out["failures"] = Json::array();
  for (std::size_t i = 1; i < u.outcomes().size(); ++i) {
    if (u.outcomes()[i].failure.empty()) continue;
    out["failures"].push_back({{"draw", i}, {"reason", u.outcomes()[i].failure}});
  }
  return out;
}

/// How steps were played, and by how much the other way differs where both were run.
Json contention(const Analysis& a, const FidelityCheck* fidelity) {
  const ContentionSpec& spec = a.scenario().contention;
  bool shared = false;
  for (const ReplicaRecord& r : a.result().replicas) shared = shared || r.shared;
  Json out = {{"steps", spec.steps ? "shared" : "alone"},
              {"fidelity", spec.layered ? "layered" : "folded"},
              {"steps_share", shared},
              {"transfers", a.result().transfers}};
  if (fidelity == nullptr) return out;
  out["layered_over_folded_pct"] = Json::object();
  for (const FidelityRow& row : fidelity_rows(*fidelity)) {
    const double d = 100.0 * row.difference();
    out["layered_over_folded_pct"][row.name] = std::isnan(d) ? Json(nullptr) : Json(d);
  }
  return out;
}
}  // namespace

std::string manifest_json(const Analysis& a, const std::vector<std::string>& files,
                          const ReportExtras& more) {
  const Scenario& s = a.scenario();
  const RunResult& r = a.result();
  Json out = Json::object();
  out["schema"] = "medley.manifest/1";
  out["program"] = {{"name", "medley"}, {"version", kVersion}};
  out["scenario"] = {{"name", s.name},
                     {"file", std::filesystem::path(s.file).filename().string()},
                     {"hash", s.hash8}};
  out["seed"] = s.seed;
  out["fast_forward"] = s.fast_forward;
  out["tie_seed"] = s.tie_seed ? Json(*s.tie_seed) : Json(nullptr);
  out["assume_missing"] = s.assume_missing;
  out["fingerprint"] = hex64(r.fingerprint);
  out["events"] = r.events;
  out["end_s"] = r.end.seconds().value();
  out["requests"] = {{"in_trace", r.requests.size()},
                     {"arrived", r.arrived},
                     {"finished", r.finished},
                     {"rejected", r.rejected},
                     {"unfinished", r.unfinished}};
  out["measured"] = {{"from_s", a.window().from},
                     {"to_s", a.window().to},
                     {"requests", a.fleet().value("num_requests")}};
  out["stability"] = to_string(r.stability);
  out["stability_reason"] = r.stability_reason;
  out["pools"] = pools(a);
  out["imports"] = imports(s.trace);
  out["provenance"] = provenance(a);
  out["missing"] = missing(a);
  if (more.draws) out["uncertainty"] = uncertainty(*more.draws);
  if (more.bottlenecks) out["bottlenecks"] = bottleneck_verdict(*more.bottlenecks);
  out["contention"] = contention(a, more.fidelity);
  out["warnings"] = s.warnings;
  for (const ReportFile& f : report_files()) {
    if (std::find(files.begin(), files.end(), f.name) == files.end()) continue;
    out["files"].push_back({{"file", f.name}, {"schema", f.schema}});
  }
  out["resolved"] = s.resolved_json.empty() ? Json(nullptr) : Json::parse(s.resolved_json);
  return out.dump(2) + "\n";
}

}  // namespace medley
