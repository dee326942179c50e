#include "sim/scenario/load.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "sim/core/text_file.h"
#include "sim/scenario/document.h"
#include "sim/scenario/paths.h"
#include "sim/scenario/read.h"
#include "sim/scenario/validate.h"
#include "workloads/workload_spec.h"

namespace medley {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

namespace {
constexpr double kLongestRun = 9e9;  ///< s

/// Without comments and "$" keys, keys sorted.
nlohmann::json without_comments(const Json& value) {
  if (value.is_array()) {
    nlohmann::json out = nlohmann::json::array();
    for (const Json& element : value) out.push_back(without_comments(element));
    return out;
  }
  if (!value.is_object()) return nlohmann::json(value);
  nlohmann::json out = nlohmann::json::object();
  for (const auto& [key, below] : value.items()) {
    if (key != "comment" && !key.starts_with('$') && !below.is_null()) {
      out[key] = without_comments(below);
    }
  }
  return out;
}

bool names_folder(const std::string& name) {
  constexpr std::size_t kLongest = 100;
  constexpr const char* kLetters =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.";
  return !name.empty() && name.size() <= kLongest && name[0] != '.' &&
         name.find_first_not_of(kLetters) == std::string::npos;
}

std::vector<std::string> directories(ResolvingReader& root, std::string_view key,
                                     const std::string& folder,
                                     const std::vector<std::string>& more) {
  std::vector<std::string> written = root.texts_or_empty(key);
  std::vector<std::string> found;
  for (const std::string& name : written) {
    found.push_back(resolve_path(folder, name));
    if (!fs::is_directory(found.back())) {
      root.problem(key, fmt::format("there is no folder \"{}\"", name),
                   "paths are relative to the scenario file");
    }
  }
  for (const std::string& name : more) {
    found.push_back(name);
    written.push_back(rebase_path(name, "", folder));
    if (!fs::is_directory(name)) {
      throw InputError(name, "", "there is no such folder", "it was given on the command line");
    }
  }
  if (!written.empty()) root.out()[std::string(key)] = written;
  return found;
}

/// One load, from the document to the scenario.
class Loader {
 public:
  Loader(const LoadOptions& options, const Document& document)
      : options_(options),
        document_(document),
        folder_(fs::path(options.path).parent_path().string()) {
    loaded_.scenario.file = options.path;
  }

  LoadedScenario load() {
    try {
      read();
      throw_problems();
      finish();
      throw_problems();
    } catch (const InputError& error) {
      throw InputError(document_.blame(error.problems()));
    }
    return std::move(loaded_);
  }

 private:
  void throw_problems() { problems_.throw_if_any(); }

  void read() {
    Scenario& s = loaded_.scenario;
    ResolvingReader root(ObjectReader(*document_.root, options_.path, "", problems_), resolved_,
                         problems_);
    read_general(root);
    const std::size_t before = problems_.size();
    const auto catalog_dirs = directories(root, "catalog", folder_, options_.catalog_dirs);
    std::vector<std::string> zoo_dirs = directories(root, "zoo", folder_, options_.model_dirs);
    // Nothing can be looked up in a folder that is not there.
    if (problems_.size() > before) throw_problems();
    const std::string shipped = shipped_data_directory();
    zoo_dirs.insert(zoo_dirs.begin(), (fs::path(shipped) / "workloads" / "zoo").string());
    loaded_.catalog = std::make_unique<Catalog>(catalog_dirs);
    zoo_ = std::make_unique<ModelZoo>(zoo_dirs);

    const ReadContext context{*loaded_.catalog, *zoo_,      folder_,
                              s.assume_missing, s.warnings, assumed_};
    if (!root.has("cluster")) root.problem("cluster", "missing required key");
    ResolvingReader cluster = root.object_or_empty("cluster");
    if (root.has("cluster")) s.nodes = read_cluster(cluster, context, s.fabric);
    s.pools = read_pools(root, s.nodes, context);
    s.routing = read_routing(root);
    s.kv_transfer = read_kv_transfer(root, s.pools);
    s.migration = read_migration(root, s.pools);
    s.contention = read_contention(root);
    s.failures = read_failures(root, s.nodes, s.pools, s.fabric, context);
    s.slo = read_slo(root);
    s.price = read_price(root);
    s.measure = read_measure(root);
    s.report = read_report(root);
    read_workload(root, shipped);
    root.finish();
  }

  void read_general(ResolvingReader& root) {
    Scenario& s = loaded_.scenario;
    root.in().choice("schema", {"medley.scenario/1"});
    root.set("schema", "medley.scenario/1");
    s.name = root.text_or("name", fs::path(options_.path).stem().string());
    if (!names_folder(s.name)) {
      root.problem("name", fmt::format("\"{}\" cannot name a result folder", s.name),
                   "letters, digits, '-', '_' and '.', at most 100, not starting with '.'");
    }
    s.seed = static_cast<std::uint64_t>(root.integer_or("seed", 1, 0, INT64_MAX));
    s.assume_missing = root.in().boolean_or("assume_missing", false) || options_.assume_missing;
    root.out()["assume_missing"] = s.assume_missing;
    s.fast_forward = root.boolean_or("fast_forward", true);
    if (const auto tie = root.maybe_integer("tie_seed", 0, INT64_MAX)) {
      s.tie_seed = static_cast<std::uint64_t>(*tie);
    }
    if (const auto horizon = root.maybe_quantity<Seconds>("horizon", Range{1e-9, kLongestRun})) {
      s.horizon = SimTime::from_seconds(*horizon);
    }
  }

  void read_workload(ResolvingReader& root, const std::string& shipped) {
    if (!root.has("workload")) {
      root.problem("workload", "missing required key",
                   "name a trace or describe a generator; configs/README.md shows both");
      return;
    }
    ObjectReader reader = root.in().object("workload");
    workload_ = load_workload(reader, {folder_.empty() ? "." : folder_, shipped});
    root.out()["workload"] = without_comments((*document_.root)["workload"]);
  }

  void finish() {
    Scenario& s = loaded_.scenario;
    validate_hardware(s, problems_);
    validate_models(s, workload_, *zoo_, problems_);
    throw_problems();
    if (options_.build_trace) {
      s.trace = build_trace(workload_, s.seed);
      match_models(s, *zoo_, problems_);
      validate_classes(s, problems_);
    }
    for (std::string& w : assumed_value_warnings(s, assumed_)) s.warnings.push_back(std::move(w));
    for (std::string& w : missing_value_warnings(s)) s.warnings.push_back(std::move(w));
    s.resolved_json = resolved_.dump(2) + "\n";
    s.hash8 = hex64(fnv1a(s.resolved_json)).substr(0, 8);
  }

  const LoadOptions& options_;
  const Document& document_;
  std::string folder_;
  Problems problems_;
  nlohmann::json resolved_ = nlohmann::json::object();
  std::unique_ptr<ModelZoo> zoo_;
  WorkloadSpec workload_;
  std::map<std::string, std::vector<std::string>> assumed_;
  LoadedScenario loaded_;
};
}  // namespace

LoadedScenario load_with_catalog(const LoadOptions& options) {
  const Document document = load_document(options);
  return Loader(options, document).load();
}

Scenario load_scenario(const LoadOptions& options) {
  return load_with_catalog(options).scenario;
}

}  // namespace medley
