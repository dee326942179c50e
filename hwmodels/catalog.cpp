#include "hwmodels/catalog.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <optional>
#include <set>
#include <system_error>
#include <type_traits>
#include <utility>

#include "hwmodels/calibration.h"
#include "hwmodels/read.h"
#include "sim/core/error.h"

namespace medley {

namespace fs = std::filesystem;

namespace {
std::vector<fs::path> json_files(const fs::path& folder) {
  std::vector<fs::path> files;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    if (it->path().extension() == ".json") files.push_back(it->path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

/// One kind of entry in all directories.
template <class Spec>
class Shelf {
 public:
  using Load = std::function<Spec(const std::string& path)>;
  Shelf(std::string what, std::string folder, const std::vector<std::string>& directories,
        Load load)
      : what_(std::move(what)), load_(std::move(load)) {
    for (const std::string& d : directories) folders_.push_back(fs::path(d) / folder);
  }

  const Spec* find(std::string_view name) {
    const std::string key = slug(name);
    if (key.empty()) return nullptr;
    if (const auto it = by_slug_.find(key); it != by_slug_.end()) return it->second.get();
    if (const auto it = by_alias_.find(key); it != by_alias_.end()) return it->second;
    for (const fs::path& folder : folders_) {
      const fs::path path = folder / (key + ".json");
      std::error_code ignored;
      if (fs::is_regular_file(path, ignored)) return load(key, path);
    }
    load_all();
    const auto it = by_alias_.find(key);
    return it == by_alias_.end() ? nullptr : it->second;
  }

  const Spec& get(std::string_view name) {
    if (const Spec* found = find(name)) return *found;
    load_all();
    std::vector<std::string> known;
    for (const auto& [key, spec] : by_slug_) known.push_back(spec->name);
    std::string hint = nearest(name, known);
    if (hint.empty()) {
      std::vector<std::string> wider = known;
      for (const auto& [key, spec] : by_slug_) {
        wider.insert(wider.end(), spec->aliases.begin(), spec->aliases.end());
      }
      hint = nearest(name, wider);
    }
    throw InputError(
        "", "", fmt::format("unknown {} \"{}\"", what_, name),
        hint.empty() ? suggest(name, known) : fmt::format("did you mean \"{}\"?", hint));
  }

  std::vector<const Spec*> all() {
    load_all();
    std::vector<const Spec*> list;
    for (const auto& [key, spec] : by_slug_) list.push_back(spec.get());
    return list;
  }

 private:
  const Spec* load(const std::string& key, const fs::path& path) {
    auto spec = std::make_unique<Spec>(load_(path.string()));
    if (slug(spec->name) != key) {
      throw InputError(path.string(), "/name",
                       fmt::format("the entry is called \"{}\"", spec->name),
                       fmt::format("name the file {}.json", slug(spec->name)));
    }
    return by_slug_.emplace(key, std::move(spec)).first->second.get();
  }

  void load_all() {
    if (complete_) return;
    std::vector<Problem> problems;
    for (const fs::path& folder : folders_) {  // earlier folders shadow later ones
      for (const fs::path& path : json_files(folder)) {
        const std::string key = path.stem().string();
        if (by_slug_.count(key)) continue;
        try {
          index_aliases(*load(key, path));
        } catch (const InputError& error) {
          problems.insert(problems.end(), error.problems().begin(), error.problems().end());
        }
      }
    }
    if (!problems.empty()) throw InputError(std::move(problems));
    for (const auto& [key, spec] : by_slug_) index_aliases(*spec);
    complete_ = true;
  }

  void index_aliases(const Spec& spec) {
    for (const std::string& alias : spec.aliases) by_alias_.emplace(slug(alias), &spec);
  }

  std::string what_;
  Load load_;
  std::vector<fs::path> folders_;  ///< first wins
  std::map<std::string, std::unique_ptr<Spec>> by_slug_;
  std::map<std::string, const Spec*> by_alias_;
  bool complete_ = false;
};

/// Lays the overlays of `path`'s entry over it. Directories of lower precedence than the entry's
/// own do not count: who writes an entry of his own does not want the shipped one's fits.
template <class Spec>
void apply_overlays(Spec& spec, const std::string& path, const std::vector<std::string>& order) {
  const fs::path root = fs::path(path).parent_path().parent_path();
  auto own = std::find_if(order.begin(), order.end(),
                          [&](const std::string& d) { return fs::path(d) == root; });
  MEDLEY_CHECK(own != order.end(), "an entry lies outside the catalogue's directories");
  const std::string file = slug(spec.name) + ".json";
  for (auto it = std::make_reverse_iterator(own + 1); it != order.rend(); ++it) {
    const fs::path overlay = fs::path(*it) / "calibrations" / file;
    std::error_code ignored;
    if (!fs::is_regular_file(overlay, ignored)) continue;
    const Calibration calibration = load_calibration(overlay.string());
    const bool device = std::is_same_v<Spec, DeviceSpec>;
    const std::string& name = device ? calibration.device : calibration.backend;
    if (slug(name) != slug(spec.name)) {
      throw InputError(overlay.string(), calibration.device.empty() ? "/backend" : "/device",
                       fmt::format("the overlay is for \"{}\"", calibration.name()),
                       fmt::format("here it should name the {} \"{}\"",
                                   device ? "device" : "backend", spec.name));
    }
    apply(calibration, spec);
  }
}

/// Every overlay belongs to an entry.
void check_overlays(const std::vector<std::string>& order) {
  Problems problems;
  for (const std::string& directory : order) {
    for (const fs::path& overlay : json_files(fs::path(directory) / "calibrations")) {
      std::vector<std::string> known;
      bool found = false;
      for (const std::string& d : order) {
        for (const char* folder : {"devices", "backends"}) {
          std::error_code ignored;
          found = found || fs::is_regular_file(fs::path(d) / folder / overlay.filename(), ignored);
        }
      }
      if (found) continue;
      for (const std::string& d : order) {
        for (const char* folder : {"devices", "backends"}) {
          for (const fs::path& entry : json_files(fs::path(d) / folder))
            known.push_back(entry.stem().string());
        }
      }
      problems.add(
          overlay.string(), "",
          fmt::format("there is no device or backend \"{}\" to calibrate", overlay.stem().string()),
          suggest(overlay.stem().string(), known));
    }
  }
  problems.throw_if_any();
}

std::vector<std::string> search_order(std::vector<std::string> directories) {
  for (const std::string& d : directories) {
    std::error_code ignored;
    const fs::path root(d);
    const bool any =
        fs::is_directory(root / "devices", ignored) || fs::is_directory(root / "links", ignored) ||
        fs::is_directory(root / "nodes", ignored) || fs::is_directory(root / "backends", ignored) ||
        fs::is_directory(root / "topologies", ignored) ||
        fs::is_directory(root / "calibrations", ignored);
    if (!any) {
      throw InputError(
          d, "", "is no catalogue directory",
          "it should hold devices/, links/, nodes/, backends/, topologies/ or calibrations/");
    }
  }
  std::reverse(directories.begin(), directories.end());
  directories.push_back((fs::path(shipped_data_directory()) / "hwmodels" / "catalog").string());
  return directories;
}
}  // namespace

struct Catalog::Impl {
  explicit Impl(const std::vector<std::string>& order)
      : directories(order),
        devices("device", "devices", order,
                [this](const std::string& path) {
                  DeviceSpec device = load_device(path, nullptr);
                  apply_overlays(device, path, directories);
                  fill_model_gaps(device, priors());
                  return device;
                }),
        links("link", "links", order,
              [this](const std::string& path) { return load_link(path, &priors()); }),
        nodes("node type", "nodes", order, load_node),
        backends("backend", "backends", order,
                 [this](const std::string& path) {
                   BackendSpec backend = load_backend(path);
                   apply_overlays(backend, path, directories);
                   return backend;
                 }),
        topologies("topology", "topologies", order, load_topology_entry) {
    check_overlays(order);
  }

  const Priors& priors() {
    if (!loaded_priors) {
      for (const std::string& d : directories) {
        const fs::path path = fs::path(d) / "priors.json";
        std::error_code ignored;
        if (!fs::is_regular_file(path, ignored)) continue;
        loaded_priors = load_priors(path.string());
        break;
      }
    }
    MEDLEY_CHECK(loaded_priors.has_value(), "the shipped catalogue has no priors.json");
    return *loaded_priors;
  }

  std::vector<std::string> directories;
  std::optional<Priors> loaded_priors;
  Shelf<DeviceSpec> devices;
  Shelf<LinkSpec> links;
  Shelf<NodeSpec> nodes;
  Shelf<BackendSpec> backends;
  Shelf<FabricSpec> topologies;
};

Catalog::Catalog(std::vector<std::string> directories)
    : impl_(std::make_unique<Impl>(search_order(std::move(directories)))) {}
Catalog::~Catalog() = default;

const DeviceSpec& Catalog::device(std::string_view name) const {
  return impl_->devices.get(name);
}
const LinkSpec& Catalog::link(std::string_view name) const {
  return impl_->links.get(name);
}
const NodeSpec& Catalog::node(std::string_view name) const {
  return impl_->nodes.get(name);
}
const BackendSpec& Catalog::backend(std::string_view name) const {
  return impl_->backends.get(name);
}
const DeviceSpec* Catalog::find_device(std::string_view name) const {
  return impl_->devices.find(name);
}
const LinkSpec* Catalog::find_link(std::string_view name) const {
  return impl_->links.find(name);
}
const NodeSpec* Catalog::find_node(std::string_view name) const {
  return impl_->nodes.find(name);
}
const BackendSpec* Catalog::find_backend(std::string_view name) const {
  return impl_->backends.find(name);
}
std::vector<const DeviceSpec*> Catalog::devices() const {
  return impl_->devices.all();
}
std::vector<const LinkSpec*> Catalog::links() const {
  return impl_->links.all();
}
std::vector<const NodeSpec*> Catalog::nodes() const {
  return impl_->nodes.all();
}
std::vector<const BackendSpec*> Catalog::backends() const {
  return impl_->backends.all();
}
const FabricSpec& Catalog::topology(std::string_view name) const {
  return impl_->topologies.get(name);
}
const FabricSpec* Catalog::find_topology(std::string_view name) const {
  return impl_->topologies.find(name);
}
std::vector<const FabricSpec*> Catalog::topologies() const {
  return impl_->topologies.all();
}
const Priors& Catalog::priors() const {
  return impl_->priors();
}

}  // namespace medley
