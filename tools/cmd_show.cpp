#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>

#include "hwmodels/catalog.h"
#include "hwmodels/read.h"
#include "sim/core/error.h"
#include "tools/show_topology.h"
#include "tools/sourced_table.h"
#include "workloads/model.h"

namespace medley::cli {

namespace {
struct ShowOptions {
  std::string what, name;
  std::vector<std::string> catalog_dirs, zoo_dirs;
  Format format = Format::kTable;
  bool dot = false;
};

/// Rows of (field, value, error, range, class, source).
class Sheet {
 public:
  void plain(std::string field, std::string value) {
    if (!value.empty()) table_.add({std::move(field), std::move(value), "", "", "", ""});
  }
  /// `always`: also when unknown.
  template <class Q>
  void value(std::string field, const Sourced<Q>& v, bool always = true) {
    if (!v.known() && !always) return;
    const Cell c = cell(v);
    table_.add({std::move(field), c.text, error_text(v), "",
                c.provenance ? std::string(to_string(*c.provenance)) : "", v.source});
  }
  template <class Q>
  void ramp(std::string field, const Sourced<Ramp>& v) {
    if (!v.known()) return;
    const Ramp& r = *v.value;
    std::string text = fmt::format("{:.3g}, half at {}", r.fraction, short_text(Q(r.half)));
    if (r.serial > 0.0) text += fmt::format(", {:.3g} serial", r.serial);
    std::string range;
    if (std::isfinite(r.high)) {
      range = fmt::format("{} to {}", short_text(Q(r.low)), short_text(Q(r.high)));
    }
    table_.add({std::move(field), std::move(text), error_text(v), std::move(range),
                std::string(to_string(v.provenance)), v.source});
  }
  void row(std::string field, std::string value, Provenance p, std::string source) {
    table_.add(
        {std::move(field), std::move(value), "", "", std::string(to_string(p)), std::move(source)});
  }
  void print(Format format) const { print_table(table_, format); }

 private:
  /// Three digits are enough to read.
  template <class Q>
  static std::string short_text(Q q) {
    return format_quantity(Q(std::stod(fmt::format("{:.3g}", q.value()))));
  }
  /// "6.1 %, n 2500": relative standard error and samples, where stated.
  template <class T>
  static std::string error_text(const Sourced<T>& v) {
    std::string text = v.error > 0.0 ? fmt::format("{:.3g} %", 100.0 * v.error) : "";
    if (v.n > 0) text += fmt::format("{}n {}", text.empty() ? "" : ", ", v.n);
    return text;
  }
  TextTable table_{{{"field"}, {"value"}, {"error"}, {"range"}, {"class"}, {"source"}}};
};

std::string comma_list(const std::vector<std::string>& words) {
  return fmt::format("{}", fmt::join(words, ", "));
}

void show_efficiency(const DeviceSpec& d, Sheet& sheet) {
  for (int c = 0; c < kOpClasses; ++c) {
    const auto op = static_cast<OpClass>(c);
    const OpEfficiency& e = d.efficiency[index(op)];
    for (int t = 0; t < kDTypes; ++t) {
      const auto dtype = static_cast<DType>(t);
      sheet.ramp<Flops>(fmt::format("efficiency.{}.compute.{}", to_string(op), to_string(dtype)),
                        e.compute[index(dtype)]);
    }
    for (int t = 0; t < kDTypes; ++t) {
      const auto dtype = static_cast<DType>(t);
      const std::string at = fmt::format("efficiency.{}.compute", to_string(op));
      sheet.ramp<Flops>(fmt::format("{}_block_scaled.{}", at, to_string(dtype)),
                        e.compute_block_scaled[index(dtype)]);
      sheet.ramp<Flops>(fmt::format("{}_by_format.{}", at, to_string(dtype)),
                        e.compute_by_format[index(dtype)]);
    }
    sheet.ramp<Bytes>(fmt::format("efficiency.{}.memory", to_string(op)), e.memory);
    for (int t = 0; t < kDTypes; ++t) {
      const auto dtype = static_cast<DType>(t);
      sheet.ramp<Bytes>(
          fmt::format("efficiency.{}.memory_by_format.{}", to_string(op), to_string(dtype)),
          e.memory_by_format[index(dtype)]);
    }
  }
}

void show_device(const ShowOptions& o, Sheet& sheet) {
  const Catalog catalog(o.catalog_dirs);
  const DeviceSpec& d = catalog.device(o.name);
  sheet.plain("name", d.name);
  sheet.plain("vendor", d.vendor);
  sheet.plain("kind", d.kind);
  if (d.year > 0) sheet.plain("year", std::to_string(d.year));
  sheet.plain("aliases", comma_list(d.aliases));
  sheet.plain("notes", d.notes);
  for (int t = 0; t < kDTypes; ++t) {
    const auto dtype = static_cast<DType>(t);
    sheet.value(fmt::format("peak.{}", to_string(dtype)), d.peak[index(dtype)], false);
    sheet.value(fmt::format("sustained.{}", to_string(dtype)), d.sustained[index(dtype)], false);
  }
  sheet.value("memory.capacity", d.memory_capacity);
  sheet.value("memory.bandwidth", d.memory_bandwidth);
  sheet.value("memory.last_level_cache", d.last_level_cache, false);
  sheet.value("launch.stream", d.launch_stream);
  sheet.value("launch.graph", d.launch_graph);
  sheet.value("power.limit", d.power.limit);
  sheet.value("power.deep_idle", d.power.deep_idle);
  sheet.value("power.context_idle", d.power.context_idle);
  sheet.value("power.active_floor", d.power.active_floor);
  for (int t = 0; t < kDTypes; ++t) {
    const auto dtype = static_cast<DType>(t);
    sheet.value(fmt::format("power.energy_per_flop.{}", to_string(dtype)),
                d.power.energy_per_flop[index(dtype)], d.peak[index(dtype)].known());
  }
  sheet.value("power.energy_per_byte", d.power.energy_per_byte);
  sheet.value("power.clock_min", d.power.clock_min);
  sheet.value("power.voltage_floor", d.power.voltage_floor);
  sheet.plain("fabric", d.fabric);
  sheet.plain("host_link", d.host_link);
  sheet.value("price.capex", d.capex);
  sheet.value("price.rent", d.rent);
  show_efficiency(d, sheet);
}

void show_link(const ShowOptions& o, Sheet& sheet) {
  const Catalog catalog(o.catalog_dirs);
  const LinkSpec& l = catalog.link(o.name);
  sheet.plain("name", l.name);
  sheet.plain("kind", l.kind);
  sheet.plain("aliases", comma_list(l.aliases));
  sheet.plain("notes", l.notes);
  sheet.value("bandwidth", l.bandwidth);
  sheet.value("achieved", l.achieved);
  sheet.value("latency", l.latency);
  sheet.value("energy_per_byte", l.energy_per_byte);
}

void show_node(const ShowOptions& o, Sheet& sheet) {
  const Catalog catalog(o.catalog_dirs);
  const NodeSpec& n = catalog.node(o.name);
  sheet.plain("name", n.name);
  sheet.plain("aliases", comma_list(n.aliases));
  sheet.plain("notes", n.notes);
  sheet.plain("devices", fmt::format("{} x {}", n.devices, n.device));
  sheet.plain("fabric.kind", std::string(to_string(n.fabric)));
  sheet.plain("fabric.link", n.fabric_link);
  sheet.value("fabric.bandwidth", n.fabric_bandwidth);
  sheet.plain("host.link", n.host_link);
  if (!n.cpu.empty()) sheet.plain("host.cpu", fmt::format("{} x {}", n.cpus, n.cpu));
  sheet.value("host.memory", n.host_memory);
  sheet.value("network", n.network);
  sheet.value("power.idle", n.idle_power);
  sheet.value("power.overhead", n.overhead);
  sheet.value("power.psu_efficiency", n.psu_efficiency);
  sheet.value("price.capex", n.capex);
  sheet.value("price.rent", n.rent);
  for (const AllReduceTable& t : n.all_reduce) {
    for (const AllReducePoint& p : t.points) {
      sheet.row(fmt::format("all_reduce.{}.{}", t.ranks, format_quantity(p.payload)),
                format_quantity(p.time), t.provenance, t.source);
    }
  }
}

std::string dtype_list(const std::vector<DType>& all) {
  std::vector<std::string> words;
  for (const DType d : all) words.emplace_back(to_string(d));
  return comma_list(words);
}

void show_backend(const ShowOptions& o, Sheet& sheet) {
  const Catalog catalog(o.catalog_dirs);
  const BackendSpec& b = catalog.backend(o.name);
  sheet.plain("name", b.name);
  sheet.plain("aliases", comma_list(b.aliases));
  sheet.plain("notes", b.notes);
  sheet.plain("host_mode", b.host_mode == HostMode::kSerial ? "serial" : "overlapped");
  sheet.value("host_per_step", b.host_per_step);
  sheet.value("host_per_sequence", b.host_per_sequence);
  sheet.plain("graph_capture",
              b.graph_capture ? fmt::format("up to {} sequences", b.graph_max_sequences) : "no");
  sheet.plain("kernels_fused", number_text(b.kernels_fused));
  sheet.value("gpu_memory_utilization", b.memory_utilization);
  sheet.value("context_reserve", b.context_reserve);
  sheet.value("activation_factor", b.activation_factor);
  sheet.value("decode_skew", b.decode_skew);
  sheet.value("decode_skew", b.decode_skew);
  sheet.plain("block_size", std::to_string(b.block_size));
  sheet.plain("max_num_seqs", std::to_string(b.max_num_seqs));
  sheet.plain("max_num_batched_tokens", std::to_string(b.max_num_batched_tokens));
  sheet.plain("chunked_prefill", b.chunked_prefill ? "yes" : "no");
  sheet.plain("prefix_caching", b.prefix_caching ? "yes" : "no");
  sheet.plain("weights", dtype_list(b.weight_dtypes));
  sheet.plain("kv_cache", dtype_list(b.kv_dtypes));
  sheet.plain("device kinds", comma_list(b.device_kinds));
}

const char* attention_word(AttentionKind k) {
  constexpr const char* kWords[] = {"none", "full", "sliding", "latent", "linear", "state space"};
  return kWords[static_cast<std::size_t>(k)];
}

std::string layer_text(const LayerGroup& g) {
  std::string text = fmt::format("{} x {} attention", g.count, attention_word(g.attention));
  if (g.heads > 0) {
    text += fmt::format(", {} heads, {} KV heads of {}", g.heads, g.kv_heads, g.head_dim);
  }
  if (g.window > 0) text += fmt::format(", window {}", g.window);
  if (g.kv_lora_rank > 0) text += fmt::format(", latent {}", g.kv_lora_rank);
  if (g.mixer == MixerKind::kMoe) {
    text += fmt::format("; {} experts of {}, {} per token", g.experts, g.ffn_hidden,
                        g.experts_per_token);
    if (g.shared_experts_hidden > 0) text += fmt::format(", shared {}", g.shared_experts_hidden);
  } else if (g.mixer == MixerKind::kDense) {
    text += fmt::format("; FFN {}", g.ffn_hidden);
  }
  return text;
}

void show_model(const ShowOptions& o, Sheet& sheet) {
  const ModelSpec m = ModelZoo(zoo_folders(o.zoo_dirs)).find(o.name);
  constexpr double kBillion = 1e9;
  sheet.plain("name", m.name);
  sheet.plain("family", m.family);
  sheet.plain("aliases", comma_list(m.aliases));
  sheet.plain("source", m.source);
  sheet.plain("parameters", fmt::format("{:.4g} B", total_parameters(m) / kBillion));
  sheet.plain("active per token", fmt::format("{:.4g} B", active_parameters(m) / kBillion));
  if (m.published_parameters > 0) {
    sheet.plain("published", fmt::format("{:.4g} B", m.published_parameters / kBillion));
  }
  sheet.plain("hidden", std::to_string(m.hidden));
  sheet.plain("vocabulary", fmt::format("{}{}", m.vocab, m.tied_embeddings ? " (tied)" : ""));
  if (m.max_positions > 0) sheet.plain("context", std::to_string(m.max_positions));
  sheet.plain("published weights", std::string(to_string(published_weights(m))));
  sheet.plain("weight bytes", format_quantity(weight_bytes(m, 1, 1, published_weights(m))));
  for (const DType kv : {DType::kBf16, DType::kFp8}) {
    sheet.plain(fmt::format("KV bytes/token ({})", to_string(kv)),
                number_text(kv_bytes_per_token(m, 1, 1, 0, kv)));
  }
  const double state = state_bytes_per_sequence(m, 1, 1, 0);
  if (state > 0.0) sheet.plain("state bytes/sequence", number_text(state));
  std::size_t g = 0;
  for (std::size_t i = 0; i < m.layers.size(); ++i) {
    sheet.plain(fmt::format("layers {}-{}", g, g + static_cast<std::size_t>(m.layers[i].count) - 1),
                layer_text(m.layers[i]));
    g += static_cast<std::size_t>(m.layers[i].count);
  }
}

int show_command(const ShowOptions& o) {
  if (o.dot && o.what != "topology") {
    throw InputError("", "", "--dot draws topologies only", "medley show topology NAME --dot");
  }
  if (o.what == "topology") {
    show_topology(o.name, o.catalog_dirs, o.format, o.dot);
    return kOk;
  }
  Sheet sheet;
  if (o.what == "device") show_device(o, sheet);
  if (o.what == "link") show_link(o, sheet);
  if (o.what == "node") show_node(o, sheet);
  if (o.what == "backend") show_backend(o, sheet);
  if (o.what == "model") show_model(o, sheet);
  sheet.print(o.format);
  return kOk;
}
}  // namespace

void add_show(CLI::App& app, Action& action) {
  auto o = std::make_shared<ShowOptions>();
  CLI::App& c = *app.add_subcommand("show", "print one entry with the source of every number");
  c.add_option("what", o->what, "device, link, node, backend, topology or model")
      ->required()
      ->type_name("WHAT")
      ->check(CLI::IsMember({"device", "link", "node", "backend", "topology", "model"}));
  c.add_option("name", o->name,
               "name or alias (a model: also a config.json; a topology: also a node type)")
      ->required()
      ->type_name("NAME");
  c.add_flag("--dot", o->dot, "a topology as Graphviz, for `dot -Tsvg`");
  add_catalog_options(c, o->catalog_dirs, o->zoo_dirs);
  add_format_option(c, o->format);
  c.callback([o, &action] { action = [o] { return show_command(*o); }; });
}

}  // namespace medley::cli
