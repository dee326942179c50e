#pragma once

#include <chrono>
#include <string>

#include "sim/report/uncertainty.h"
#include "tools/command.h"

namespace medley::cli {

/// One line on the terminal, from the second second on, at most five times a second.
class ProgressLine {
 public:
  explicit ProgressLine(bool wanted);
  ~ProgressLine() { clear(); }
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;
  double seconds() const;  ///< since construction
  bool due() const;
  void show(const std::string& text);
  void clear();

 private:
  using Clock = std::chrono::steady_clock;
  bool wanted_;
  bool shown_ = false;
  double shown_at_ = 0.0;
  Clock::time_point start_ = Clock::now();
};

/// --uncertainty N, --draw-seed S and --threads T.
struct DrawChoice {
  int draws = 0;
  std::int64_t seed = 1;
  int threads = 0;  ///< 0: as many as there are processors
};
void add_draw_options(CLI::App& command, DrawChoice& choice);

int threads_of(const DrawChoice& choice);
void warn_of_few_draws(const DrawChoice& choice);
/// Runs the draws with a progress line ("`what`: 34 of 100 draws, 5.2/s, 13 s left").
Uncertainty run_chosen_draws(const Catalog& catalog, const Analysis& nominal,
                             const DrawChoice& choice, const std::string& what, bool quiet);

}  // namespace medley::cli
