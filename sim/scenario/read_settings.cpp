#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>

#include "sim/core/csv.h"
#include "sim/scenario/read.h"

namespace medley {

namespace {
constexpr double kLongestRun = 9e9;  ///< s; an int64 of ns holds 292 years
constexpr double kJoulesPerKwh = 3.6e6;
constexpr Range kTime{0.0, kLongestRun};
constexpr Range kPositiveTime{1e-9, kLongestRun};

struct CarbonUnit {
  const char* name;
  double grams_per_kwh;
};
constexpr CarbonUnit kCarbonUnits[] = {
    {"gCO2/kWh", 1.0},      {"gCO2e/kWh", 1.0},   {"g/kWh", 1.0},       {"kgCO2/kWh", 1000.0},
    {"kgCO2e/kWh", 1000.0}, {"kg/kWh", 1000.0},   {"kgCO2/MWh", 1.0},   {"kgCO2e/MWh", 1.0},
    {"kg/MWh", 1.0},        {"tCO2/MWh", 1000.0}, {"tCO2e/MWh", 1000.0}};

/// "400 gCO2/kWh" -> g per kWh.
std::optional<double> parse_carbon(const std::string& text) {
  double value = 0.0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || !std::isfinite(value) || value < 0.0) return std::nullopt;
  std::string unit(end, text.data() + text.size());
  unit.erase(0, unit.find_first_not_of(' '));
  for (const CarbonUnit& u : kCarbonUnits) {
    if (unit == u.name) return value * u.grams_per_kwh;
  }
  return std::nullopt;
}

void read_carbon(ResolvingReader& price, PriceSpec& spec) {
  const nlohmann::ordered_json* raw = price.in().raw("carbon_intensity");
  if (!raw || raw->is_null()) return;
  std::optional<double> grams;
  if (raw->is_string()) grams = parse_carbon(raw->get<std::string>());
  if (raw->is_number() && raw->get<double>() == 0.0) grams = 0.0;
  if (!grams) {
    price.problem("carbon_intensity",
                  fmt::format("{} is no carbon intensity of electricity", raw->dump()),
                  "for example \"400 gCO2/kWh\"");
    return;
  }
  spec.carbon_g_per_joule = *grams / kJoulesPerKwh;
  price.set("carbon_intensity", number_text(*grams) + " gCO2/kWh");
}
}  // namespace

std::map<std::string, SloSpec> read_slo(ResolvingReader& root) {
  std::map<std::string, SloSpec> all;
  root.each_member("slo", [&](const std::string& name, ResolvingReader reader) {
    SloSpec slo;
    slo.ttft = reader.maybe_quantity<Seconds>("ttft", Range::positive());
    slo.tpot = reader.maybe_quantity<Seconds>("tpot", Range::positive());
    slo.e2e = reader.maybe_quantity<Seconds>("e2e", Range::positive());
    reader.finish();
    if (reader.in().keys().empty()) {
      reader.problem("", "this class has no objective", "give ttft, tpot or e2e");
    }
    all[name] = slo;
  });
  return all;
}

PriceSpec read_price(ResolvingReader& root) {
  PriceSpec spec;
  ResolvingReader power = root.object_or_empty("power");
  spec.pue = power.number_or("pue", spec.pue, Range::at_least(1.0));
  power.finish();
  ResolvingReader price = root.object_or_empty("price");
  spec.energy = price.maybe_quantity<UsdPerJoule>("energy");
  read_carbon(price, spec);
  spec.prefer_capex = price.choice_or("basis", {"rent", "capex"}, "rent") == "capex";
  price.in().raw("amortization");
  if (spec.prefer_capex || price.has("amortization")) {
    spec.amortization =
        price.quantity_or<Seconds>("amortization", spec.amortization, Range::positive());
  }
  if (!spec.prefer_capex && price.has("amortization")) {
    price.problem("amortization", "has no effect while hardware is rented",
                  "set price.basis to \"capex\", or leave it out");
  }
  price.finish();
  return spec;
}

MeasureSpec read_measure(ResolvingReader& root) {
  MeasureSpec spec;
  ResolvingReader measure = root.object_or_empty("measure");
  spec.warmup = SimTime::from_seconds(measure.quantity_or<Seconds>("warmup", Seconds(0.0), kTime));
  spec.window = measure.maybe_quantity<Seconds>("window", kPositiveTime);
  measure.finish();
  return spec;
}

ReportSpec read_report(ResolvingReader& root) {
  ReportSpec spec;
  ResolvingReader report = root.object_or_empty("report");
  spec.interval = report.quantity_or<Seconds>("interval", spec.interval, Range::at_least(1e-3));
  const std::string requests = report.text_or("requests", "all");
  constexpr std::string_view kSample = "sample:";
  if (requests == "none") {
    spec.requests = ReportSpec::Requests::kNone;
  } else if (requests.starts_with(kSample)) {
    spec.requests = ReportSpec::Requests::kSample;
    const char* begin = requests.data() + kSample.size();
    const char* end = requests.data() + requests.size();
    const auto [last, error] = std::from_chars(begin, end, spec.sample);
    if (error != std::errc() || last != end || spec.sample < 1) {
      report.problem("requests", fmt::format("\"{}\" is no sample size", requests),
                     "for example \"sample:1000\"");
    }
  } else if (requests != "all") {
    report.problem("requests", fmt::format("unknown value \"{}\"", requests),
                   "known: all, none, sample:N");
  }
  spec.chrome_trace = report.boolean_or("trace", false);
  report.finish();
  return spec;
}

}  // namespace medley
