#include <fmt/format.h>

#include <array>
#include <nlohmann/json.hpp>

#include "hwmodels/catalog.h"
#include "hwmodels/topology/cluster.h"
#include "sim/core/error.h"

namespace medley {

namespace {
constexpr std::int64_t kMostNicsGiven = 64;

/// Reads one value of `cluster.fabric`.
class ClusterFabricReader {
 public:
  ClusterFabricReader(const std::string& file, const Catalog& catalog, Problems& problems)
      : file_(file), catalog_(catalog), problems_(problems) {}

  /// A name or a structure.
  std::optional<FabricSpec> structure(const nlohmann::ordered_json& value,
                                      const std::string& pointer) {
    if (value.is_string()) return named(value.get<std::string>(), pointer);
    const std::size_t before = problems_.size();
    ObjectReader reader(value, file_, pointer, problems_);
    FabricSpec spec = read_fabric(reader, problems_);
    if (problems_.size() > before) return std::nullopt;
    return spec;
  }

  void put(ClusterFabricSpec& into, std::optional<FabricSpec> spec, const std::string& pointer) {
    if (!spec) return;
    const FabricKindInfo* kind = find_fabric_kind(spec->kind);
    if (kind == nullptr) return;
    std::optional<FabricSpec>& place = place_of(into, kind->ports);
    if (place) {
      problems_.add(file_, pointer, "the cluster has such a structure already",
                    fmt::format("\"{}\" stands in for it", place->kind));
      return;
    }
    place = std::move(spec);
  }

  void check_place(const std::optional<FabricSpec>& spec, FabricPorts wanted,
                   const std::string& pointer) {
    if (!spec) return;
    const FabricKindInfo* kind = find_fabric_kind(spec->kind);
    // A switch may join devices too.
    const bool fits = kind && (kind->ports == wanted ||
                               (kind->name == "switch" && wanted == FabricPorts::kDevices));
    if (fits) return;
    std::string known;
    for (const FabricKindInfo& k : fabric_kinds()) {
      if (k.ports == wanted) known += (known.empty() ? "" : ", ") + k.name;
    }
    problems_.add(file_, pointer, fmt::format("\"{}\" has no place here", spec->kind),
                  "known: " + known);
  }

 private:
  static std::optional<FabricSpec>& place_of(ClusterFabricSpec& in, FabricPorts ports) {
    switch (ports) {
      case FabricPorts::kDevices:
        return in.devices;
      case FabricPorts::kHosts:
        return in.pool;
      case FabricPorts::kInside:
        return in.host;
      default:
        return in.network;
    }
  }

  std::optional<FabricSpec> named(const std::string& name, const std::string& pointer) {
    try {
      FabricSpec spec = catalog_.topology(name);
      spec.file = file_;  // what does not fit the cluster is the scenario's matter
      spec.pointer = pointer;
      return spec;
    } catch (const InputError& error) {
      for (const Problem& p : error.problems()) {
        problems_.add(p.file.empty() ? file_ : p.file, p.file.empty() ? pointer : p.pointer,
                      p.message, p.hint);
      }
      return std::nullopt;
    }
  }

  const std::string& file_;
  const Catalog& catalog_;
  Problems& problems_;
};

/// {"network": ..., "devices": ..., ...}: several structures side by side.
ClusterFabricSpec read_parts(ObjectReader& object, ClusterFabricReader& reader,
                             Problems& problems) {
  ClusterFabricSpec out;
  for (const char* key : {"kind", "nodes", "links"}) object.raw(key);  // null: taken away
  struct Part {
    const char* key;
    std::optional<FabricSpec>* spec;
    FabricPorts ports;
  };
  const std::array<Part, 4> parts = {Part{"network", &out.network, FabricPorts::kNics},
                                     Part{"devices", &out.devices, FabricPorts::kDevices},
                                     Part{"pool", &out.pool, FabricPorts::kHosts},
                                     Part{"host", &out.host, FabricPorts::kInside}};
  for (const Part& part : parts) {
    const nlohmann::ordered_json* raw = object.raw(part.key);
    if (!raw || raw->is_null()) continue;
    *part.spec = reader.structure(*raw, object.pointer_to(part.key));
    reader.check_place(*part.spec, part.ports, object.pointer_to(part.key));
  }
  out.storage = read_link_use(object, "storage", problems);
  out.nics_per_node = static_cast<int>(object.integer_or("nics_per_node", 0, 0, kMostNicsGiven));
  object.finish();
  return out;
}
}  // namespace

ClusterFabricSpec read_cluster_fabric(const nlohmann::ordered_json& value, const std::string& file,
                                      const std::string& pointer, const Catalog& catalog,
                                      Problems& problems) {
  ClusterFabricSpec out;
  ClusterFabricReader reader(file, catalog, problems);
  if (value.is_null()) return out;
  if (!value.is_string() && !value.is_object()) {
    problems.add(file, pointer, "expected the name of a topology, or an object",
                 "`medley list topologies`; {\"kind\": \"leaf-spine\", \"link\": ...}");
    return out;
  }
  const auto has = [&](const char* key) { return value.contains(key) && !value[key].is_null(); };
  const bool one = value.is_string() || has("kind") || has("nodes") || has("links");
  if (one) {
    reader.put(out, reader.structure(value, pointer), pointer);
    return out;
  }
  ObjectReader object(value, file, pointer, problems);
  return read_parts(object, reader, problems);
}

}  // namespace medley
