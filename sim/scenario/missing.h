#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "hwmodels/device.h"
#include "hwmodels/node.h"

namespace medley {

/// Power values that are unknown and energy accounting needs, as `overrides` spells them
/// ("power.active_floor", "node.power.overhead"); `used`: formats whose energy per flop counts.
std::vector<std::string> unknown_power(const DeviceSpec& device, const NodeSpec& node,
                                       const std::vector<DType>& used);
/// The price that `capex` (else rent) accounting needs and neither device nor node has; or empty.
std::vector<std::string> unknown_price(const DeviceSpec& device, const NodeSpec& node, bool capex);
/// Formats with a known peak.
std::vector<DType> native_dtypes(const DeviceSpec& device);

/// --set 'cluster.nodes.<group>.overrides.<field>=<value in its unit>': how to supply a missing
/// value, ready for a shell but for the number.
std::string set_line(const std::string& group, std::string_view field);

}  // namespace medley
