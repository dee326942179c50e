#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "sim/core/error.h"
#include "sim/core/json_reader.h"
#include "sim/validation/check_against_load.h"
#include "workloads/generator.h"
#include "workloads/generator_load.h"
#include "workloads/trace_write.h"

namespace medley {

namespace {
using Json = nlohmann::ordered_json;

constexpr const char* kNoFile = "check-against.json";  ///< what messages call the built scenario
constexpr const char* kTraceFile = "requests.csv";
constexpr const char* kPool = "server";

/// The smallest catalogue node with `gpus` of the device, or the devices alone with the host's link
/// between them.
Json node_with(const Catalog& catalog, const std::string& device, int gpus) {
  const std::string& name = catalog.device(device).name;
  const NodeSpec* best = nullptr;
  for (const NodeSpec* node : catalog.nodes()) {
    const DeviceSpec* on_node = catalog.find_device(node->device);
    if (on_node == nullptr || on_node->name != name || node->devices < gpus) continue;
    if (best == nullptr || node->devices < best->devices) best = node;
  }
  if (best != nullptr) return {{"type", best->name}, {"count", 1}};
  Json node = {{"device", name}, {"devices", gpus}, {"count", 1}};
  const std::string& link = catalog.device(device).host_link;
  if (gpus > 1 && !link.empty()) node["fabric"] = {{"kind", "host"}, {"link", link}};
  return node;
}

/// Builds the scenario of a deployment and a load, and runs it.
class Rebuilder {
 public:
  Rebuilder(const BenchResult& measured, const CheckDeployment& d, const CheckLoad& load)
      : measured_(measured), d_(d), load_(load), rebuilt_(rebuild_load(measured, load)) {
    document_ = d.scenario.empty() ? built() : replaced();
    document_["seed"] = load.seed;
  }

  const RebuiltLoad& rebuilt() const { return rebuilt_; }

  LoadedScenario load() {
    LoadedScenario loaded = generated();
    if (rebuilt_.listed) {
      loaded.scenario.trace = trace(loaded.scenario.trace.models.at(0));
    } else if (rebuilt_.drawn && scale_to_means(loaded.scenario.trace)) {
      loaded = generated();
    }
    return loaded;
  }

  /// The scenario and its trace as files: the trace keeps its own arrivals, those of a closed loop
  /// or a law stand beside it.
  void describe(const Scenario& scenario, RebuiltRun& run) const {
    Json document = Json::parse(scenario.resolved_json);  // with what --set changed
    document["workload"] = document_["workload"];
    if (rebuilt_.listed) {
      Json& source = document["workload"];
      source.erase("generate");
      source["trace"] = {{"file", kTraceFile}};
      if (!rebuilt_.arrivals_json.empty()) {
        source["arrivals"] = Json::parse(rebuilt_.arrivals_json);
      }
      run.trace_csv = native_csv(
          listed_trace(measured_, static_cast<std::size_t>(rebuilt_.requests), "default"));
    }
    run.scenario_json = document.dump(2) + "\n";
  }

 private:
  Trace trace(const std::string& model) const {
    Trace t = listed_trace(measured_, static_cast<std::size_t>(rebuilt_.requests), model);
    if (rebuilt_.arrivals_json.empty()) return t;
    const Json json = Json::parse(rebuilt_.arrivals_json);
    Problems problems;
    const ArrivalSpec spec =
        load_arrivals(ObjectReader(json, kNoFile, "/workload/arrivals", problems), {});
    problems.throw_if_any();
    replace_arrivals(t, spec, "main", load_.seed);
    return t;
  }

  Json built() {
    model_ = d_.model.empty() ? measured_.model : d_.model;
    if (model_.empty()) {
      throw InputError(measured_.source, "", "names no model", "--model llama-3.1-8b");
    }
    const int each = d_.tensor_parallel * d_.pipeline_parallel;
    const int gpus = d_.gpus > 0 ? d_.gpus : each * std::max(1, d_.replicas);
    Json node;
    if (!d_.node.empty()) {
      node = {{"type", d_.node}, {"count", 1}};
    } else if (!d_.device.empty()) {
      node = node_with(Catalog(d_.catalog_dirs), d_.device, gpus);
    } else {
      throw InputError("", "", "nothing says what the requests ran on",
                       "--node 8xH100-SXM, --device H100-SXM5-80GB, or --scenario FILE");
    }
    const int fit = d_.node.empty() ? std::max(1, gpus / each) : 1;
    Json pool = {{"node", "n"},
                 {"model", model_},
                 {"backend", d_.backend},
                 {"replicas", d_.replicas > 0 ? d_.replicas : fit},
                 {"tensor_parallel_size", d_.tensor_parallel},
                 {"pipeline_parallel_size", d_.pipeline_parallel}};
    Json document = {{"schema", "medley.scenario/1"}, {"name", "check-against"}};
    document["cluster"]["nodes"]["n"] = node;
    document["pools"][kPool] = pool;
    document["workload"] = workload();
    return document;
  }

  Json replaced() {
    LoadOptions options = load_options();
    options.path = d_.scenario;
    options.overrides = d_.sets;
    options.build_trace = false;
    const Scenario scenario = load_scenario(options);
    for (const PoolSpec& pool : scenario.pools) {
      if (!model_.empty() && pool.model_name != model_ && d_.model.empty()) {
        throw InputError(d_.scenario, "/pools", "serves several models: which one was measured?",
                         fmt::format("--model {} or --model {}", model_, pool.model_name));
      }
      model_ = pool.model_name;
    }
    if (!d_.model.empty()) model_ = d_.model;
    Json document = Json::parse(scenario.resolved_json);
    document["workload"] = workload();
    document.erase("measure");
    document.erase("horizon");
    if (document.contains("slo")) {  // measured requests are of the class "default"
      Json& slo = document["slo"];
      slo = slo.contains("default") ? Json{{"default", slo["default"]}} : Json::object();
    }
    return document;
  }

  Json workload() const {
    Json source;
    if (rebuilt_.listed) {  // a placeholder: the trace itself is put in place of it
      source["generate"] = {{"arrivals", {{"process", "constant"}, {"rate", "1 req/s"}}},
                            {"input_tokens", 1},
                            {"output_tokens", 1},
                            {"requests", 1}};
    } else {
      source["generate"] = {{"arrivals", Json::parse(rebuilt_.arrivals_json)},
                            {"input_tokens", Json::parse(rebuilt_.input_json)},
                            {"output_tokens", Json::parse(rebuilt_.output_json)},
                            {"requests", rebuilt_.requests}};
    }
    if (rebuilt_.rate && !rebuilt_.listed) {  // the offered rate is met exactly, not on average
      source["target_rate"] = fmt::format("{} req/s", *rebuilt_.rate);
    }
    source["model"] = model_;
    return source;
  }

  LoadOptions load_options() const {
    LoadOptions options;
    options.catalog_dirs = d_.catalog_dirs;
    options.model_dirs = d_.zoo_dirs;
    options.assume_missing = d_.assume_missing;
    return options;
  }

  LoadedScenario generated() const {
    LoadOptions options = load_options();
    options.path = d_.scenario.empty() ? kNoFile : d_.scenario;
    if (d_.scenario.empty()) options.overrides = d_.sets;
    options.text = document_.dump();
    return load_with_catalog(options);
  }

  /// Random lengths have the measured means; true when that changed anything.
  bool scale_to_means(const Trace& t) {
    double input = 0.0, output = 0.0;
    for (const Request& r : t.requests) {
      input += r.input_tokens;
      output += r.output_tokens;
    }
    const auto n = static_cast<double>(t.requests.size());
    const auto scale = [&](const char* key, double measured, double drawn) {
      const double factor = measured / (drawn / n);
      if (!std::isfinite(factor) || std::abs(factor - 1.0) < 1e-4) return false;
      document_["workload"][key] = std::round(factor * 1e6) / 1e6;
      if (std::abs(factor - 1.0) > 0.2) {
        rebuilt_.notes.push_back(fmt::format(
            "the lengths drawn are far from the measured mean: scaled by {:.3g}", factor));
      }
      return true;
    };
    const bool in = scale("scale_input", measured_.mean_input(), input);
    const bool out = scale("scale_output", measured_.mean_output(), output);
    return in || out;
  }

  const BenchResult& measured_;
  const CheckDeployment& d_;
  const CheckLoad& load_;
  RebuiltLoad rebuilt_;
  std::string model_;
  Json document_;
};

}  // namespace

RebuiltRun rebuild_run(const BenchResult& measured, const CheckDeployment& deployment,
                       const CheckLoad& load) {
  Rebuilder rebuilder(measured, deployment, load);
  RebuiltRun run;
  run.loaded = rebuilder.load();
  run.load = rebuilder.rebuilt();
  rebuilder.describe(run.loaded.scenario, run);
  return run;
}

}  // namespace medley
