#pragma once

#include <optional>
#include <string>
#include <vector>

namespace medley {

/// One simulated-versus-measured figure.
struct ValidationRow {
  std::string set;     ///< "serving_requests"
  std::string run;     ///< which measured run
  std::string basis;   ///< what the prediction rests on: "tables" or "catalogue"
  std::string metric;  ///< "ttft_mean", ...
  std::string unit;
  double measured = 0.0;
  double predicted = 0.0;
  std::optional<double> target_pct;  ///< what we hold ourselves to; absent: reported only
  int n = 0;                         ///< requests behind the figure
  std::string source;
  double error_pct() const { return 100.0 * (predicted / measured - 1.0); }
  bool met() const {
    return !target_pct || (error_pct() <= *target_pct && -error_pct() <= *target_pct);
  }
};

/// Sets that `validate` knows, with a line on each.
struct ValidationSet {
  std::string name;
  std::string summary;
};
const std::vector<ValidationSet>& validation_sets();

/// Runs one set on the measured data under `data_directory`. Nothing is fitted here: each set
/// states what its predictions were given. Throws InputError when the data is not there.
///
/// serving_requests: real vLLM 0.19.0 runs of 300 requests at 10/s, Llama-3.1-8B in bf16 on an RTX
/// 4090
///   and an RTX PRO 6000 (casys-kaist/LLMServingSim @5daddb21, MIT). The engine's settings are the
///   published ones; measured times count from vLLM's queued time.
///     tables:    step times from kernel profiles of the same card (one layer, eager); host
///     overhead 0
///                (asynchronous scheduling hides it); skew alpha as published with the profile.
///     catalogue: nothing but the catalogue entries of device and backend.
std::vector<ValidationRow> run_validation(const std::string& set,
                                          const std::string& data_directory);

/// The table as CSV:
/// set,run,basis,metric,unit,measured,predicted,error_pct,target_pct,met,n,source.
std::string validation_csv(const std::vector<ValidationRow>& rows);

}  // namespace medley
