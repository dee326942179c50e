#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "hwmodels/topology/topology.h"
#include "sim/core/json_reader.h"

namespace medley {

class Catalog;

/// What a cable is made of: a catalogue link, or given numbers.
///   "InfiniBand NDR"
///   {"link": "InfiniBand NDR", "count": 2}
///   {"bandwidth": "40 GB/s", "latency": "1 us", "duplex": "half"}
/// A bandwidth given here is what a large transfer reaches, per direction; beside a catalogue link
/// it replaces bandwidth x achieved, and a latency likewise. Given numbers are class `assumed`
/// unless a catalogue entry says otherwise with "class" and "source".
struct LinkUse {
  std::string link;
  std::optional<BytesPerSec> bandwidth;
  std::optional<Seconds> latency;
  int count = 1;  ///< that many in parallel as one wire
  bool half_duplex = false;
  Provenance provenance = Provenance::kAssumed;  ///< of given numbers
  std::string source;
  std::string pointer;  ///< where it stands, for messages
  bool given() const { return !link.empty() || bandwidth.has_value(); }
};

/// A corner and a cable of an explicit list.
struct FabricVertex {
  std::string name;
  VertexKind kind = VertexKind::kSwitch;
  bool forwards = true;
  int count = 1;  ///< name0, name1, ... where above 1
};
struct FabricCable {
  std::string from, to;
  LinkUse link;
  std::string pointer;
};

struct FabricSite;

/// One structure: a kind of the registry with its parameters, as a catalogue entry
/// (topologies/<slug>.json) or a scenario has them. Parameters that are not given are worked out
/// from the number of ports (`FabricKind`).
struct FabricSpec {
  std::string name;  ///< of the catalogue entry; empty when written out
  std::vector<std::string> aliases;
  std::string file, pointer;  ///< for messages
  std::string notes;
  std::string source;  ///< of the counts
  Provenance provenance = Provenance::kAssumed;
  std::string kind;
  std::map<std::string, double, std::less<>> numbers;  ///< counts, ratios, times in s
  std::map<std::string, std::string, std::less<>> words;
  std::map<std::string, LinkUse, std::less<>> links;
  std::vector<std::int64_t> dims;
  std::vector<FabricVertex> vertices;  ///< kind "list"
  std::vector<FabricCable> cables;     ///< kinds "list" and "wan"
  std::vector<FabricSite> sites;       ///< kind "wan"

  double number(std::string_view key, double fallback) const;
  std::int64_t count(std::string_view key, std::int64_t fallback) const;
  std::string word(std::string_view key, std::string_view fallback) const;
  bool has(std::string_view key) const { return numbers.find(key) != numbers.end(); }
};

/// One place of a WAN: so many servers and how they are joined there.
struct FabricSite {
  std::string name;
  std::int64_t nodes = 0;
  std::shared_ptr<const FabricSpec> fabric;  ///< null: one switch
};

/// What a structure joins in a cluster.
enum class FabricPorts : std::uint8_t {
  kNics,     ///< the servers' NICs
  kDevices,  ///< the devices, within a server or across
  kHosts,    ///< sockets
  kInside    ///< is the inside of a server
};

/// One parameter of a kind: strict keys, defaults and documentation come from it.
struct FabricParam {
  enum class Type : std::uint8_t { kCount, kNumber, kTime, kLink, kWord, kDims };
  std::string name;
  Type type = Type::kCount;
  std::string fallback;  ///< in words
  std::string summary;
  double min = 1.0;
  double max = 1e6;
  std::vector<std::string> words;  ///< of kWord
};

class PortRouter;
struct FabricContext;

/// A kind of structure. To add one: a file with its builder and a line in fabric_kinds.cpp.
struct FabricKindInfo {
  std::string name;
  std::string summary;
  FabricPorts ports = FabricPorts::kNics;
  std::vector<FabricParam> params;
  /// Ports it has by itself, 0 where the parameters leave it open.
  std::int64_t (*own_ports)(const FabricSpec& spec) = nullptr;
  /// Adds switches and cables to the context's topology and returns the rule for routes between
  /// ports. Problems go to the context; null then.
  std::unique_ptr<PortRouter> (*build)(const FabricSpec& spec, FabricContext& context) = nullptr;
};
const std::vector<FabricKindInfo>& fabric_kinds();
const FabricKindInfo* find_fabric_kind(std::string_view name);
/// Markdown table of kinds and parameters, for hwmodels/README.md.
std::string fabric_kinds_markdown();

/// Reads a structure: {"kind": "leaf-spine", ...} or {"nodes": {...}, "links": [...]}. Problems go
/// to the reader.
FabricSpec read_fabric(ObjectReader& reader, Problems& problems);
/// One cable: a name or an object (see LinkUse). Absent: not given.
LinkUse read_link_use(ObjectReader& reader, std::string_view key, Problems& problems);
/// A catalogue entry "medley.topology/1": the same with name, aliases, notes, "sources" and the
/// class and source of its structure; links with numbers of their own name theirs.
FabricSpec read_topology_entry(ObjectReader& reader, Problems& problems);
FabricSpec load_topology_entry(const std::string& path);

/// A structure alone, with as many ports as its parameters say (`ports` where they leave it open).
/// Throws InputError with every problem.
Topology build_topology(const Catalog& catalog, const FabricSpec& spec);

}  // namespace medley
