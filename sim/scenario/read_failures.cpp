#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>

#include "sim/scenario/read.h"

namespace medley {

namespace {
constexpr Range kInstant{0.0, 9e9};
constexpr Range kSpan{1e-9, 9e9};
constexpr Range kDelay{0.0, 9e9};

/// "name/1/2": what stands before the last `count` numbers, and those. False: not of that form.
bool split_numbers(std::string_view text, std::size_t count, std::string& name,
                   std::vector<std::uint32_t>& numbers) {
  numbers.assign(count, 0);
  for (std::size_t i = count; i-- > 0;) {
    const std::size_t slash = text.rfind('/');
    if (slash == std::string_view::npos) return false;
    const std::string_view digits = text.substr(slash + 1);
    const auto [end, error] =
        std::from_chars(digits.data(), digits.data() + digits.size(), numbers[i]);
    if (error != std::errc() || end != digits.data() + digits.size()) return false;
    text = text.substr(0, slash);
  }
  name = std::string(text);
  return true;
}

/// Finds the parts that events name, with one problem for each that is not there.
class PartFinder {
 public:
  PartFinder(const std::vector<NodeGroup>& groups, const std::vector<PoolSpec>& pools,
             const ClusterFabricSpec& fabric, const ReadContext& context)
      : groups_(groups), pools_(pools), fabric_(fabric), context_(context) {}

  bool find(ResolvingReader& at, std::string_view key, const std::string& text, FailingPart& part) {
    part.name = text;
    switch (part.kind) {
      case FailingKind::kLink:
        return find_link(at, key, text, part);
      case FailingKind::kReplica:
        return find_replica(at, key, text, part);
      default:
        return find_hardware(at, key, text, part);
    }
  }

  std::vector<FailingPart> all_cables(ResolvingReader& at) {
    std::vector<FailingPart> all;
    if (!build(at, "mtbf")) return all;
    const Topology& t = cluster_->topology;
    for (std::uint32_t l = 0; l < t.links.size(); l += 2) {
      FailingPart part;
      part.kind = FailingKind::kLink;
      part.links = {l};
      part.name = cable_name(l);
      all.push_back(std::move(part));
    }
    return all;
  }

 private:
  std::string cable_name(std::uint32_t link) const {
    const Topology& t = cluster_->topology;
    return fmt::format("{} - {}", t.vertices[t.links[link].from].name,
                       t.vertices[t.links[link].to].name);
  }
  bool find_hardware(ResolvingReader& at, std::string_view key, const std::string& text,
                     FailingPart& part) {
    const bool device = part.kind == FailingKind::kDevice;
    std::string name;
    std::vector<std::uint32_t> numbers;
    if (!split_numbers(text, device ? 2 : 1, name, numbers)) {
      at.problem(key, fmt::format("\"{}\" names no {}", text, to_string(part.kind)),
                 device ? "<node group>/<node>/<device>, as \"h100/0/3\""
                        : "<node group>/<node>, as \"h100/0\"");
      return false;
    }
    std::vector<std::string> names;
    for (const NodeGroup& g : groups_) names.push_back(g.name);
    const auto it = std::find(names.begin(), names.end(), name);
    if (it == names.end()) {
      at.problem(key, fmt::format("there is no node group \"{}\"", name), suggest(name, names));
      return false;
    }
    part.group = static_cast<std::uint32_t>(it - names.begin());
    part.node = numbers[0];
    part.device = device ? numbers[1] : 0;
    const NodeGroup& group = groups_[part.group];
    if (!below(at, key, part.node, group.count, "node", group.name)) return false;
    return !device || below(at, key, part.device, group.type.devices, "device",
                            fmt::format("{}/{}", group.name, part.node));
  }

  bool find_replica(ResolvingReader& at, std::string_view key, const std::string& text,
                    FailingPart& part) {
    std::string name;
    std::vector<std::uint32_t> numbers;
    if (!split_numbers(text, 1, name, numbers)) {
      at.problem(key, fmt::format("\"{}\" names no replica", text),
                 "<pool>/<replica>, as \"chat/1\"");
      return false;
    }
    std::vector<std::string> names;
    for (const PoolSpec& p : pools_) names.push_back(p.name);
    const auto it = std::find(names.begin(), names.end(), name);
    if (it == names.end()) {
      at.problem(key, fmt::format("there is no pool \"{}\"", name), suggest(name, names));
      return false;
    }
    part.group = static_cast<std::uint32_t>(it - names.begin());
    part.node = numbers[0];
    return below(at, key, part.node, pools_[part.group].replicas, "replica", name);
  }

  static bool below(ResolvingReader& at, std::string_view key, std::uint32_t index, int count,
                    const char* what, const std::string& owner) {
    if (index < static_cast<std::uint32_t>(std::max(0, count))) return true;
    at.problem(key, fmt::format("{} has no {} {}", owner, what, index),
               count > 0 ? fmt::format("{}s are numbered 0 to {}", what, count - 1) : "");
    return false;
  }

  bool build(ResolvingReader& at, std::string_view key) {
    if (tried_) return cluster_.has_value();
    tried_ = true;
    std::vector<ClusterGroup> built;
    for (const NodeGroup& g : groups_) {
      if (g.device.name.empty()) return false;  // unknown: told already
      built.push_back({g.name, &g.type, g.count, &g.device, g.cpu ? &*g.cpu : nullptr});
    }
    try_at(at, key, [&] { cluster_ = build_cluster(context_.catalog, built, fabric_); });
    return cluster_.has_value();
  }

  /// "a - b", or the name of a wire: "a > b", "a <> b". Every cable between the two.
  bool find_link(ResolvingReader& at, std::string_view key, const std::string& text,
                 FailingPart& part) {
    if (!build(at, key)) return false;
    const Topology& t = cluster_->topology;
    for (const char* joint : {" <> ", " > ", " - "}) {
      const std::size_t split = text.find(joint);
      if (split == std::string::npos) continue;
      const std::string ends[] = {text.substr(0, split),
                                  text.substr(split + std::string_view(joint).size())};
      std::uint32_t vertex[2];
      for (int i = 0; i < 2; ++i) {
        vertex[i] = t.find(ends[i]);
        if (vertex[i] != TopologyVertex::kNone) continue;
        std::vector<std::string> names;
        for (const TopologyVertex& v : t.vertices) names.push_back(v.name);
        at.problem(key, fmt::format("the cluster has no \"{}\"", ends[i]), suggest(ends[i], names));
        return false;
      }
      for (const std::uint32_t l : t.out_links(vertex[0])) {
        if (t.links[l].to == vertex[1]) part.links.push_back(l & ~1U);
      }
      if (!part.links.empty()) {
        part.name = cable_name(part.links.front());
        return true;
      }
      std::vector<std::string> names;
      for (const std::uint32_t l : t.out_links(vertex[0])) {
        names.push_back(t.vertices[t.links[l].to].name);
      }
      at.problem(key, fmt::format("no link joins {} and {}", ends[0], ends[1]),
                 fmt::format("{} is joined with: {}", ends[0], fmt::join(names, ", ")));
      return false;
    }
    at.problem(key, fmt::format("\"{}\" names no link", text),
               "both of its ends, as \"h100/0/gpu0 - h100/0/nvswitch\"; `medley show topology`");
    return false;
  }

  const std::vector<NodeGroup>& groups_;
  const std::vector<PoolSpec>& pools_;
  const ClusterFabricSpec& fabric_;
  const ReadContext& context_;
  bool tried_ = false;
  std::optional<ClusterTopology> cluster_;
};

constexpr FailingKind kKinds[] = {FailingKind::kDevice, FailingKind::kNode, FailingKind::kReplica,
                                  FailingKind::kLink};

bool read_event(ResolvingReader& at, PartFinder& finder, FailureSpec::Event& event) {
  const auto when = at.maybe_quantity<Seconds>("at", kInstant);
  if (!at.has("at")) at.problem("at", "missing required key", "when it fails, as \"100 s\"");
  event.lasts = at.maybe_quantity<Seconds>("for", kSpan);
  if (when) event.at = SimTime::from_seconds(*when);
  int named = 0;
  bool found = false;
  for (const FailingKind kind : kKinds) {
    const auto text = at.maybe_text(to_string(kind));
    if (!text) continue;
    ++named;
    event.part.kind = kind;
    found = finder.find(at, to_string(kind), *text, event.part);
  }
  if (named != 1) {
    at.problem("", named == 0 ? "nothing fails" : "several things fail",
               "name one device, node, replica or link; others in events of their own");
  }
  at.finish();
  return named == 1 && found && when.has_value();
}

void check_overlaps(ResolvingReader& at, const std::vector<FailureSpec::Event>& events) {
  std::vector<const FailureSpec::Event*> order;
  for (const FailureSpec::Event& e : events) order.push_back(&e);
  std::stable_sort(order.begin(), order.end(), [](const auto* a, const auto* b) {
    if (a->part.kind != b->part.kind) return a->part.kind < b->part.kind;
    return a->part.name != b->part.name ? a->part.name < b->part.name : a->at < b->at;
  });
  for (std::size_t i = 1; i < order.size(); ++i) {
    const FailureSpec::Event& a = *order[i - 1];
    const FailureSpec::Event& b = *order[i];
    if (a.part.kind != b.part.kind || a.part.name != b.part.name) continue;
    if (a.lasts && SimTime::after(a.at, *a.lasts) <= b.at) continue;
    at.problem("events",
               fmt::format("{} {} fails at {:.6g} s while it is down since {:.6g} s",
                           to_string(b.part.kind), b.part.name, b.at.seconds().value(),
                           a.at.seconds().value()),
               a.lasts ? "let the first end before" : "the first lasts for good: give it \"for\"");
  }
}

/// {"device": time, ...} under `key`.
template <class Store>
void read_by_kind(ResolvingReader& at, const char* key, Range range, const Store& store) {
  auto below = at.maybe_object(key);
  if (!below) return;
  for (const FailingKind kind : kKinds) {
    const auto value = below->maybe_quantity<Seconds>(to_string(kind), range);
    if (value) store(static_cast<std::size_t>(kind), *value);
  }
  below->finish();
}

void read_random(ResolvingReader& at, FailureSpec& spec) {
  std::array<std::optional<Seconds>, kFailingKinds> repair;
  std::array<std::optional<double>, kFailingKinds> shape;
  read_by_kind(at, "mtbf", kSpan, [&](std::size_t k, Seconds s) { spec.random[k].mtbf = s; });
  read_by_kind(at, "mttr", kDelay, [&](std::size_t k, Seconds s) { repair[k] = s; });
  if (auto below = at.maybe_object("shape")) {
    for (const FailingKind kind : kKinds) {
      shape[static_cast<std::size_t>(kind)] =
          below->maybe_number(to_string(kind), Range{0.1, 100.0});
    }
    below->finish();
  }
  for (const FailingKind kind : kKinds) {
    const auto k = static_cast<std::size_t>(kind);
    FailureSpec::Random& random = spec.random[k];
    if (repair[k]) random.mttr = *repair[k];
    if (shape[k]) random.shape = *shape[k];
    if (random.mtbf && !repair[k] && kind != FailingKind::kReplica) {
      at.problem("mttr", fmt::format("there is no mean time to repair a {}", to_string(kind)),
                 fmt::format("mtbf.{} needs mttr.{}", to_string(kind), to_string(kind)));
    }
    if (!random.mtbf && (repair[k] || shape[k])) {
      at.problem(repair[k] ? "mttr" : "shape",
                 fmt::format("a {} does not fail at random", to_string(kind)),
                 fmt::format("give mtbf.{}", to_string(kind)));
    }
  }
}

void read_policy_of_failures(ResolvingReader& at, FailureSpec& spec) {
  spec.restart = at.quantity_or<Seconds>("restart", spec.restart, kDelay);
  spec.retry = at.choice_or("requests", {"retry", "lose"}, "retry") == "retry";
  for (const char* key : {"keep_output", "max_retries"}) {
    if (!spec.retry && at.has(key)) {
      at.problem(key, "has no effect where requests are lost", "set requests to \"retry\"");
    }
    at.in().raw(key);
  }
  if (spec.retry) {
    spec.keep_output = at.boolean_or("keep_output", spec.keep_output);
    spec.max_retries = static_cast<int>(at.integer_or("max_retries", spec.max_retries, 0, 1000));
  }
  spec.power = at.choice_or("power", {"deep_idle", "off"}, "deep_idle") == "off"
                   ? FailureSpec::Power::kOff
                   : FailureSpec::Power::kDeepIdle;
  if (auto below = at.maybe_object("shed")) {
    FailureSpec::Shed shed;
    shed.above = below->number_or("above", 0.0, Range::non_negative());
    shed.below_priority =
        static_cast<std::int16_t>(below->integer_or("below_priority", 0, INT16_MIN, INT16_MAX));
    if (!below->has("above")) {
      below->problem("above", "missing required key", "outstanding requests per healthy replica");
    }
    below->finish();
    spec.shed = shed;
  }
}
}  // namespace

FailureSpec read_failures(ResolvingReader& root, const std::vector<NodeGroup>& groups,
                          const std::vector<PoolSpec>& pools, const ClusterFabricSpec& fabric,
                          const ReadContext& context) {
  FailureSpec spec;
  if (!root.has("failures")) {
    root.in().raw("failures");
    return spec;
  }
  spec.given = true;
  ResolvingReader at = root.object_or_empty("failures");
  PartFinder finder(groups, pools, fabric, context);
  std::vector<nlohmann::json> written;
  at.in().each_element("events", [&](std::size_t, ObjectReader reader) {
    nlohmann::json out;
    FailureSpec::Event event;
    {
      ResolvingReader below(std::move(reader), out, at.problems());
      if (read_event(below, finder, event)) spec.events.push_back(std::move(event));
    }
    written.push_back(std::move(out));
  });
  if (!written.empty()) at.out()["events"] = written;
  check_overlaps(at, spec.events);
  read_random(at, spec);
  read_policy_of_failures(at, spec);
  if (spec.of(FailingKind::kLink).mtbf) spec.cables = finder.all_cables(at);
  at.finish();
  return spec;
}

}  // namespace medley
