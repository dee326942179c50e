#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "hwmodels/priors.h"
#include "sim/scenario/paths.h"
#include "sim/scenario/read.h"

namespace medley {

namespace {
constexpr std::int64_t kMostReplicas = 1000000;
constexpr std::int64_t kMostTokens = 100000000;
constexpr std::int64_t kMostSequences = 1000000;
constexpr std::int64_t kMostBlocks = std::int64_t{1} << 40;
constexpr int kMostStages = 64;
constexpr const char* kOverride = "given in the scenario";

template <class Q>
void take(ResolvingReader& from, std::string_view key, Sourced<Q>& into) {
  if (const auto value = from.maybe_quantity<Q>(key)) {
    into = {value, Provenance::kAssumed, kOverride};
  }
}
void take(ResolvingReader& from, std::string_view key, Range range, Sourced<double>& into) {
  if (const auto value = from.maybe_number(key, range)) {
    into = {value, Provenance::kAssumed, kOverride};
  }
}

void read_backend_overrides(ResolvingReader& pool, BackendSpec& backend) {
  auto over = pool.maybe_object("backend_overrides");
  if (!over) return;
  if (backend.ideal()) {
    pool.problem("backend_overrides", "the ideal backend has no overheads to override",
                 "choose another backend");
  }
  over->in().raw("host_mode");
  if (over->has("host_mode")) {
    backend.host_mode = over->choice_or("host_mode", {"serial", "overlapped"}, "serial") == "serial"
                            ? HostMode::kSerial
                            : HostMode::kOverlapped;
  }
  take(*over, "host_per_step", backend.host_per_step);
  take(*over, "host_per_sequence", backend.host_per_sequence);
  take(*over, "sync_per_step", backend.sync_per_step);
  take(*over, "sync_per_sequence", backend.sync_per_sequence);
  take(*over, "host_per_kernel", backend.host_per_kernel);
  take(*over, "request_overhead", backend.request_overhead);
  take(*over, "prompt_token_overhead", backend.prompt_token_overhead);
  if (const auto graphs = over->maybe_boolean("graph_capture")) backend.graph_capture = *graphs;
  if (const auto most = over->maybe_integer("graph_max_sequences", 0, kMostSequences)) {
    backend.graph_max_sequences = static_cast<int>(*most);
  }
  if (const auto fused = over->maybe_number("kernels_fused", Range{Range::positive().min, 1.0})) {
    backend.kernels_fused = *fused;
  }
  take(*over, "context_reserve", backend.context_reserve);
  take(*over, "activation_factor", Range::non_negative(), backend.activation_factor);
  take(*over, "decode_skew", Range::fraction(), backend.decode_skew);
  over->finish();
}

void read_constants(ResolvingReader& step, StepModelSpec& spec) {
  const bool constant = spec.kind == StepModelKind::kConstant;
  for (const char* key : {"per_step", "per_prompt_token", "per_sequence"}) {
    step.in().raw(key);
    if (constant || !step.has(key)) continue;
    step.problem(key, "belongs to constant step times", "set \"kind\": \"constant\"");
  }
  if (!constant) return;
  spec.per_step = step.quantity_or<Seconds>("per_step", Seconds(0.0));
  spec.per_prompt_token = step.quantity_or<Seconds>("per_prompt_token", Seconds(0.0));
  spec.per_sequence = step.quantity_or<Seconds>("per_sequence", Seconds(0.0));
  if (spec.per_step.value() + spec.per_sequence.value() <= 0.0) {
    step.problem("", "a decode step would take no time", "give per_step or per_sequence");
  }
}

StepModelSpec read_step_model(ResolvingReader& pool, const std::string& folder) {
  StepModelSpec spec;
  ResolvingReader step = pool.object_or_empty("step_model");
  const std::string kind = step.choice_or("kind", {"roofline", "tables", "constant"}, "roofline");
  spec.kind = kind == "tables"     ? StepModelKind::kTables
              : kind == "constant" ? StepModelKind::kConstant
                                   : StepModelKind::kRoofline;
  if (spec.kind == StepModelKind::kTables) {
    const std::string tables = step.text("tables");
    spec.tables_directory = resolve_path(folder, tables);
    if (!tables.empty() && !std::filesystem::is_directory(spec.tables_directory)) {
      step.problem("tables", fmt::format("there is no folder \"{}\"", tables),
                   "a folder with dense.csv, per_sequence.csv and attention.csv, relative to the "
                   "scenario file");
    }
  } else if (step.in().raw("tables")) {
    step.problem("tables", "belongs to measured step times", "set \"kind\": \"tables\"");
  }
  read_constants(step, spec);
  spec.decode_skew = step.maybe_number("decode_skew", Range::fraction());
  if (spec.decode_skew && spec.kind == StepModelKind::kConstant) {
    step.problem("decode_skew", "has no effect on constant step times", "leave it out");
  }
  step.finish();
  return spec;
}

SchedulerKind read_scheduler(ResolvingReader& pool, const BackendSpec& backend) {
  const auto chunked = pool.in().maybe_boolean("enable_chunked_prefill");
  const bool by_default = chunked.value_or(backend.chunked_prefill);
  const std::string kind = pool.choice_or("scheduler", {"chunked", "continuous", "static"},
                                          by_default ? "chunked" : "continuous");
  if (chunked && *chunked != (kind == "chunked")) {
    pool.problem("enable_chunked_prefill", fmt::format("contradicts \"scheduler\": \"{}\"", kind),
                 "keep one of the two");
  }
  return kind == "chunked"      ? SchedulerKind::kChunked
         : kind == "continuous" ? SchedulerKind::kContinuous
                                : SchedulerKind::kStatic;
}

void read_model_length(ResolvingReader& pool, PoolSpec& spec, const ReadContext& context) {
  const std::int64_t own = spec.model.max_positions;
  const auto given = pool.maybe_integer("max_model_len", 1, kMostTokens);
  spec.max_model_len = given.value_or(own);
  if (!given && own > 0) pool.set("max_model_len", own);
  if (own > 0 && spec.max_model_len > own) {
    context.warnings.push_back(
        fmt::format("pools.{}: max_model_len {} is beyond the {} positions of {}", spec.name,
                    spec.max_model_len, own, spec.model.name));
  }
}

void read_batching(ResolvingReader& pool, PoolSpec& spec) {
  const BackendSpec& backend = spec.backend;
  BatchPolicy& b = spec.batching;
  b.scheduler = read_scheduler(pool, backend);
  b.admission = pool.choice_or("scheduling_policy", {"fcfs", "priority"}, "fcfs") == "fcfs"
                    ? AdmissionOrder::kFcfs
                    : AdmissionOrder::kPriority;
  const auto count = [&](std::string_view key, std::int64_t fallback, std::int64_t most) {
    return static_cast<std::int32_t>(pool.integer_or(key, fallback, 1, most));
  };
  b.max_num_seqs = count("max_num_seqs", backend.max_num_seqs, kMostSequences);
  // Whole prompts must fit a step's budget, as the engines demand.
  const bool whole = b.scheduler != SchedulerKind::kChunked;
  const std::int64_t budget = std::max<std::int64_t>(
      {backend.max_num_batched_tokens, b.max_num_seqs, whole ? spec.max_model_len : 0});
  b.max_num_batched_tokens = count("max_num_batched_tokens", budget, kMostTokens);
  b.block_size = count("block_size", backend.block_size, 65536);
  b.prefix_caching = pool.boolean_or("enable_prefix_caching", backend.prefix_caching);
  spec.num_blocks_override =
      pool.maybe_integer("num_gpu_blocks_override", 1, kMostBlocks).value_or(0);
  if (b.max_num_batched_tokens < b.max_num_seqs) {
    pool.problem("max_num_batched_tokens",
                 fmt::format("{} tokens per step cannot hold one of each of max_num_seqs = {}",
                             b.max_num_batched_tokens, b.max_num_seqs),
                 "raise it or lower max_num_seqs");
  }
  if (whole && b.max_num_batched_tokens < spec.max_model_len) {
    pool.problem("max_num_batched_tokens",
                 fmt::format("without chunked prefill a prompt of max_model_len = {} must fit in "
                             "one step",
                             spec.max_model_len),
                 "raise it, lower max_model_len, or use the chunked scheduler");
  }
}

/// Reports a plan that cannot run at the key that is to blame.
void check_plan(ResolvingReader& pool, const PoolSpec& spec, int devices) {
  const auto why = [&](int tp, int pp, bool ep) { return plan_problem(spec.model, tp, pp, ep); };
  const std::string reason =
      why(spec.tensor_parallel, spec.pipeline_parallel, spec.expert_parallel);
  if (reason.empty()) return;
  if (!why(1, 1, false).empty()) return pool.problem("model", reason);
  if (!why(1, spec.pipeline_parallel, false).empty()) {
    return pool.problem("pipeline_parallel_size", reason);
  }
  std::string possible;
  for (int tp = 1; tp * spec.pipeline_parallel <= devices; ++tp) {
    if (!why(tp, spec.pipeline_parallel, spec.expert_parallel).empty()) continue;
    possible += (possible.empty() ? "possible here: " : ", ") + std::to_string(tp);
  }
  pool.problem("tensor_parallel_size", reason, possible);
}

/// Why a replica larger than a node cannot be spread over several; empty when it can: it takes
/// whole nodes, and a stage is whole nodes or a whole part of one.
std::string span_problem(const PoolSpec& spec, const NodeSpec& node) {
  const int tp = spec.tensor_parallel;
  if (spec.devices_per_replica() % node.devices != 0) return "it would leave part of a node";
  if (tp % node.devices != 0 && node.devices % tp != 0) return "a stage would cross nodes in part";
  if (!node.network.known() && node.domain < spec.devices_per_replica()) {
    return "the network of the node type is unknown";
  }
  if (spec.sharing.fraction < 1.0) return "shared devices stay within a node";
  return "";
}

void read_parallelism(ResolvingReader& pool, PoolSpec& spec, const NodeGroup& group) {
  const auto count = [&](std::string_view key, std::int64_t most) {
    return static_cast<int>(pool.integer_or(key, 1, 1, most));
  };
  spec.tensor_parallel = count("tensor_parallel_size", kMostReplicas);
  spec.pipeline_parallel = count("pipeline_parallel_size", kMostStages);
  if (pool.has("expert_parallel") && pool.has("enable_expert_parallel")) {
    pool.problem("expert_parallel", "given twice", "keep enable_expert_parallel");
  }
  const bool short_name = pool.in().boolean_or("expert_parallel", false);
  spec.expert_parallel = pool.boolean_or("enable_expert_parallel", short_name);
  const std::int64_t copies = count("data_parallel_size", kMostReplicas);
  const std::int64_t replicas = copies * count("replicas", kMostReplicas);
  spec.replicas = static_cast<int>(std::min(replicas, kMostReplicas));
  if (replicas > kMostReplicas) pool.problem("replicas", "more than 1000000 in all");

  const int devices = group.type.devices;
  const std::int64_t per_replica =
      static_cast<std::int64_t>(spec.tensor_parallel) * spec.pipeline_parallel;
  if (devices > 0 && per_replica > devices) {
    const std::string reason = span_problem(spec, group.type);
    if (!reason.empty()) {
      return pool.problem(
          "tensor_parallel_size",
          fmt::format("a replica of {} x {} devices does not fit in one node of {} "
                      "and cannot span several: {}",
                      spec.tensor_parallel, spec.pipeline_parallel, devices, reason),
          "let whole stages fill whole nodes, e.g. tensor_parallel_size " +
              std::to_string(devices));
    }
  }
  if (spec.expert_parallel && spec.model.experts() == 0) {
    pool.problem("enable_expert_parallel",
                 fmt::format("{} has no experts to spread", spec.model.name), "leave it out");
    spec.expert_parallel = false;
  }
  check_plan(pool, spec, devices);
}

std::string node_names(const std::vector<NodeGroup>& groups, const std::string& wanted) {
  std::vector<std::string> names;
  for (const NodeGroup& g : groups) names.push_back(g.name);
  return suggest(wanted, names);
}

bool read_names(ResolvingReader& pool, PoolSpec& spec, const std::vector<NodeGroup>& groups,
                const ReadContext& context) {
  const std::string node = pool.text("node");
  const auto group = std::find_if(groups.begin(), groups.end(),
                                  [&](const NodeGroup& g) { return g.name == node; });
  bool known = group != groups.end();
  spec.node_group = static_cast<std::size_t>(group - groups.begin());
  if (!known && !node.empty() && !groups.empty()) {
    pool.problem("node", fmt::format("the cluster has no node group \"{}\"", node),
                 node_names(groups, node));
  }
  spec.model_name = pool.text("model");
  known = !spec.model_name.empty() && try_at(pool, "model", [&] {
    const bool file = spec.model_name.ends_with(".json");
    spec.model =
        context.zoo.find(file ? resolve_path(context.folder, spec.model_name) : spec.model_name);
  }) && known;
  const std::string backend = pool.text_or("backend", "vllm-2026");
  known =
      try_at(pool, "backend", [&] { spec.backend = context.catalog.backend(backend); }) && known;
  return known && !groups[spec.node_group].device.name.empty();
}

void check_device_kind(ResolvingReader& pool, const BackendSpec& backend,
                       const DeviceSpec& device) {
  const auto& kinds = backend.device_kinds;
  if (std::find(kinds.begin(), kinds.end(), device.kind) != kinds.end()) return;
  std::string list;
  for (const std::string& k : kinds) list += (list.empty() ? "" : ", ") + k;
  pool.problem("backend",
               fmt::format("{} does not run on {}, a {}", backend.name, device.name, device.kind),
               "it runs on: " + list);
}

/// The host CPUs of a group's servers as a group of their own, added where it is not there yet.
/// What they draw when idle, and their price, are in the server's.
std::size_t host_group(ResolvingReader& pool, std::vector<NodeGroup>& groups, std::size_t of,
                       const ReadContext& context) {
  for (std::size_t g = 0; g < groups.size(); ++g) {
    if (groups[g].host_of == of) return g;
  }
  const NodeGroup& server = groups[of];
  if (!server.cpu || server.type.cpus <= 0) {
    pool.problem("device",
                 fmt::format("the node type of group \"{}\" names no host CPU", server.name),
                 "choose a node type with one, or leave \"device\" out");
    return of;
  }
  constexpr const char* kInServer = "counted with the server";
  NodeGroup host;
  host.name = server.name + ".host";
  host.count = server.count;
  host.host_of = of;
  host.device = *server.cpu;
  fill_model_gaps(host.device, context.catalog.priors());
  PowerSpec& power = host.device.power;
  if (power.active_floor.known() && power.context_idle.known()) {
    *power.active_floor.value = std::max(Watts(0.0), *power.active_floor - *power.context_idle);
    power.deep_idle = power.context_idle = {Watts(0.0), Provenance::kDerived, kInServer};
  }
  host.device.rent = {UsdPerSec(0.0), Provenance::kDerived, kInServer};
  host.device.capex = {Usd(0.0), Provenance::kDerived, kInServer};
  host.type.name = server.type.name + " host";
  host.type.file = server.type.file;
  host.type.device = host.device.name;
  host.type.devices = server.type.cpus;
  host.type.fabric = host.device.fabric.empty() ? FabricKind::kNone : FabricKind::kHost;
  host.type.fabric_link = host.type.host_link = host.device.fabric;
  host.type.overhead = {Watts(0.0), Provenance::kDerived, kInServer};
  host.type.psu_efficiency = server.type.psu_efficiency;
  host.type.rent = {UsdPerSec(0.0), Provenance::kDerived, kInServer};
  host.type.capex = {Usd(0.0), Provenance::kDerived, kInServer};
  groups.push_back(std::move(host));
  return groups.size() - 1;
}

PoolSpec read_pool(const std::string& name, ResolvingReader& pool, std::vector<NodeGroup>& groups,
                   const ReadContext& context) {
  PoolSpec spec;
  spec.name = name;
  const bool known = read_names(pool, spec, groups, context);
  const bool on_cpu = pool.choice_or("device", {"accelerator", "cpu"}, "accelerator") == "cpu";
  if (known && on_cpu) spec.node_group = host_group(pool, groups, spec.node_group, context);
  static const NodeGroup nowhere;
  const NodeGroup& group = known ? groups[spec.node_group] : nowhere;
  read_backend_overrides(pool, spec.backend);
  spec.step_model = read_step_model(pool, context.folder);
  read_model_length(pool, spec, context);
  read_batching(pool, spec);
  const std::string role = pool.choice_or("role", {"unified", "prefill", "decode"}, "unified");
  spec.role = role == "prefill"  ? PoolRole::kPrefill
              : role == "decode" ? PoolRole::kDecode
                                 : PoolRole::kUnified;
  spec.sharing = read_sharing(pool);
  const double utilization = spec.backend.memory_utilization.value.value_or(0.9);
  spec.memory_utilization =
      pool.number_or("gpu_memory_utilization", utilization, Range{Range::positive().min, 1.0});
  if (known) {
    check_device_kind(pool, spec.backend, group.device);
    spec.precision = read_precision(pool, spec.model, group.device, spec.backend, group.name);
    read_parallelism(pool, spec, group);
  } else {
    for (const char* key : {"dtype", "quantization", "kv_cache_dtype", "allow_dtype_fallback",
                            "replicas", "tensor_parallel_size", "pipeline_parallel_size",
                            "data_parallel_size", "expert_parallel", "enable_expert_parallel"}) {
      pool.in().raw(key);
    }
  }
  read_tiering(pool, spec, groups, known);
  spec.load_weights = read_load_weights(pool, groups);
  pool.finish();
  return spec;
}
}  // namespace

std::vector<PoolSpec> read_pools(ResolvingReader& root, std::vector<NodeGroup>& groups,
                                 const ReadContext& context) {
  std::vector<PoolSpec> pools;
  root.each_member("pools", [&](const std::string& name, ResolvingReader reader) {
    pools.push_back(read_pool(name, reader, groups, context));
  });
  if (pools.empty()) {
    root.problem("pools", "no pool serves anything",
                 "for example {\"chat\": {\"node\": \"h100\", \"model\": \"llama-3.1-8b\"}}");
  }
  return pools;
}

}  // namespace medley
