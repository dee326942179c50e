#include <algorithm>
#include <cmath>

#include "sim/report/writers.h"

namespace medley {

PowerCourse::PowerCourse(double bin, double run) : bin_(bin), run_(run) {
  bins_ = static_cast<std::size_t>(std::max(0.0, std::ceil(run / bin - 1e-9)));
  upto_.assign(bins_ + 1, 0.0);
}

double PowerCourse::begin(std::size_t b) const {
  return b >= bins_ ? run_ : static_cast<double>(b) * bin_;
}

void PowerCourse::add_constant(double watts) {
  for (std::size_t b = 0; b < bins_; ++b) upto_[b + 1] += watts * (begin(b + 1) - begin(b));
}

void PowerCourse::add(const std::vector<double>& joules, double factor) {
  if (bins_ == 0) return;
  for (std::size_t b = 0; b < joules.size(); ++b) {
    upto_[std::min(b, bins_ - 1) + 1] += factor * joules[b];
  }
}

void PowerCourse::finish() {
  for (std::size_t b = 0; b < bins_; ++b) upto_[b + 1] += upto_[b];
}

double PowerCourse::at(double t) const {
  if (t <= 0.0 || bins_ == 0) return 0.0;
  if (t >= run_) return upto_[bins_];
  const auto b = std::min(static_cast<std::size_t>(t / bin_), bins_ - 1);
  const double share = (t - begin(b)) / (begin(b + 1) - begin(b));
  return upto_[b] + share * bin_joules(b);
}

double PowerCourse::joules(double from, double to) const {
  return to > from ? at(to) - at(from) : 0.0;
}

double PowerCourse::peak_w(double span, std::size_t first, std::size_t last) const {
  constexpr double kSlack = 1e-9;
  if (bin_ > span * (1.0 + kSlack)) return kBlank;
  const auto width = static_cast<std::size_t>(std::max(1.0, std::round(span / bin_)));
  double peak = kBlank;
  for (std::size_t end = std::max(first + 1, width); end <= std::min(last, bins_); ++end) {
    const double seconds = begin(end) - begin(end - width);
    const double watts = (upto_[end] - upto_[end - width]) / seconds;
    if (!(peak >= watts)) peak = watts;
  }
  return peak;
}

}  // namespace medley
