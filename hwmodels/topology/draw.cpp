#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "hwmodels/topology/describe.h"
#include "sim/core/unit_text.h"

namespace medley {

namespace {
/// "376 GB/s": three digits are enough to read.
std::string short_rate(BytesPerSec rate) {
  return format_quantity(BytesPerSec(std::stod(fmt::format("{:.3g}", rate.value()))));
}

std::string cable_text(const Topology& t, std::uint32_t link) {
  const TopologyWire& w = t.wires[t.links[link].wire];
  const bool half = t.links[link].wire == t.links[link ^ 1U].wire;
  return fmt::format("{}{}{}{}", w.link, w.link.empty() ? "" : ", ", short_rate(w.bandwidth),
                     half ? " half duplex" : "");
}

/// A name without its numbers: what alike vertices have in common.
std::string stem(const std::string& name) {
  std::string out;
  for (const char c : name) {
    const bool digit = c >= '0' && c <= '9';
    if (!digit) out += c;
    if (digit && (out.empty() || out.back() != '#')) out += '#';
  }
  return out;
}

/// "host0, host1, ..., host31 (32)".
std::string names_text(const std::vector<std::string>& names) {
  constexpr std::size_t kAll = 4;
  if (names.size() <= kAll) return fmt::format("{}", fmt::join(names, ", "));
  return fmt::format("{}, {}, ..., {} ({})", names[0], names[1], names.back(), names.size());
}

/// Neighbours of a vertex by what they are and what leads there, in order of appearance.
std::vector<std::pair<std::string, std::vector<std::string>>> neighbours(const Topology& t,
                                                                         std::uint32_t v) {
  std::vector<std::pair<std::string, std::vector<std::string>>> rows;
  for (const std::uint32_t l : t.out_links(v)) {
    const std::string& name = t.vertices[t.links[l].to].name;
    const std::string key = stem(name) + "  [" + cable_text(t, l) + "]";
    auto it = std::find_if(rows.begin(), rows.end(), [&](const auto& r) { return r.first == key; });
    if (it == rows.end()) it = rows.insert(rows.end(), {key, {}});
    it->second.push_back(name);
  }
  return rows;
}

std::string cable_of(const std::string& key) {
  return key.substr(key.find("  ["));
}

/// Hangs on one other thing, which names it.
bool hangs(const Topology& t, std::uint32_t v) {
  const auto out = t.out_links(v);
  return out.last - out.first == 1 && [&] {
    const auto other = t.out_links(t.links[*out.first].to);
    return other.last - other.first > 1;
  }();
}

std::string draw_each(const Topology& t) {
  std::string text;
  for (std::uint32_t v = 0; v < t.vertices.size(); ++v) {
    if (hangs(t, v)) continue;
    text += fmt::format("{} ({})\n", t.vertices[v].name, to_string(t.vertices[v].kind));
    for (const auto& [key, names] : neighbours(t, v)) {
      text += fmt::format("  -- {}{}\n", names_text(names), cable_of(key));
    }
  }
  return text;
}

std::string draw_alike(const Topology& t) {
  struct Class {
    std::vector<std::string> names;
    std::string text;
  };
  std::vector<std::string> order;
  std::map<std::string, Class> classes;
  for (std::uint32_t v = 0; v < t.vertices.size(); ++v) {
    std::string rows;
    for (const auto& [key, names] : neighbours(t, v)) {
      rows += fmt::format("  -- {} x {}\n", names.size(), key);
    }
    const std::string kind(to_string(t.vertices[v].kind));
    const std::string id = stem(t.vertices[v].name) + kind + rows;
    Class& c = classes[id];
    if (c.names.empty()) {
      order.push_back(id);
      c.text = fmt::format(" ({}), each:\n{}", kind, rows);
    }
    c.names.push_back(t.vertices[v].name);
  }
  std::string text;
  for (const std::string& id : order) text += names_text(classes[id].names) + classes[id].text;
  return text;
}

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + "\"";
}

const char* dot_shape(VertexKind kind) {
  constexpr const char* kShapes[kVertexKinds] = {"box",      "house",    "parallelogram", "ellipse",
                                                 "cylinder", "cylinder", "doubleoctagon"};
  return kShapes[static_cast<std::size_t>(kind)];
}
}  // namespace

std::string draw_text(const Topology& topology, std::size_t each_up_to) {
  return topology.vertices.size() <= each_up_to ? draw_each(topology) : draw_alike(topology);
}

std::string draw_dot(const Topology& t, const std::string& name) {
  std::string text =
      fmt::format("graph {} {{\n  node [fontsize=10];\n  edge [fontsize=8];\n", quoted(name));
  for (const TopologyVertex& v : t.vertices) {
    text += fmt::format("  {} [shape={}];\n", quoted(v.name), dot_shape(v.kind));
  }
  for (std::uint32_t l = 0; l < t.links.size(); l += 2) {
    text += fmt::format("  {} -- {} [label={}];\n", quoted(t.vertices[t.links[l].from].name),
                        quoted(t.vertices[t.links[l].to].name), quoted(cable_text(t, l)));
  }
  return text + "}\n";
}

}  // namespace medley
