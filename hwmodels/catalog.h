#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "hwmodels/backend.h"
#include "hwmodels/device.h"
#include "hwmodels/node.h"

namespace medley {

/// Devices, links, node types and backends as data files: the shipped ones plus the user's own
/// directories (searched first; a user's entry shadows a shipped one of the same name).
///
/// Layout of a directory: {devices,links,nodes,backends}/<file>.json, one entry per file; the file
/// name in lower case with '-' equals the name or an alias. Entries load on first use and are kept;
/// a listing loads all. Not thread-safe while loading; runs copy what they need into the scenario.
/// Names and aliases match case-insensitively.
class Catalog {
 public:
  /// `directories` later first; the shipped directory is appended by `shipped_directory()`.
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

  std::vector<const DeviceSpec*> devices() const;  ///< all, by name
  std::vector<const LinkSpec*> links() const;
  std::vector<const NodeSpec*> nodes() const;
  std::vector<const BackendSpec*> backends() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Where the shipped catalogue lies: $MEDLEY_DATA_DIR/hwmodels/catalog when set, else the source
/// tree's when it exists, else <prefix>/share/medley/hwmodels/catalog beside the binary.
std::string shipped_data_directory();  ///< holds hwmodels/catalog, workloads/zoo, configs

}  // namespace medley
