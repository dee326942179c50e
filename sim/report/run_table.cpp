#include "sim/report/run_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sim/core/text_file.h"
#include "sim/core/unit_text.h"
#include "sim/report/text_table.h"

namespace medley {

namespace {
constexpr auto kLeft = TextTable::Align::kLeft;
constexpr auto kRight = TextTable::Align::kRight;

std::string pair_ms(const ScopeSummary& scope, std::string_view metric) {
  const MetricRow* row = scope.find(metric);
  if (!row || row->moments.count == 0) return "-";
  return fmt::format("{} / {}", short_number(row->moments.p50 * 1e3),
                     short_number(row->moments.p99 * 1e3));
}

std::string p99_ms(const ScopeSummary& scope, std::string_view metric) {
  const MetricRow* row = scope.find(metric);
  return row && row->moments.count > 0 ? short_number(row->moments.p99 * 1e3) : "-";
}

std::vector<std::string> numbers(const ScopeSummary& s) {
  const double requests = s.value("num_requests");
  const double failed = s.value("rejected") + s.value("unfinished");
  return {failed > 0.0 ? fmt::format("{:.0f} ({:.0f} failed)", requests, failed)
                       : fmt::format("{:.0f}", requests),
          pair_ms(s, "ttft"),
          pair_ms(s, "tpot"),
          p99_ms(s, "itl"),
          short_number(s.value("output_throughput")),
          percent(s.value("slo_attainment")),
          short_number(s.value("energy_per_output_token")),
          short_number(s.value("cost_per_million_output_tokens")),
          percent(s.value("utilization")),
          short_joules(s.value("energy_site"))};
}

std::string trust_line(const char* what, const double (&shares)[kProvenanceClasses]) {
  std::string text;
  double sum = 0.0;
  for (int c = 0; c < kProvenanceClasses; ++c) {
    sum += shares[c];
    text += fmt::format("{}{} {:.0f} %", c > 0 ? ", " : "", to_string(static_cast<Provenance>(c)),
                        100.0 * shares[c]);
  }
  return sum > 0.0 ? fmt::format("{} rests on: {}\n", what, text) : "";
}

/// "extrapolated: 3 % of time, 2 % of energy (small-l40s 12 %, ...)"; nothing below half a percent.
std::string extrapolated_line(const Analysis& a) {
  constexpr double kWorthTelling = 0.005;
  const double time = a.fleet().value("extrapolated_time_share");
  const double energy = a.fleet().value("extrapolated_energy_share");
  std::string pools;
  for (std::size_t p = 0; p < a.scenario().pools.size(); ++p) {
    const double share = a.pool(p).value("extrapolated_time_share");
    if (!(share >= kWorthTelling)) continue;
    pools += fmt::format("{}{} {:.0f} %", pools.empty() ? "" : ", ", a.scenario().pools[p].name,
                         100.0 * share);
  }
  if (pools.empty()) return "";
  const std::string joules =
      std::isnan(energy) ? "" : fmt::format(", {:.0f} % of energy", 100.0 * energy);
  return fmt::format(
      "extrapolated (work outside the range of its kernel model): {:.0f} % of time{} ({})\n",
      100.0 * time, joules, pools);
}

/// "links: ..." in one line: the one that made others wait longest, else the busiest.
std::string links_line(const Analysis& a) {
  constexpr const char* kWho[kTrafficKinds] = {"KV transfers", "collectives", "kernels", "others"};
  const double run = a.account().run_s();
  const LinkRecord* first = nullptr;
  for (const LinkRecord& link : a.result().links) {
    if (!first || std::make_pair(link.waited_s(), link_utilization(link, run)) >
                      std::make_pair(first->waited_s(), link_utilization(*first, run))) {
      first = &link;
    }
  }
  if (!first) {
    return a.result().transfers ? "links: nothing crossed a shared link\n"
                                : "links: no shared link\n";
  }
  std::string who;
  for (int k = 0; k < kTrafficKinds; ++k) {
    const TrafficWaits& w = first->waits[static_cast<std::size_t>(k)];
    if (w.count == 0) continue;
    who += fmt::format("{}{} {} for {} s", who.empty() ? "" : ", ", w.count, kWho[k],
                       short_number(w.seconds));
  }
  return fmt::format("links: {} {} {}, {} of {} s saturated; waited for it: {}\n",
                     to_string(first->kind), first->name, percent(link_utilization(*first, run)),
                     short_number(first->saturated_s), short_number(run),
                     who.empty() ? "nobody" : who);
}

std::string verdict(const Analysis& a, bool colour) {
  const std::string word(to_string(a.result().stability));
  const bool bad = a.result().stability == Stability::kSaturated;
  const std::string shown = colour && bad ? "\x1b[1;31m" + word + "\x1b[0m" : word;
  std::string text = "stability: " + shown;
  if (!a.result().stability_reason.empty()) text += " (" + a.result().stability_reason + ")";
  return text + "\n";
}

std::string missing_lines(const Analysis& a) {
  std::string text;
  for (const MissingValue& m : a.account().missing()) {
    const std::string where = m.group.empty() ? "" : fmt::format(" of {}", m.group);
    text += fmt::format("missing: {}{} leaves {} blank; supply {}\n", m.field, where, m.affects,
                        m.set_line);
  }
  return text;
}
}  // namespace

std::string run_table(const Analysis& a, bool colour) {
  TextTable table({{"pool", "", kLeft},
                   {"device", "", kLeft},
                   {"replicas", "", kRight},
                   {"requests", "", kRight},
                   {"TTFT p50/p99 ms", "", kRight},
                   {"TPOT p50/p99 ms", "", kRight},
                   {"ITL p99 ms", "", kRight},
                   {"tok/s", "", kRight},
                   {"SLO", "", kRight},
                   {"J/tok", "", kRight},
                   {"USD/Mtok", "", kRight},
                   {"util", "", kRight},
                   {"energy", "", kRight}});
  const auto add = [&](std::vector<std::string> head, const ScopeSummary& scope) {
    for (std::string& cell : numbers(scope)) head.push_back(std::move(cell));
    table.add(std::move(head));
  };
  for (std::size_t p = 0; p < a.scenario().pools.size(); ++p) {
    const PoolSpec& pool = a.scenario().pools[p];
    const int devices = pool.devices_per_replica();
    const std::string device = a.scenario().nodes[pool.node_group].device.name;
    add({pool.name, devices > 1 ? fmt::format("{} x{}", device, devices) : device,
         std::to_string(pool.replicas)},
        a.pool(p));
  }
  table.rule();
  add({"fleet", fmt::format("{} devices", a.account().devices()),
       fmt::format("{}", a.result().replicas.size())},
      a.fleet());
  std::string text = table.aligned();
  text += fmt::format(
      "\nrequests: {} arrived = {} finished + {} rejected + {} unfinished; window {} s to {} s\n",
      a.result().arrived, a.result().finished, a.result().rejected, a.result().unfinished,
      short_number(a.window().from), short_number(a.window().to));
  text += "J/tok and energy: site (node overhead and PUE in); tok: output tokens\n";
  text += trust_line("time  ", a.trust().time);
  text += trust_line("energy", a.trust().energy);
  text += extrapolated_line(a);
  text += links_line(a);
  text += verdict(a, colour);
  text += missing_lines(a);
  text += fmt::format("fingerprint: {}\n", hex64(a.result().fingerprint));
  return text;
}

std::string memory_table(const Scenario& scenario, const std::vector<MemoryAccount>& accounts) {
  constexpr std::int64_t kContexts[] = {2048, 8192, 32768, 131072};
  constexpr double kGib = 1073741824.0;
  TextTable table({{"pool", "", kLeft},
                   {"model", "", kLeft},
                   {"device", "", kLeft},
                   {"memory GiB", "memory_gib", kRight},
                   {"x util", "gpu_memory_utilization", kRight},
                   {"- weights", "weights_gib", kRight},
                   {"- activations", "activations_gib", kRight},
                   {"- context", "context_gib", kRight},
                   {"= KV GiB", "kv_gib", kRight},
                   {"B/token", "kv_bytes_per_token", kRight},
                   {"blocks", "num_gpu_blocks", kRight},
                   {"at 2k", "concurrent_2048", kRight},
                   {"8k", "concurrent_8192", kRight},
                   {"32k", "concurrent_32768", kRight},
                   {"128k", "concurrent_131072", kRight}});
  for (std::size_t p = 0; p < accounts.size(); ++p) {
    const MemoryAccount& m = accounts[p];
    const PoolSpec& pool = scenario.pools[p];
    const auto gib = [](Bytes b) { return fmt::format("{:.2f}", b.value() / kGib); };
    std::vector<std::string> row = {pool.name,
                                    pool.model.name,
                                    scenario.nodes[pool.node_group].device.name,
                                    gib(m.capacity),
                                    short_number(m.utilization),
                                    gib(m.weights),
                                    gib(m.activations),
                                    gib(m.context),
                                    gib(m.kv),
                                    fmt::format("{:.0f}", m.kv_bytes_per_token),
                                    fmt::format("{}{}", m.blocks, m.overridden ? " (set)" : "")};
    for (const std::int64_t context : kContexts) {
      const bool beyond = pool.max_model_len > 0 && context > pool.max_model_len;
      row.push_back(beyond ? "-" : std::to_string(m.concurrent(context)));
    }
    table.add(std::move(row));
  }
  return table.aligned();
}

}  // namespace medley
