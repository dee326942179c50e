#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "hwmodels/backend.h"
#include "hwmodels/device.h"
#include "hwmodels/node.h"
#include "hwmodels/priors.h"
#include "sim/core/json_reader.h"

namespace medley {

/// Read one catalogue entry from its JSON object (format: hwmodels/README.md). Problems go to the
/// reader; what could not be read stays unknown. With `priors`, gaps of the model (efficiencies,
/// launch overheads, link latency) are filled and marked `assumed`.
DeviceSpec read_device(ObjectReader& reader, Problems& problems, const Priors* priors);
LinkSpec read_link(ObjectReader& reader, Problems& problems, const Priors* priors);
NodeSpec read_node(ObjectReader& reader, Problems& problems);
BackendSpec read_backend(ObjectReader& reader, Problems& problems);
Priors read_priors(ObjectReader& reader, Problems& problems);
/// Section "uncertainty" of the priors.
DrawPriors read_draw_priors(ObjectReader& reader);

/// Whole files. Throw InputError with every problem of the file.
DeviceSpec load_device(const std::string& path, const Priors* priors);
LinkSpec load_link(const std::string& path, const Priors* priors);
NodeSpec load_node(const std::string& path);
BackendSpec load_backend(const std::string& path);
Priors load_priors(const std::string& path);

const std::vector<std::string>& device_kinds();
const std::vector<std::string>& link_kinds();
std::string_view to_string(FabricKind kind);  ///< "none", "switch", "mesh", "ring", ...

/// The file name of an entry: lower case, "+" spelled "-plus", every other run of characters that
/// are no letter, digit or dot one '-' ("Xeon Platinum 8480+" -> "xeon-platinum-8480-plus").
std::string slug(std::string_view name);

}  // namespace medley
