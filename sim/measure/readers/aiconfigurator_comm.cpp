#include <fmt/format.h>

#include <cmath>

#include "sim/measure/readers/kernel_readers.h"
#include "sim/measure/readers/row_table.h"

namespace medley {

namespace {
constexpr int kDevicesPerNode = 8;  // of the DeepEP runs, which only tell their nodes

std::string collective_name(std::string_view word) {
  if (word == "alltoall") return "all_to_all";
  return std::string(word);
}

/// One table of collectives, row by row.
class CommTable : public RowTable {
 public:
  CommTable(const KernelFile& file, KernelSink& sink) : RowTable(file, sink) {
    csv.ignore({"framework", "version"});
  }
};

/// nccl, oneccl and custom all-reduce: message_size counts elements.
void read_collectives(const KernelFile& file, KernelSink& sink) {
  CommTable t(file, sink);
  const auto size_at = t.csv.need("message_size"), devices_at = t.csv.need("num_gpus");
  const auto latency_at = t.csv.need("latency"), op_at = t.csv.find("op_name");
  const auto dtype_at = t.csv.find_any({"nccl_dtype", "allreduce_dtype"});
  const auto source_at = t.csv.find("kernel_source");
  t.csv.ignore({"backend", "power", "power_limit"});
  t.csv.start("aiconfigurator collectives");
  while (t.next()) {
    double elements = 0.0, devices = 0.0;
    if (!t.numbers({{size_at, &elements}, {devices_at, &devices}})) continue;
    const auto ms = t.csv.number(latency_at);
    if (!sink.take_time(ms)) continue;
    const auto dtype = dtype_at == KernelCsv::kAbsent ? std::optional(sink.options().dtype)
                                                      : parse_dtype(t.csv.text(dtype_at));
    if (!dtype) {
      sink.drop(fmt::format("unknown number format `{}`", t.csv.text(dtype_at)));
      continue;
    }
    CollectiveSample s;
    s.op = op_at == KernelCsv::kAbsent ? "all_reduce" : collective_name(t.csv.text(op_at));
    std::string_view source = t.csv.text(source_at);
    if (source.starts_with("vLLM_")) source.remove_prefix(5);
    s.variant = source == "NCCL" ? "nccl" : source == "oneCCL" ? "oneccl" : std::string(source);
    // Sizes meet where formats differ: the narrower one reduces more elements for the same bytes.
    if (*dtype == DType::kInt8) s.variant += "_int8";
    s.devices = static_cast<int>(devices);
    s.bytes = elements * bytes_of(*dtype);
    s.time_s = *ms * 1e-3;
    sink.add(std::move(s));
  }
}

/// DeepEP: what a rank sends out for its tokens, and what it gets back (bf16). Payload counts a
/// token once per chosen expert, as lower_step's all-to-all does. Dispatch is fp8 with one 4-byte
/// scale per 128 elements: the low-latency tables' own bandwidth says so.
class DeepEpRow {
 public:
  DeepEpRow(double hidden, double tokens, double top_k, double experts, int devices)
      : rows_(tokens * top_k), hidden_(hidden), devices_(devices) {
    shape_ = fmt::format("hidden{}_top{}_experts{}", hidden, top_k, experts);
  }
  CollectiveSample dispatch(std::string_view kind, double us) const {
    return sample(fmt::format("deepep_{}_dispatch_{}", kind, shape_), 1.0 + 4.0 / 128.0, us);
  }
  CollectiveSample combine(std::string_view kind, double us) const {
    return sample(fmt::format("deepep_{}_combine_{}", kind, shape_), 2.0, us);
  }

 private:
  CollectiveSample sample(std::string variant, double element, double us) const {
    CollectiveSample s;
    s.op = "all_to_all";
    s.variant = std::move(variant);
    s.devices = devices_;
    s.bytes = rows_ * hidden_ * element;
    s.time_s = us * 1e-6;
    return s;
  }
  double rows_, hidden_;
  int devices_;
  std::string shape_;
};

void read_deepep(const KernelFile& file, KernelSink& sink) {
  const bool low_latency = file.has({"dispatch_avg_t_us"});
  const std::string kind = low_latency ? "ll" : "normal";
  CommTable t(file, sink);
  const auto hidden_at = t.csv.need("hidden_size"), tokens_at = t.csv.need("num_token");
  const auto top_k_at = t.csv.need("num_topk"), experts_at = t.csv.need("num_experts");
  const auto nodes_at = t.csv.find("node_num");
  const auto out_at = t.csv.need(low_latency ? "dispatch_avg_t_us" : "dispatch_transmit_us");
  const auto back_at = t.csv.need(low_latency ? "combine_avg_t_us" : "combine_transmit_us");
  const auto out_sms = t.csv.find("dispatch_sms"), back_sms = t.csv.find("combine_sms");
  t.csv.ignore_prefix("dispatch_");
  t.csv.ignore_prefix("combine_");
  t.csv.ignore({"op_name", "kernel_source"});
  t.csv.start("aiconfigurator deepep");
  sink.note(fmt::format("DeepEP rows tell their nodes, not their devices: taken as {} per node",
                        kDevicesPerNode));
  while (t.next()) {
    double hidden = 0.0, tokens = 0.0, top_k = 0.0, experts = 0.0, nodes = 1.0;
    if (!t.numbers({{hidden_at, &hidden},
                    {tokens_at, &tokens},
                    {top_k_at, &top_k},
                    {experts_at, &experts}})) {
      continue;
    }
    if (nodes_at != KernelCsv::kAbsent && !t.numbers({{nodes_at, &nodes}})) continue;
    const auto out_us = t.csv.number(out_at), back_us = t.csv.number(back_at);
    if (!sink.take_time(out_us) || !sink.take_time(back_us)) continue;
    const DeepEpRow row(hidden, tokens, top_k, experts, int(nodes) * kDevicesPerNode);
    const auto sms = [&](KernelCsv::Column c) {
      return c == KernelCsv::kAbsent ? kind : fmt::format("{}_sms{}", kind, t.csv.text(c));
    };
    sink.add(row.dispatch(sms(out_sms), *out_us));
    sink.add_more(row.combine(sms(back_sms), *back_us));
  }
}
}  // namespace

bool takes_aiconfigurator_comm(const KernelFile& file) {
  return file.has({"message_size", "num_gpus", "latency"}) ||
         file.has({"num_token", "num_topk", "dispatch_avg_t_us"}) ||
         file.has({"num_token", "num_topk", "dispatch_transmit_us"});
}

void read_aiconfigurator_comm(const KernelFile& file, KernelSink& sink) {
  if (file.has({"num_token", "num_topk"})) return read_deepep(file, sink);
  read_collectives(file, sink);
}

}  // namespace medley
