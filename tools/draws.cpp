#include "tools/draws.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <thread>

namespace medley::cli {

ProgressLine::ProgressLine(bool wanted) : wanted_(wanted && stderr_is_terminal()) {}

double ProgressLine::seconds() const {
  return std::chrono::duration<double>(Clock::now() - start_).count();
}

bool ProgressLine::due() const {
  constexpr double kQuietFor = 1.0;
  constexpr double kEvery = 0.2;
  const double t = seconds();
  return wanted_ && t >= kQuietFor && t - shown_at_ >= kEvery;
}

void ProgressLine::show(const std::string& text) {
  shown_at_ = seconds();
  shown_ = true;
  const std::string line = "\r\x1b[K" + text;
  std::fwrite(line.data(), 1, line.size(), stderr);
}

void ProgressLine::clear() {
  if (!shown_) return;
  constexpr std::string_view kErase = "\r\x1b[K";
  std::fwrite(kErase.data(), 1, kErase.size(), stderr);
  shown_ = false;
}

void add_draw_options(CLI::App& command, DrawChoice& choice) {
  constexpr int kMostDraws = 1000000;
  constexpr int kMostThreads = 4096;
  CLI::Option* draws =
      command
          .add_option("--uncertainty", choice.draws,
                      "also run N draws of the uncertain parameters and tell intervals")
          ->type_name("N")
          ->check(CLI::Range(1, kMostDraws));
  command
      .add_option("--draw-seed", choice.seed,
                  "seed of the parameter draws (default 1); equal seeds draw equal parts alike")
      ->type_name("N")
      ->check(CLI::Range(std::int64_t{0}, INT64_MAX))
      ->needs(draws);
  command.add_option("--threads", choice.threads, "runs at a time (default: all processors)")
      ->type_name("T")
      ->check(CLI::Range(1, kMostThreads))
      ->needs(draws);
}

int threads_of(const DrawChoice& choice) {
  if (choice.threads > 0) return choice.threads;
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

void warn_of_few_draws(const DrawChoice& choice) {
  constexpr int kFew = 20;
  if (choice.draws >= kFew) return;
  warn(
      {fmt::format("{} draws are few: below {} the ends of an interval are hardly more than the "
                   "extremes",
                   choice.draws, kFew)});
}

Uncertainty run_chosen_draws(const Catalog& catalog, const Analysis& nominal,
                             const DrawChoice& choice, const std::string& what, bool quiet) {
  ProgressLine line(!quiet);
  DrawOptions options;
  options.draws = choice.draws;
  options.seed = static_cast<std::uint64_t>(choice.seed);
  options.threads = threads_of(choice);
  options.interrupt = &interrupt_flag();
  options.progress = [&](int done, int total) {
    if (!line.due()) return;
    const double rate = done / line.seconds();
    line.show(fmt::format("{}: {} of {} draws, {:.2g} draws/s, {:.0f} s left", what, done, total,
                          rate, (total - done) / rate));
  };
  return run_draws(catalog, nominal, options);
}

}  // namespace medley::cli
