#pragma once

// Every built-in policy by name. Adding one: a class and one line in its registry.
#include "sim/serving/routing.h"  // routing_registry()
