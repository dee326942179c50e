#include <fmt/format.h>

#include "sim/core/csv.h"
#include "sim/measure/readers/kernel_readers.h"

namespace medley {

namespace {
/// "0.19ms" with its unit.
std::optional<double> milliseconds_text(std::string_view text) {
  if (!text.ends_with("ms")) return std::nullopt;
  return number_in(trimmed_text(text.substr(0, text.size() - 2)));
}

bool is_matmul_row(const std::vector<std::string>& cells) {
  return cells.size() == 5 && number_in(trimmed_text(cells[0])) &&
         milliseconds_text(trimmed_text(cells[3])) && cells[4].ends_with("Tflops");
}
}  // namespace

bool takes_llmcompass(const KernelFile& file) {
  return is_matmul_row(file.columns);
}

/// No header: m, n, k, "<time>ms", "<rate>Tflops"; fp16. The device ends the file's name.
void read_llmcompass(const KernelFile& file, KernelSink& sink) {
  const std::string name = file.name();
  if (const std::size_t bar = name.rfind('_'); bar != std::string::npos) {
    sink.device(name.substr(bar + 1, name.rfind('.') - bar - 1));
  }
  LineReader lines(file.path);
  std::string_view line;
  std::vector<std::string> cells;
  while (lines.next(line)) {
    if (trimmed_text(line).empty()) continue;
    sink.row();
    if (!split_csv(line, cells) || !is_matmul_row(cells)) {
      sink.drop("no row of the table");
      continue;
    }
    const auto m = number_in(trimmed_text(cells[0])), n = number_in(trimmed_text(cells[1]));
    const auto k = number_in(trimmed_text(cells[2]));
    if (!m || !n || !k || *m <= 0.0 || *n <= 0.0 || *k <= 0.0 || *n > 1e8 || *k > 1e8) {
      sink.drop("a size cannot be read");
      continue;
    }
    const KernelCurve* curve = sink.curve(cells[1] + "," + cells[2], [&] {
      return KernelCurve{"matmul", fmt::format("n={},k={}", *n, *k),
                         gemm_kernel(*k, *n, {DType::kFp16, DType::kFp16})};
    });
    sink.add(*curve, token_features(*m),
             {*m, *milliseconds_text(trimmed_text(cells[3])) * 1e-3, {}, {}});
  }
}

}  // namespace medley
