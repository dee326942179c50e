#pragma once

// Factories of the algorithms, one file each; private to sim/network.

#include "sim/network/collective.h"

namespace medley {

CollectiveAlgorithm ring_algorithm();
CollectiveAlgorithm double_tree_algorithm();
CollectiveAlgorithm halving_doubling_algorithm();
CollectiveAlgorithm direct_algorithm();
CollectiveAlgorithm one_shot_algorithm();
CollectiveAlgorithm two_shot_algorithm();
CollectiveAlgorithm hierarchical_algorithm();
CollectiveAlgorithm in_switch_algorithm();
CollectiveAlgorithm nvls_algorithm();

}  // namespace medley
