#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "sim/core/error.h"
#include "sim/core/unit_text.h"
#include "workloads/generator_load.h"

namespace medley {

namespace {
using Json = nlohmann::ordered_json;
constexpr double kMostTokens = 2147483647.0;

class DistributionLoader {
 public:
  DistributionLoader(ObjectReader& reader, Measure measure, const SearchDirs& dirs)
      : reader_(reader), measure_(measure), dirs_(dirs) {}

  Distribution run() {
    const std::string dist = reader_.choice(
        "dist", {"fixed", "uniform", "exponential", "lognormal", "gamma", "histogram"});
    Distribution d = Distribution::fixed(1.0);
    if (dist == "fixed") d = Distribution::fixed(value("value"));
    if (dist == "uniform") return finish(uniform());
    if (dist == "exponential") d = Distribution::exponential(value("mean"));
    if (dist == "lognormal") d = lognormal();
    if (dist == "gamma") {
      const double mean = value("mean");
      d = Distribution::gamma(mean, reader_.number("cv", Range{0.0, 100.0}));
    }
    if (dist == "histogram") d = histogram();
    d.min = maybe("min").value_or(0.0);
    d.max = maybe("max").value_or(d.max);
    if (d.min > d.max) reader_.problem("max", "is below min");
    return finish(std::move(d));
  }

 private:
  Distribution finish(Distribution d) {
    reader_.finish();
    return d;
  }

  double value(std::string_view key) {
    if (measure_ == Measure::kSeconds) return reader_.quantity<Seconds>(key).value();
    const bool count_of_one = measure_ == Measure::kPositive && std::string_view(key) == "value";
    return reader_.number(key, Range{count_of_one ? 1.0 : 0.0, kMostTokens});
  }
  std::optional<double> maybe(std::string_view key) {
    if (measure_ == Measure::kSeconds) {
      const auto q = reader_.maybe_quantity<Seconds>(key);
      return q ? std::optional(q->value()) : std::nullopt;
    }
    return reader_.maybe_number(key, Range{0.0, kMostTokens});
  }

  Distribution uniform() {
    const double low = value("min");
    const double high = value("max");
    if (low <= high) return Distribution::uniform(low, high);
    reader_.problem("max", "is below min");
    return Distribution::fixed(low);
  }

  Distribution lognormal() {
    Distribution::LognormalFacts facts;
    facts.mean = maybe("mean");
    facts.p50 = maybe("p50");
    facts.p90 = maybe("p90");
    facts.p99 = maybe("p99");
    facts.cv = reader_.maybe_number("cv", Range{0.0, 100.0});
    facts.mu = reader_.maybe_number("mu", Range{-100.0, 100.0});
    facts.sigma = reader_.maybe_number("sigma", Range{0.0, 20.0});
    for (const auto* fact : {&facts.mean, &facts.p50, &facts.p90, &facts.p99}) {
      if (*fact && **fact <= 0.0) {
        reader_.problem("", "a lognormal's mean and quantiles are above 0");
        return Distribution::fixed(1.0);
      }
    }
    std::string why;
    const auto d = Distribution::lognormal_from(facts, why);
    if (!d) reader_.problem("", why);
    return d.value_or(Distribution::fixed(1.0));
  }

  Distribution histogram() {
    std::vector<Distribution::WeightedBin> bins;
    if (reader_.has("csv")) {
      bins = csv_bins();
    } else {
      inline_bins(bins);
    }
    double sum = 0.0;
    for (const auto& bin : bins) sum += bin.weight;
    if (sum > 0.0) return Distribution::histogram(bins);
    reader_.problem(reader_.has("csv") ? "csv" : "bins", "no bin has a weight above 0");
    return Distribution::fixed(1.0);
  }

  /// [value, weight] or [low, high, weight].
  void inline_bins(std::vector<Distribution::WeightedBin>& bins) {
    const Json* list = reader_.raw("bins");
    if (list == nullptr || !list->is_array()) {
      reader_.problem("bins", "is not a list of bins", "[[128, 0.5], [256, 512, 0.5]]");
      return;
    }
    for (std::size_t i = 0; i < list->size(); ++i) {
      const Json& bin = (*list)[i];
      const bool shaped = bin.is_array() && (bin.size() == 2 || bin.size() == 3);
      const auto low = shaped ? edge(bin[0]) : std::nullopt;
      const auto high = shaped ? edge(bin[bin.size() - 2]) : std::nullopt;
      const bool fine = low && high && bin.back().is_number() && *low <= *high &&
                        bin.back().get<double>() >= 0.0 && std::isfinite(bin.back().get<double>());
      if (!fine) {
        reader_.problem("bins",
                        fmt::format("bin {} is not [value, weight] or [low, high, weight]", i));
        continue;
      }
      bins.push_back({*low, *high, bin.back().get<double>()});
    }
  }

  std::optional<double> edge(const Json& value) const {
    if (measure_ == Measure::kSeconds) {
      if (!value.is_string()) return std::nullopt;
      try {
        return parse_quantity<Seconds>(value.get<std::string>()).value();
      } catch (const std::invalid_argument&) {
        return std::nullopt;
      }
    }
    if (!value.is_number()) return std::nullopt;
    const double x = value.get<double>();
    return x >= 0.0 && x <= kMostTokens ? std::optional(x) : std::nullopt;
  }

  /// Columns "value" (or "low" and "high") and "weight"; times in seconds.
  std::vector<Distribution::WeightedBin> csv_bins() {
    CsvRequest request;
    request.file = reader_.text("csv");
    request.path = find_input_file(reader_, "csv", request.file, dirs_);
    const std::string low = reader_.text_or("low", "value");
    request.names = {low, reader_.text_or("high", low), reader_.text_or("weight", "weight")};
    if (request.path.empty()) return {};
    std::vector<Distribution::WeightedBin> bins;
    try {
      const CsvColumns columns = read_csv_columns(request);
      for (std::size_t i = 0; i < columns.values[0].size(); ++i) {
        bins.push_back({columns.values[0][i], columns.values[1][i], columns.values[2][i]});
        const auto& b = bins.back();
        if (b.low < 0.0 || b.low > b.high || b.weight < 0.0) {
          reader_.problem("csv", fmt::format("bin {} has low > high or a negative number", i));
          return {};
        }
      }
    } catch (const InputError& error) {
      for (const Problem& p : error.problems()) reader_.problem("csv", to_text(p));
    }
    return bins;
  }

  ObjectReader& reader_;
  Measure measure_;
  const SearchDirs& dirs_;
};
}  // namespace

Distribution load_distribution(ObjectReader& parent, std::string_view key, Measure measure,
                               const SearchDirs& dirs) {
  const Json* node = parent.raw(key);
  if (node == nullptr) {
    parent.problem(key, "is missing", "a number, or {\"dist\": \"lognormal\", \"p50\": ..., ...}");
    return Distribution::fixed(1.0);
  }
  if (node->is_object()) {
    ObjectReader reader = parent.object(key);
    return DistributionLoader(reader, measure, dirs).run();
  }
  if (measure == Measure::kSeconds) {
    return Distribution::fixed(parent.quantity<Seconds>(key).value());
  }
  const double least = measure == Measure::kPositive ? 1.0 : 0.0;
  return Distribution::fixed(parent.number(key, Range{least, kMostTokens}));
}

}  // namespace medley
