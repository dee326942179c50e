#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>

#include "hwmodels/catalog.h"
#include "sim/core/csv.h"
#include "sim/core/text_file.h"
#include "sim/serving/routing.h"
#include "tools/sourced_table.h"
#include "workloads/model.h"
#include "workloads/trace_fields.h"

namespace medley::cli {

namespace fs = std::filesystem;

namespace {
struct ListOptions {
  std::string what;
  std::vector<std::string> catalog_dirs, zoo_dirs;
  Format format = Format::kTable;
};

void list_devices(const ListOptions& o) {
  SourcedTable table({{"device", "device"},
                      {"vendor", "vendor"},
                      {"kind", "kind"},
                      {"year", "year"},
                      {"bf16/fp16", "peak_16bit", true},
                      {"fp8/int8", "peak_8bit", true},
                      {"memory", "memory", true},
                      {"bandwidth", "bandwidth", true},
                      {"limit", "power_limit", true},
                      {"floor", "active_floor", true},
                      {"rent", "rent", true},
                      {"capex", "capex", true}});
  const Catalog catalog(o.catalog_dirs);
  const auto first = [](const DeviceSpec& d, DType a, DType b) {
    return cell(d.peak[index(a)].known() ? d.peak[index(a)] : d.peak[index(b)]);
  };
  for (const DeviceSpec* d : catalog.devices()) {
    table.add({d->name, d->vendor, d->kind, d->year > 0 ? std::to_string(d->year) : "-",
               first(*d, DType::kBf16, DType::kFp16), first(*d, DType::kFp8, DType::kInt8),
               cell(d->memory_capacity), cell(d->memory_bandwidth), cell(d->power.limit),
               cell(d->power.active_floor), cell(d->rent), cell(d->capex)});
  }
  table.print(o.format);
}

void list_links(const ListOptions& o) {
  SourcedTable table({{"link", "link"},
                      {"kind", "kind"},
                      {"bandwidth", "bandwidth", true},
                      {"achieved", "achieved", true},
                      {"latency", "latency", true},
                      {"energy", "energy_per_byte", true}});
  const Catalog catalog(o.catalog_dirs);
  for (const LinkSpec* l : catalog.links()) {
    table.add({l->name, l->kind, cell(l->bandwidth), cell(l->achieved), cell(l->latency),
               cell(l->energy_per_byte)});
  }
  table.print(o.format);
}

void list_nodes(const ListOptions& o) {
  SourcedTable table({{"node", "node"},
                      {"devices", "devices"},
                      {"fabric", "fabric"},
                      {"bandwidth", "fabric_bandwidth", true},
                      {"host", "cpu"},
                      {"overhead", "overhead", true},
                      {"PSU", "psu_efficiency", true},
                      {"rent", "rent", true},
                      {"capex", "capex", true}});
  const Catalog catalog(o.catalog_dirs);
  for (const NodeSpec* n : catalog.nodes()) {
    table.add({n->name, fmt::format("{} x {}", n->devices, n->device),
               n->fabric_link.empty() ? "-" : n->fabric_link, cell(n->fabric_bandwidth),
               n->cpu.empty() ? "-" : fmt::format("{} x {}", n->cpus, n->cpu), cell(n->overhead),
               cell(n->psu_efficiency), cell(n->rent), cell(n->capex)});
  }
  table.print(o.format);
}

void list_backends(const ListOptions& o) {
  SourcedTable table({{"backend", "backend"},
                      {"host", "host_mode"},
                      {"per step", "host_per_step", true},
                      {"per sequence", "host_per_sequence", true},
                      {"reserve", "context_reserve", true},
                      {"utilization", "memory_utilization", true},
                      {"graphs", "graph_capture"},
                      {"block", "block_size"},
                      {"seqs", "max_num_seqs"},
                      {"tokens", "max_num_batched_tokens"}});
  const Catalog catalog(o.catalog_dirs);
  for (const BackendSpec* b : catalog.backends()) {
    table.add({b->name, b->host_mode == HostMode::kSerial ? "serial" : "overlapped",
               cell(b->host_per_step), cell(b->host_per_sequence), cell(b->context_reserve),
               cell(b->memory_utilization), b->graph_capture ? "yes" : "no",
               std::to_string(b->block_size), std::to_string(b->max_num_seqs),
               std::to_string(b->max_num_batched_tokens)});
  }
  table.print(o.format);
}

void list_topologies(const ListOptions& o) {
  constexpr const char* kJoins[] = {"NICs", "devices", "sockets", "inside of a server"};
  TextTable table({{"topology", "topology"},
                   {"kind", "kind"},
                   {"joins", "joins"},
                   {"endpoints", "endpoints", TextTable::Align::kRight},
                   {"class", "class"},
                   {"aliases", "aliases"}});
  const Catalog catalog(o.catalog_dirs);
  for (const FabricSpec* f : catalog.topologies()) {
    const FabricKindInfo& kind = *find_fabric_kind(f->kind);
    table.add({f->name, f->kind, kJoins[static_cast<std::size_t>(kind.ports)],
               std::to_string(build_topology(catalog, *f).endpoints.size()),
               std::string(to_string(f->provenance)),
               fmt::format("{}", fmt::join(f->aliases, ", "))});
  }
  print_table(table, o.format);
}

std::string billions(double n) {
  return fmt::format("{:.3g} B", n / 1e9);
}

void list_models(const ListOptions& o) {
  TextTable table({{"model", "model", TextTable::Align::kLeft},
                   {"family", "family", TextTable::Align::kLeft},
                   {"parameters", "parameters", TextTable::Align::kRight},
                   {"active", "active_parameters", TextTable::Align::kRight},
                   {"layers", "layers", TextTable::Align::kRight},
                   {"weights", "weights", TextTable::Align::kLeft},
                   {"KV B/token (bf16)", "kv_bytes_per_token", TextTable::Align::kRight},
                   {"context", "max_positions", TextTable::Align::kRight}});
  for (const ModelSpec& m : ModelZoo(zoo_folders(o.zoo_dirs)).all()) {
    const bool table_form = o.format == Format::kTable;
    const auto amount = [&](double n) { return table_form ? billions(n) : number_text(n); };
    table.add({m.name, m.family, amount(total_parameters(m)), amount(active_parameters(m)),
               std::to_string(m.total_layers()), std::string(to_string(published_weights(m))),
               number_text(kv_bytes_per_token(m, 1, 1, 0, DType::kBf16)),
               m.max_positions > 0 ? std::to_string(m.max_positions) : "-"});
  }
  print_table(table, o.format);
}

std::string params_text(const std::vector<ParamInfo>& params) {
  std::string text;
  for (const ParamInfo& p : params) {
    text += fmt::format("{}{}={} ({})", text.empty() ? "" : "; ", p.name, number_text(p.fallback),
                        p.summary);
  }
  return text.empty() ? "-" : text;
}

/// Policies of a pool that are words, not registered factories.
struct PoolPolicy {
  const char* key;
  const char* word;
  const char* summary;
};
constexpr PoolPolicy kPoolPolicies[] = {
    {"scheduler", "chunked", "running requests first, prompts in chunks within the token budget"},
    {"scheduler", "continuous", "whole prompts join the running batch"},
    {"scheduler", "static", "a batch is formed when the replica is empty and runs to its end"},
    {"scheduling_policy", "fcfs", "first come, first served; the last admitted is preempted first"},
    {"scheduling_policy", "priority",
     "lower priority numbers first; the least urgent is preempted"}};

void list_policies(const ListOptions& o) {
  TextTable table({{"kind", "kind"},
                   {"policy", "policy"},
                   {"what it does", "summary"},
                   {"parameters", "parameters"}});
  for (const auto& [name, entry] : routing_registry().entries()) {
    table.add({"routing.policy", name, entry.summary, params_text(entry.params)});
  }
  for (const auto& [key, word, summary] : kPoolPolicies) {
    table.add({fmt::format("pools.<name>.{}", key), word, summary, "-"});
  }
  print_table(table, o.format);
}

void list_formats(const ListOptions& o) {
  TextTable table({{"format", "format"}, {"file", "file"}, {"what it is", "summary"}});
  for (const TraceFormat& f : trace_formats()) {
    table.add({std::string(f.name), f.json_lines ? "JSON lines" : "CSV", std::string(f.summary)});
  }
  print_table(table, o.format);
}

/// The first sentence of the comment that opens the file.
std::string opening_comment(const fs::path& file) {
  LineReader lines(file.string());
  std::string text;
  std::string_view line;
  while (lines.next(line) && line.starts_with("//")) {
    line.remove_prefix(2);
    const std::size_t begin = line.find_first_not_of(' ');
    if (begin == std::string_view::npos) break;
    if (!text.empty()) text += ' ';
    text += line.substr(begin);
  }
  const std::size_t end = text.find(". ");
  if (end != std::string::npos) text.resize(end);
  if (text.ends_with('.')) text.pop_back();
  return text;
}

void list_scenarios(const ListOptions& o) {
  const fs::path root = fs::path(shipped_data_directory()) / "configs" / "scenarios";
  std::vector<fs::path> files;
  std::error_code error;
  for (const auto& entry : fs::recursive_directory_iterator(root, error)) {
    if (entry.path().extension() == ".json") files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  TextTable table({{"scenario", "scenario"}, {"what it shows", "summary"}, {"file", "file"}});
  for (const fs::path& file : files) {
    table.add({file.lexically_relative(root).replace_extension().string(), opening_comment(file),
               file.lexically_proximate(fs::current_path()).string()});
  }
  print_table(table, o.format);
}

int list_command(const ListOptions& o) {
  if (o.what == "devices") list_devices(o);
  if (o.what == "links") list_links(o);
  if (o.what == "nodes") list_nodes(o);
  if (o.what == "backends") list_backends(o);
  if (o.what == "topologies") list_topologies(o);
  if (o.what == "models") list_models(o);
  if (o.what == "policies") list_policies(o);
  if (o.what == "formats") list_formats(o);
  if (o.what == "scenarios") list_scenarios(o);
  return kOk;
}
}  // namespace

void add_list(CLI::App& app, Action& action) {
  auto o = std::make_shared<ListOptions>();
  CLI::App& c = *app.add_subcommand("list", "list what there is to choose from");
  c.add_option(
       "what", o->what,
       "devices, links, nodes, backends, topologies, models, policies, formats or scenarios")
      ->required()
      ->type_name("WHAT")
      ->check(CLI::IsMember({"devices", "links", "nodes", "backends", "topologies", "models",
                             "policies", "formats", "scenarios"}));
  add_catalog_options(c, o->catalog_dirs, o->zoo_dirs);
  add_format_option(c, o->format);
  c.callback([o, &action] { action = [o] { return list_command(*o); }; });
}

}  // namespace medley::cli
