#include <fmt/format.h>

#include "hwmodels/topology/builder.h"
#include "hwmodels/topology/kinds.h"

namespace medley {

namespace {
/// A cable for every pair; nothing passes through a third.
class MeshRouter : public PortRouter {
 public:
  MeshRouter(std::uint32_t base, std::uint32_t ports, double latency)
      : base_(base), ports_(ports), latency_(latency) {}
  RouteCost cost(std::uint32_t a, std::uint32_t b) const override {
    return a == b ? 0 : route_cost(1, latency_);
  }
  void append(std::uint32_t a, std::uint32_t b, std::uint64_t, std::uint32_t offset,
              std::vector<std::uint32_t>& links) const override {
    if (a == b) return;
    const std::uint32_t i = std::min(a, b), j = std::max(a, b);
    const std::uint32_t pair = i * ports_ - i * (i + 1) / 2 + (j - i - 1);
    links.push_back(offset + base_ + 2 * pair + (a > b ? 1 : 0));
  }

 private:
  std::uint32_t base_, ports_;
  double latency_;
};

std::unique_ptr<PortRouter> build_mesh(const FabricSpec& spec, FabricContext& context) {
  constexpr std::uint32_t kMostMeshed = 1024;
  const ResolvedLink link = context.link(spec, "link");
  if (context.size() > kMostMeshed) {
    context.problem(spec, "ports",
                    fmt::format("a mesh of {} would need a cable for every pair", context.size()),
                    fmt::format("at most {}", kMostMeshed));
  }
  if (!context.problems.empty()) return nullptr;
  const auto base = static_cast<std::uint32_t>(context.topology.links.size());
  for (std::uint32_t i = 0; i < context.size(); ++i) {
    for (std::uint32_t j = i + 1; j < context.size(); ++j) {
      context.add_cable(context.ports[i], context.ports[j], link);
    }
  }
  return std::make_unique<MeshRouter>(base, context.size(), link.latency.value());
}
}  // namespace

FabricKindInfo mesh_kind() {
  return {"mesh",
          "a cable between every two devices (MI300X, Gaudi): a pair gets one of them",
          FabricPorts::kDevices,
          {count_param("ports", "all devices of a server", "devices of a domain", 2),
           link_param("link", "required", "cable of a pair")},
          [](const FabricSpec& spec) { return spec.count("ports", 0); },
          build_mesh};
}

}  // namespace medley
