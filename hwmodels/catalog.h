#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "hwmodels/backend.h"
#include "hwmodels/device.h"
#include "hwmodels/node.h"
#include "hwmodels/priors.h"
#include "hwmodels/topology/fabric.h"

namespace medley {

/// Devices, links, node types, backends and topologies as data files: the shipped ones plus the
/// user's own directories (searched first; a user's entry shadows a shipped one of the same name).
///
/// Layout of a directory: {devices,links,nodes,backends,topologies}/<slug of the name>.json, one
/// entry per file; calibrations/<slug>.json, overlays of fitted numbers (hwmodels/calibration.h)
/// that are laid over the entry of that name, those of later directories last; and optionally
/// priors.json. A lookup by name opens that one file; only a lookup by alias, a listing or a miss
/// reads the others. Entries are kept once read. Names and aliases match by their slugs, so case,
/// blanks and underscores do not matter. Not thread-safe while loading; runs copy what they need
/// into the scenario.
class Catalog {
 public:
  /// Of `directories` a later one shadows an earlier one; all shadow the shipped catalogue.
  explicit Catalog(std::vector<std::string> directories);
  ~Catalog();

  /// Throw InputError {file "", pointer "", message, did-you-mean} when there is no such entry.
  const DeviceSpec& device(std::string_view name) const;
  const LinkSpec& link(std::string_view name) const;
  const NodeSpec& node(std::string_view name) const;
  const BackendSpec& backend(std::string_view name) const;
  const DeviceSpec* find_device(std::string_view name) const;
  const LinkSpec* find_link(std::string_view name) const;
  const NodeSpec* find_node(std::string_view name) const;
  const BackendSpec* find_backend(std::string_view name) const;
  const FabricSpec& topology(std::string_view name) const;
  const FabricSpec* find_topology(std::string_view name) const;

  std::vector<const DeviceSpec*> devices() const;  ///< all, by name
  std::vector<const LinkSpec*> links() const;
  std::vector<const NodeSpec*> nodes() const;
  std::vector<const BackendSpec*> backends() const;
  std::vector<const FabricSpec*> topologies() const;
  const Priors& priors() const;  ///< for `with_assumed`

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// The directory that holds hwmodels/catalog, workloads/zoo and configs: $MEDLEY_DATA_DIR when set,
/// else <prefix>/share/medley beside an installed binary, else the source tree. Throws InputError.
std::string shipped_data_directory();

}  // namespace medley
