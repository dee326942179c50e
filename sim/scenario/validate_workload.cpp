#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "hwmodels/read.h"
#include "sim/scenario/document.h"
#include "sim/scenario/validate.h"

namespace medley {

namespace {
constexpr const char* kDefault = "default";

/// The models a fleet serves, and the names they go by.
class Served {
 public:
  Served(const Scenario& scenario, const ModelZoo& zoo) : zoo_(&zoo) {
    for (const PoolSpec& pool : scenario.pools) {
      if (std::find(names_.begin(), names_.end(), pool.model_name) != names_.end()) continue;
      names_.push_back(pool.model_name);
      models_.push_back(pool.model.name);
    }
  }

  /// The pools' name of what a request calls `name`; empty when no pool serves it.
  std::string find(const std::string& name) const {
    if (name == kDefault && names_.size() == 1) return names_.front();
    for (std::size_t i = 0; i < names_.size(); ++i) {
      if (name == names_[i] || slug(name) == slug(names_[i]) || slug(name) == slug(models_[i])) {
        return names_[i];
      }
    }
    try {
      const std::string model = zoo_->find(name).name;
      const auto it = std::find(models_.begin(), models_.end(), model);
      if (it != models_.end()) return names_[static_cast<std::size_t>(it - models_.begin())];
    } catch (const InputError&) {
      // No zoo model either: the caller reports the name.
    }
    return "";
  }
  const std::vector<std::string>& names() const { return names_; }

 private:
  const ModelZoo* zoo_;
  std::vector<std::string> names_;
  std::vector<std::string> models_;
};

void report_unserved(const std::string& name, const Served& served, const std::string& file,
                     const std::string& pointer, Problems& problems) {
  if (name == kDefault) {
    problems.add(file, pointer,
                 fmt::format("requests name no model, and the pools serve {}: {}",
                             served.names().size(), fmt::join(served.names(), ", ")),
                 fmt::format("set \"model\": \"{}\"", served.names().front()));
    return;
  }
  problems.add(file, pointer, fmt::format("no pool serves model \"{}\"", name),
               suggest(name, served.names()));
}
}  // namespace

void validate_models(const Scenario& scenario, const WorkloadSpec& workload, const ModelZoo& zoo,
                     Problems& problems) {
  const Served served(scenario, zoo);
  for (const SourceSpec& source : workload.sources) {
    for (const auto& [name, weight] : source.model.weights) {
      if (!served.find(name).empty()) continue;
      report_unserved(name, served, scenario.file, pointer_join(source.pointer, "model"), problems);
    }
  }
}

void match_models(Scenario& scenario, const ModelZoo& zoo, Problems& problems) {
  const Served served(scenario, zoo);
  Trace& trace = scenario.trace;
  std::vector<bool> used(trace.models.size());
  for (const Request& r : trace.requests) used[r.model] = true;
  std::vector<std::string> names;
  std::vector<std::uint16_t> renumbered(trace.models.size());
  for (std::size_t m = 0; m < trace.models.size(); ++m) {
    std::string name = served.find(trace.models[m]);
    if (name.empty() && used[m]) {
      report_unserved(trace.models[m], served, scenario.file, "/workload", problems);
    }
    if (name.empty()) name = trace.models[m];
    const auto it = std::find(names.begin(), names.end(), name);
    renumbered[m] = static_cast<std::uint16_t>(it - names.begin());
    if (it == names.end()) names.push_back(std::move(name));
  }
  for (Request& r : trace.requests) r.model = renumbered[r.model];
  trace.models = std::move(names);
}

void validate_classes(const Scenario& scenario, Problems& problems) {
  for (const auto& [name, slo] : scenario.slo) {
    const auto& classes = scenario.trace.classes;
    if (name == kDefault || std::find(classes.begin(), classes.end(), name) != classes.end()) {
      continue;
    }
    problems.add(scenario.file, pointer_join("/slo", name),
                 fmt::format("no request is of class \"{}\"", name), suggest(name, classes));
  }
}

}  // namespace medley
