#pragma once

#include <string>
#include <vector>

#include "tools/command.h"

namespace medley::cli {

/// `medley show topology NAME`: a catalogue topology, or the inside of a node type.
void show_topology(const std::string& name, const std::vector<std::string>& catalog_dirs,
                   Format format, bool dot);

}  // namespace medley::cli
