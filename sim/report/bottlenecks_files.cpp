#include <fmt/format.h>

#include <cmath>

#include "sim/report/bottlenecks.h"
#include "sim/report/table_file.h"
#include "sim/report/text_table.h"

namespace medley {

namespace {
constexpr double kHundred = 100.0;
constexpr double kWorthIt = 0.01;

std::string signed_percent(double gain) {
  return std::isnan(gain) ? "-" : fmt::format("{:+.1f} %", kHundred * gain);
}

double best_time_gain(const Bottleneck& row) {
  return std::fmax(std::fmax(row.ttft_p50_gain, row.ttft_p99_gain), row.tpot_p50_gain);
}
double best_time(const Bottlenecks& b, const Bottleneck& row) {
  return b.marginal(row, best_time_gain(row));
}
}  // namespace

std::string bottleneck_verdict(const Bottlenecks& b) {
  const char* rate = b.nominal.goodput == b.nominal.goodput ? "goodput" : "output tokens/s";
  std::string limits;
  for (const Bottleneck& row : b.rows) {
    if (!(b.marginal(row, row.rate_gain) > kWorthIt)) continue;
    limits += fmt::format("{}{} ({} {} for {:+.0f} %)", limits.empty() ? "" : ", ",
                          to_string(row.resource), signed_percent(row.rate_gain), rate,
                          kHundred * row.change);
  }
  if (!limits.empty()) return "limited by " + limits;
  const Bottleneck* fastest = nullptr;
  for (const Bottleneck& row : b.rows) {
    if (!(best_time(b, row) > kWorthIt)) continue;
    if (!fastest || best_time(b, row) > best_time(b, *fastest)) fastest = &row;
  }
  std::string text = fmt::format("nothing gains more than 1 % of {}: the load limits it", rate);
  if (fastest != nullptr) {
    text += fmt::format("; latencies gain most from {} ({})", to_string(fastest->resource),
                        signed_percent(best_time_gain(*fastest)));
  }
  return text;
}

std::string bottleneck_table(const Bottlenecks& b) {
  constexpr auto kRight = TextTable::Align::kRight;
  const bool slo = b.nominal.goodput == b.nominal.goodput;
  TextTable table({{"more of", "", TextTable::Align::kLeft},
                   {"by", "", kRight},
                   {slo ? "goodput" : "tok/s", "", kRight},
                   {"TTFT p50", "", kRight},
                   {"TTFT p99", "", kRight},
                   {"TPOT p50", "", kRight}});
  for (const Bottleneck& row : b.rows) {
    if (!row.failure.empty()) {
      table.add({std::string(to_string(row.resource)), signed_percent(row.change), "cannot run",
                 "-", "-", "-"});
      continue;
    }
    table.add({std::string(to_string(row.resource)), signed_percent(row.change),
               signed_percent(row.rate_gain), signed_percent(row.ttft_p50_gain),
               signed_percent(row.ttft_p99_gain), signed_percent(row.tpot_p50_gain)});
  }
  return "\nwhat limits this fleet (gain with more of one resource; times: faster by)\n" +
         table.aligned() + bottleneck_verdict(b) + "\n";
}

void write_bottlenecks_csv(const Bottlenecks& b, const std::string& path) {
  TableFile out("bottlenecks.csv", path);
  const auto speeds = [&](const RunSpeed& s) {
    out.number(s.goodput).number(s.output_throughput);
    out.number(s.ttft_p50).number(s.ttft_p99).number(s.tpot_p50);
  };
  out.text("nominal").integer(0);
  speeds(b.nominal);
  out.integer(0).integer(0).integer(0).integer(0).text("ok");
  out.end_row();
  for (const Bottleneck& row : b.rows) {
    out.text(to_string(row.resource)).number(kHundred * row.change);
    speeds(row.speed);
    for (const double gain :
         {row.rate_gain, row.ttft_p50_gain, row.ttft_p99_gain, row.tpot_p50_gain}) {
      out.number(kHundred * gain);
    }
    out.text(row.failure.empty() ? "ok" : "infeasible");
    out.end_row();
  }
  out.close();
}

std::string fidelity_table(const FidelityCheck& check) {
  if (!check.shared) {
    return "\nfolded and layered: no step shares a device or link, they are the same\n";
  }
  TextTable table({{"time", "", TextTable::Align::kLeft},
                   {"folded", "", TextTable::Align::kRight},
                   {"layered", "", TextTable::Align::kRight},
                   {"difference", "", TextTable::Align::kRight}});
  for (const FidelityRow& row : fidelity_rows(check)) {
    table.add({row.name, short_seconds(row.folded), short_seconds(row.layered),
               std::isnan(row.difference())
                   ? "-"
                   : fmt::format("{:+.3f} %", kHundred * row.difference())});
  }
  return "\n" + table.aligned() +
         fmt::format("folded and layered differ by at most {:.3f} %\n",
                     kHundred * fidelity_difference(check));
}

}  // namespace medley
