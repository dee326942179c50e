#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "hwmodels/topology/builder.h"
#include "hwmodels/topology/kinds.h"

namespace medley {

namespace {
constexpr std::size_t kMostDims = 4;

/// Chips on a grid whose rows close to rings. Dimension order: first along the first dimension,
/// then the second, ...; each the shorter way round, an exact half either way by hash. With
/// `any_order` the hash picks the order too. Both are minimal: sum over dimensions of
/// min(d, size - d).
class TorusRouter : public PortRouter {
 public:
  TorusRouter(std::vector<std::uint32_t> dims, std::vector<bool> wraps, double latency,
              bool any_order)
      : dims_(std::move(dims)),
        wraps_(std::move(wraps)),
        latency_(latency),
        any_order_(any_order) {}
  /// Cable from each chip to the next one of each dimension; kNone: there is none.
  std::vector<std::uint32_t> cable;

  RouteCost cost(std::uint32_t a, std::uint32_t b) const override {
    std::uint32_t hops = 0;
    for (std::size_t d = 0; d < dims_.size(); ++d) {
      const std::uint32_t n = dims_[d], x = a % n, y = b % n;
      const std::uint32_t apart = x > y ? x - y : y - x;
      hops += wraps_[d] ? std::min(apart, n - apart) : apart;
      a /= n;
      b /= n;
    }
    return route_cost(hops, hops * latency_);
  }

  void append(std::uint32_t a, std::uint32_t b, std::uint64_t hash, std::uint32_t offset,
              std::vector<std::uint32_t>& links) const override {
    std::array<std::size_t, kMostDims> order = {0, 1, 2, 3};
    if (any_order_) {
      for (std::size_t i = dims_.size(); i > 1; --i) {
        hash = mix_hash(hash);
        std::swap(order[i - 1], order[hash % i]);
      }
    }
    for (std::size_t i = 0; i < dims_.size(); ++i) {
      hash = mix_hash(hash);
      a = along(order[i], a, b, (hash & 1) != 0, offset, links);
    }
  }

 private:
  /// Goes to b's place in dimension d; returns where that is.
  std::uint32_t along(std::size_t d, std::uint32_t a, std::uint32_t b, bool up_if_even,
                      std::uint32_t offset, std::vector<std::uint32_t>& links) const {
    std::uint32_t stride = 1;
    for (std::size_t i = 0; i < d; ++i) stride *= dims_[i];
    const std::uint32_t n = dims_[d], goal = b / stride % n;
    std::uint32_t x = a / stride % n;
    const std::uint32_t rest = a - x * stride;
    const std::uint32_t up = goal >= x ? goal - x : goal + n - x;
    const std::uint32_t down = (n - up) % n;
    const bool forward = wraps_[d] ? (up == down ? up_if_even : up < down) : goal >= x;
    while (x != goal) {
      if (forward) {
        links.push_back(offset + cable[(rest + x * stride) * dims_.size() + d]);
        x = x + 1 == n ? 0 : x + 1;
      } else {
        x = x == 0 ? n - 1 : x - 1;
        links.push_back(offset + cable[(rest + x * stride) * dims_.size() + d] + 1);
      }
    }
    return rest + goal * stride;
  }

  std::vector<std::uint32_t> dims_;
  std::vector<bool> wraps_;
  double latency_;
  bool any_order_;
};

/// A ring is a torus of one dimension.
std::vector<std::int64_t> torus_dims(const FabricSpec& spec, std::uint32_t ports) {
  if (!spec.dims.empty()) return spec.dims;
  return {static_cast<std::int64_t>(ports)};
}

bool check_dims(const FabricSpec& spec, FabricContext& context,
                const std::vector<std::int64_t>& dims) {
  std::int64_t product = 1;
  for (const std::int64_t d : dims) product *= d;
  if (dims.size() > kMostDims) {
    context.problem(spec, "dims", fmt::format("{} dimensions", dims.size()),
                    fmt::format("at most {}", kMostDims));
  }
  if (product != context.size()) {
    context.problem(spec, "dims",
                    fmt::format("{} = {} places for {} devices", fmt::join(dims, " x "), product,
                                context.size()),
                    "their product must be the number of devices");
  }
  return context.problems.empty();
}

std::unique_ptr<PortRouter> build_torus(const FabricSpec& spec, FabricContext& context) {
  const ResolvedLink link = context.link(spec, "link");
  const std::vector<std::int64_t> given = torus_dims(spec, context.size());
  if (!check_dims(spec, context, given)) return nullptr;
  const bool wrap = spec.word("wrap", "yes") == "yes";
  std::vector<std::uint32_t> dims;
  std::vector<bool> wraps;
  for (const std::int64_t d : given) {
    dims.push_back(static_cast<std::uint32_t>(d));
    wraps.push_back(wrap && d > 2);  // two chips have one cable
  }
  auto router = std::make_unique<TorusRouter>(dims, wraps, link.latency.value(),
                                              spec.word("routing", "dimension-order") == "ecmp");
  router->cable.assign(context.size() * dims.size(), TopologyVertex::kNone);
  for (std::uint32_t v = 0; v < context.size(); ++v) {
    context.topology.vertices[context.ports[v]].forwards = true;
    std::uint32_t stride = 1;
    for (std::size_t d = 0; d < dims.size(); ++d) {
      const std::uint32_t x = v / stride % dims[d];
      const bool last = x + 1 == dims[d];
      if (!last || wraps[d]) {
        const std::uint32_t next = last ? v - x * stride : v + stride;
        router->cable[v * dims.size() + d] =
            context.add_cable(context.ports[v], context.ports[next], link);
      }
      stride *= dims[d];
    }
  }
  return router;
}

FabricParam word_param(std::string name, std::string fallback, std::string summary,
                       std::vector<std::string> words) {
  return {
      std::move(name), FabricParam::Type::kWord, std::move(fallback), std::move(summary), 0.0, 0.0,
      std::move(words)};
}
}  // namespace

FabricKindInfo ring_kind() {
  return {"ring",
          "devices in a ring that forward what is not theirs; each the shorter way round",
          FabricPorts::kDevices,
          {count_param("ports", "all devices of a server", "devices of a ring", 2),
           link_param("link", "required", "cable between neighbours"),
           word_param("wrap", "yes", "no: a line, open at the ends", {"yes", "no"})},
          [](const FabricSpec& spec) { return spec.count("ports", 0); },
          build_torus};
}

FabricKindInfo torus_kind() {
  return {
      "torus",
      "devices on a 2D to 4D grid of rings that forward what is not theirs (TPU, Trainium)",
      FabricPorts::kDevices,
      {{"dims", FabricParam::Type::kDims, "required", "sizes, for example [4, 4, 4]", 1, 1e6, {}},
       link_param("link", "required", "cable between neighbours"),
       word_param("wrap", "yes", "no: a grid, open at the edges; two in a row have one cable",
                  {"yes", "no"}),
       word_param("routing", "dimension-order", "ecmp: the order of dimensions by flow hash",
                  {"dimension-order", "ecmp"})},
      [](const FabricSpec& spec) {
        std::int64_t product = spec.dims.empty() ? 0 : 1;
        for (const std::int64_t d : spec.dims) product *= d;
        return product;
      },
      build_torus};
}

}  // namespace medley
