#include "sim/measure/readers/row_table.h"

namespace medley {

bool takes_splitwise(const KernelFile& file) {
  return file.has(
      {"prompt_size", "batch_size", "token_size", "prompt_time", "token_time", "tensor_parallel"});
}

/// Whole batches; times in ms, power as shares of the limit (0 where it was not measured).
void read_splitwise(const KernelFile& file, KernelSink& sink) {
  RowTable t(file, sink);
  const auto model_at = t.csv.need("model"), hardware_at = t.csv.need("hardware");
  const auto input_at = t.csv.need("prompt_size"), batch_at = t.csv.need("batch_size");
  const auto output_at = t.csv.need("token_size"), tp_at = t.csv.need("tensor_parallel");
  const auto prompt_at = t.csv.need("prompt_time"), token_at = t.csv.need("token_time");
  const auto total_at = t.csv.find("e2e_time");
  const auto mean_at = t.csv.find("average_power"), peak_at = t.csv.find("peak_power");
  t.csv.start("splitwise");
  std::int64_t input = 0, batch = 0, output = 0, tp = 0;
  const auto share = [&](KernelCsv::Column column) -> std::optional<double> {
    const auto value = t.csv.number(column);
    return value && *value > 0.0 ? value : std::nullopt;
  };
  while (t.next()) {
    if (!t.counts({{input_at, &input}, {batch_at, &batch}, {output_at, &output}, {tp_at, &tp}})) {
      continue;
    }
    const auto prompt = t.csv.number(prompt_at), token = t.csv.number(token_at);
    if (!sink.take_time(prompt) || !sink.take_time(token)) continue;
    if (t.csv.text(hardware_at).ends_with("-pcap")) {
      sink.drop("power-capped rows are the uncapped ones times 1.3, not a measurement");
      continue;
    }
    EndToEndPoint p;
    p.device = std::string(t.csv.text(hardware_at));
    p.model = std::string(t.csv.text(model_at));
    p.tp = static_cast<int>(tp);
    p.batch = static_cast<int>(batch);
    p.input = static_cast<int>(input);
    p.output = static_cast<int>(output);
    p.prefill_s = *prompt * kMilli;
    p.token_s = *token * kMilli;
    p.total_s = t.csv.number(total_at).value_or(0.0) * kMilli;
    p.mean_power = share(mean_at);
    p.peak_power = share(peak_at);
    sink.device(p.device);
    sink.table().points.push_back(std::move(p));
    sink.keep_row();
  }
}

}  // namespace medley
