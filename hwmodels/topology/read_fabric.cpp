#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <set>

#include "hwmodels/sourced_reader.h"
#include "hwmodels/topology/fabric.h"

namespace medley {

namespace {
constexpr std::int64_t kMostCount = 1000000;
constexpr int kMostParallel = 1024;

/// Reads structures of one document; with `sourced`, those of a catalogue entry.
class FabricReader {
 public:
  FabricReader(Problems& problems, SourcedReader* sourced)
      : problems_(problems), sourced_(sourced) {}

  FabricSpec read(ObjectReader& reader) {
    FabricSpec spec;
    spec.file = reader.file();
    spec.pointer = reader.pointer();
    if (!reader.has("kind") && (reader.has("nodes") || reader.has("links"))) {
      spec.kind = "list";
      reader.raw("kind");
    } else {
      std::vector<std::string> names;
      for (const FabricKindInfo& k : fabric_kinds()) names.push_back(k.name);
      spec.kind = reader.choice("kind", names);
    }
    const FabricKindInfo* kind = find_fabric_kind(spec.kind);
    if (kind == nullptr) return spec;
    for (const FabricParam& p : kind->params) read_param(reader, p, spec);
    if (spec.kind == "list") read_vertices(reader, spec);
    if (spec.kind == "wan") read_sites(reader, spec);
    if (spec.kind == "list" || spec.kind == "wan") read_cables(reader, spec);
    return spec;
  }

  LinkUse link(ObjectReader& reader, std::string_view key) {
    const nlohmann::ordered_json* raw = reader.raw(key);
    LinkUse use;
    use.pointer = reader.pointer_to(key);
    if (!raw || raw->is_null()) return use;
    if (raw->is_string()) {
      use.link = raw->get<std::string>();
      if (use.link.empty()) reader.problem(key, "the name of a link is empty");
      return use;
    }
    if (!raw->is_object()) {
      reader.problem(key, "expected the name of a link, or an object",
                     "{\"link\": \"InfiniBand NDR\", \"count\": 2} or {\"bandwidth\": \"50 GB/s\", "
                     "\"latency\": \"1 us\"}");
      return use;
    }
    ObjectReader object(*raw, reader.file(), use.pointer, problems_);
    read_link(object, use);
    object.finish();
    return use;
  }

 private:
  void read_link(ObjectReader& object, LinkUse& use) {
    use.link = object.text_or("link", "");
    use.bandwidth = object.maybe_quantity<BytesPerSec>("bandwidth", Range::positive());
    use.latency = object.maybe_quantity<Seconds>("latency");
    use.count = static_cast<int>(object.integer_or("count", 1, 1, kMostParallel));
    use.half_duplex = object.choice_or("duplex", {"full", "half"}, "full") == "half";
    if (use.link.empty() && !use.bandwidth) {
      object.problem("link", "missing required key", "name a catalogue link or give \"bandwidth\"");
    }
    if (sourced_ && (use.bandwidth || use.latency)) {
      Sourced<double> citation;
      sourced_->cite(object, citation);
      use.provenance = citation.provenance;
      use.source = citation.source;
    }
  }

  void read_param(ObjectReader& reader, const FabricParam& p, FabricSpec& spec) {
    const Range range{p.min, p.max};
    switch (p.type) {
      case FabricParam::Type::kCount:
        if (const auto v = reader.maybe_integer(p.name, static_cast<std::int64_t>(p.min),
                                                static_cast<std::int64_t>(p.max))) {
          spec.numbers[p.name] = static_cast<double>(*v);
        }
        break;
      case FabricParam::Type::kNumber:
        if (const auto v = reader.maybe_number(p.name, range)) spec.numbers[p.name] = *v;
        break;
      case FabricParam::Type::kTime:
        if (const auto v = reader.maybe_quantity<Seconds>(p.name, range)) {
          spec.numbers[p.name] = v->value();
        }
        break;
      case FabricParam::Type::kLink: {
        const LinkUse use = link(reader, p.name);
        if (use.given()) spec.links[p.name] = use;
        break;
      }
      case FabricParam::Type::kWord:
        if (reader.has(p.name)) spec.words[p.name] = reader.choice(p.name, p.words);
        reader.raw(p.name);
        break;
      case FabricParam::Type::kDims:
        for (const double d : reader.numbers_or_empty(p.name, range)) {
          spec.dims.push_back(static_cast<std::int64_t>(d));
          if (static_cast<double>(spec.dims.back()) != d) {
            reader.problem(p.name, "sizes are whole numbers");
          }
        }
        if (spec.dims.empty()) {
          reader.problem(p.name, "missing required key", "for example [4, 4, 4]");
        }
        break;
    }
  }

  void read_vertices(ObjectReader& reader, FabricSpec& spec) {
    std::vector<std::string> kinds;
    for (int k = 0; k < kVertexKinds; ++k) {
      kinds.emplace_back(to_string(static_cast<VertexKind>(k)));
    }
    reader.each_member("nodes", [&](const std::string& name, ObjectReader object) {
      FabricVertex v;
      v.name = name;
      const std::string kind = object.choice_or("kind", kinds, "switch");
      for (std::size_t k = 0; k < kinds.size(); ++k) {
        if (kinds[k] == kind) v.kind = static_cast<VertexKind>(k);
      }
      const bool passes = v.kind != VertexKind::kDevice && v.kind != VertexKind::kMemory &&
                          v.kind != VertexKind::kStorage;
      v.forwards = object.boolean_or("forwards", passes);
      v.count = static_cast<int>(object.integer_or("count", 1, 1, kMostCount));
      object.finish();
      spec.vertices.push_back(std::move(v));
    });
  }

  void read_cables(ObjectReader& reader, FabricSpec& spec) {
    reader.each_element("links", [&](std::size_t, ObjectReader object) {
      FabricCable cable;
      cable.pointer = object.pointer();
      cable.from = object.text("from");
      cable.to = object.text("to");
      cable.link.pointer = object.pointer_to("link");
      read_link(object, cable.link);
      object.finish();
      spec.cables.push_back(std::move(cable));
    });
    if (spec.cables.empty() && (spec.kind == "list" || spec.sites.size() > 1)) {
      reader.problem("links", "there are no links",
                     "[{\"from\": ..., \"to\": ..., \"link\": ...}]");
    }
  }

  void read_sites(ObjectReader& reader, FabricSpec& spec) {
    reader.each_member("sites", [&](const std::string& name, ObjectReader object) {
      FabricSite site;
      site.name = name;
      site.nodes = object.integer("nodes", 1, kMostCount);
      if (auto fabric = object.maybe_object("fabric")) {
        site.fabric = std::make_shared<FabricSpec>(read(*fabric));
        fabric->finish();
      }
      object.finish();
      spec.sites.push_back(std::move(site));
    });
    if (spec.sites.empty()) {
      reader.problem("sites", "there are no sites", "{\"paris\": {\"nodes\": 4}, ...}");
    }
  }

  Problems& problems_;
  SourcedReader* sourced_;
};
}  // namespace

LinkUse read_link_use(ObjectReader& reader, std::string_view key, Problems& problems) {
  return FabricReader(problems, nullptr).link(reader, key);
}

FabricSpec read_fabric(ObjectReader& reader, Problems& problems) {
  FabricSpec spec = FabricReader(problems, nullptr).read(reader);
  reader.finish();
  return spec;
}

FabricSpec read_topology_entry(ObjectReader& reader, Problems& problems) {
  reader.choice("schema", {"medley.topology/1"});
  const std::string name = reader.text("name");
  const std::vector<std::string> aliases = reader.texts_or_empty("aliases");
  const std::string notes = reader.text_or("notes", "");
  SourcedReader sourced(reader, problems);
  Sourced<double> structure;
  sourced.cite(reader, structure);
  FabricSpec spec = FabricReader(problems, &sourced).read(reader);
  reader.finish();
  spec.name = name;
  spec.aliases = aliases;
  spec.notes = notes;
  spec.source = structure.source;
  spec.provenance = structure.provenance;
  return spec;
}

FabricSpec load_topology_entry(const std::string& path) {
  const nlohmann::ordered_json document = load_json(path);
  Problems problems;
  ObjectReader reader(document, path, "", problems);
  FabricSpec spec = read_topology_entry(reader, problems);
  problems.throw_if_any();
  return spec;
}

}  // namespace medley
