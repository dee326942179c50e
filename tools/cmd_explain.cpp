#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "sim/core/error.h"
#include "sim/scenario/validate.h"
#include "tools/batch_text.h"
#include "tools/command.h"

namespace medley::cli {

namespace {
struct ExplainOptions {
  ScenarioOptions scenario;
  std::string pool;
  std::string batch = "prefill:512@0,decode:32x1024";
  Format format = Format::kTable;
};

const PoolSpec& pick_pool(const Scenario& s, const std::string& name) {
  if (name.empty()) return s.pools.front();
  std::vector<std::string> names;
  for (const PoolSpec& p : s.pools) {
    if (p.name == name) return p;
    names.push_back(p.name);
  }
  throw InputError("--pool", "", fmt::format("no pool \"{}\"", name), suggest(name, names));
}

std::string micro(double seconds) {
  return fmt::format("{:.3f}", seconds * 1e6);
}

std::string amount(double v) {
  return v == 0.0 ? "0" : fmt::format("{:.4g}", v);
}

TextTable op_table(const std::vector<OpCost>& rows) {
  constexpr auto kRight = TextTable::Align::kRight;
  TextTable table({{"op", "op", TextTable::Align::kLeft},
                   {"class", "class", TextTable::Align::kLeft},
                   {"dtype", "dtype", TextTable::Align::kLeft},
                   {"stage", "stage", kRight},
                   {"x", "repeats", kRight},
                   {"flop", "flops", kRight},
                   {"B", "bytes", kRight},
                   {"message B", "message_bytes", kRight},
                   {"compute us", "compute_us", kRight},
                   {"memory us", "memory_us", kRight},
                   {"serial", "serial", kRight},
                   {"launch us", "launch_us", kRight},
                   {"total us", "total_us", kRight},
                   {"bound by", "bound", TextTable::Align::kLeft},
                   {"class", "provenance", TextTable::Align::kLeft},
                   {"range", "range", TextTable::Align::kLeft},
                   {"source", "source", TextTable::Align::kLeft}});
  for (const OpCost& r : rows) {
    table.add({r.name, std::string(to_string(r.op_class)), std::string(to_string(r.dtype)),
               std::to_string(r.stage), std::to_string(r.repeats), amount(r.flops), amount(r.bytes),
               amount(r.message_bytes), micro(r.compute_s), micro(r.memory_s), amount(r.serial),
               micro(r.launch_s), micro(r.time_s), r.bound, std::string(to_string(r.provenance)),
               r.range.empty() ? "-" : r.range, r.source});
  }
  return table;
}

std::string host_text(const StepModel& model, const Features& x, const StepCost& cost) {
  const BackendSpec& b = model.input().backend;
  const auto seconds = [](const Sourced<Seconds>& s) { return s.known() ? (*s).value() : 0.0; };
  const double sequences = at(x, Feature::kSequences);
  const double host = seconds(b.host_per_step) + seconds(b.host_per_sequence) * sequences;
  if (b.ideal())
    return fmt::format("host: none (ideal backend)\nstep: {} us\n", micro(cost.step_s));
  const bool serial = b.host_mode == HostMode::kSerial;
  const double sync = seconds(b.sync_per_step) + seconds(b.sync_per_sequence) * sequences;
  std::string text = fmt::format(
      "host ({}): {} us per step + {} us x {:.0f} sequences = {} us\n"
      "sync: {} us per step + {} us x {:.0f} sequences = {} us\n",
      b.name, micro(seconds(b.host_per_step)), micro(seconds(b.host_per_sequence)), sequences,
      micro(host), micro(seconds(b.sync_per_step)), micro(seconds(b.sync_per_sequence)), sequences,
      micro(sync));
  if (cost.host_floor_s > (serial ? 0.0 : host)) {
    text +=
        fmt::format("issue of kernels outside a captured graph: {} us\n", micro(cost.host_floor_s));
  }
  text +=
      fmt::format("step = {} = {} us\n",
                  serial ? "max(device, issue) + host + sync" : "max(device, issue, host) + sync",
                  micro(cost.step_s));
  if (b.request_overhead.known()) {
    text +=
        fmt::format("front end, once per request: {} us + {} us x tokens of its prompt\n",
                    micro(seconds(b.request_overhead)), micro(seconds(b.prompt_token_overhead)));
  }
  return text;
}

std::string energy_text(const StepModel& model, const StepCost& cost) {
  const ReplicaPower& p = model.power();
  if (!p.dynamic_known || !p.active_floor) {
    return fmt::format("energy: blank, missing {}\n",
                       p.missing.empty() ? "power" : fmt::format("{}", fmt::join(p.missing, ", ")));
  }
  const double floor = p.active_floor->value() * p.devices;
  const double total = floor * cost.step_s + cost.dynamic_j;
  return fmt::format(
      "energy: floor {:.1f} W x {} us + {:.4g} J dynamic = {:.4g} J ({:.1f} W over {} device(s); "
      "clock {:.3f}; {})\n",
      floor, micro(cost.step_s), cost.dynamic_j, total, total / cost.step_s, p.devices, cost.clock,
      to_string(p.provenance));
}

int explain_command(const ExplainOptions& o) {
  const Batch batch = parse_batch(o.batch);
  LoadOptions load = o.scenario.load();
  load.build_trace = false;
  const LoadedScenario loaded = load_with_catalog(load);
  const PoolSpec& pool = pick_pool(loaded.scenario, o.pool);
  const StepModel model(*loaded.catalog, step_model_input(loaded.scenario, pool));
  const Features x = make_features(model.context(), batch.chunks, batch.decodes);
  const double longest =
      batch.decodes.empty()
          ? 0.0
          : static_cast<double>(*std::max_element(batch.decodes.begin(), batch.decodes.end()));
  const std::vector<OpCost> rows = model.explain(x, longest);
  const StepCost cost = model.step(x, longest);
  const TextTable table = op_table(rows);
  if (o.format != Format::kTable) {
    print_table(table, o.format);
    return kOk;
  }
  double total = 0.0;
  for (const OpCost& r : rows) total += r.time_s;
  const NodeGroup& group = loaded.scenario.nodes[pool.node_group];
  std::string text = fmt::format("pool {}: {} on {} (tp {}, pp {}), {}; batch {}\n\n", pool.name,
                                 pool.model.name, group.device.name, pool.tensor_parallel,
                                 pool.pipeline_parallel, pool.backend.name, o.batch);
  text +=
      "total = x * (launch + max(compute, memory) + serial min(compute, memory)),\n"
      "compute = (flop + half) / (peak * e),   memory = (B + half) / (bandwidth * e)\n"
      "(flop, B and times but the total are of one repeat on one rank; half, e and serial: `medley "
      "show device`;\n launch: the device's, stream or graph, times the backend's fused share;\n "
      "range: is the work inside what the model was fitted to; - where that is not stated)\n\n";
  text += table.aligned();
  text +=
      fmt::format("\nsum of the totals: {} us; device: {} us", micro(total), micro(cost.device_s));
  if (pool.pipeline_parallel > 1) text += fmt::format(", slowest stage {} us", micro(cost.stage_s));
  text += "\n" + host_text(model, x, cost) + energy_text(model, cost);
  print(text);
  return kOk;
}
}  // namespace

void add_explain(CLI::App& app, Action& action) {
  auto o = std::make_shared<ExplainOptions>();
  CLI::App& c = *app.add_subcommand("explain", "break the time of one step down into its kernels");
  add_scenario_options(c, o->scenario);
  c.add_option("--pool", o->pool, "pool to explain (default: the first)")->type_name("POOL");
  c.add_option("--batch", o->batch, "what is in the step")
      ->type_name("BATCH")
      ->capture_default_str();
  add_format_option(c, o->format);
  c.callback([o, &action] { action = [o] { return explain_command(*o); }; });
}

}  // namespace medley::cli
