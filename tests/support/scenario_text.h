#pragma once

#include <string>
#include <vector>

#include "sim/scenario/load.h"

namespace medley::test {

/// A small valid scenario. Its file is said to be configs/scenarios/test.json, where nothing is.
inline const char* kScenario = R"({
  "schema": "medley.scenario/1",
  "seed": 7,
  "cluster": {"nodes": {
    "h100": {"type": "8xH100-SXM", "count": 1},
    "l40s": {"type": "4xL40S", "count": 1}
  }},
  "pools": {
    "big": {"node": "h100", "model": "llama-3.1-70b", "replicas": 2, "tensor_parallel_size": 4},
    "small": {"node": "l40s", "model": "llama-3.1-8b", "replicas": 4}
  },
  "routing": {"policy": "round_robin"},
  "workload": {"sources": {
    "chat": {"model": "llama-3.1-8b", "class": "chat", "generate": {
      "arrivals": {"process": "poisson", "rate": "2 req/s"},
      "input_tokens": 128, "output_tokens": 64, "requests": 20}},
    "code": {"model": "llama-3.1-70b", "class": "code", "generate": {
      "arrivals": {"process": "constant", "rate": "1 req/s"},
      "input_tokens": 512, "output_tokens": 32, "requests": 10}}
  }},
  "slo": {"chat": {"ttft": "500 ms", "tpot": "50 ms"}},
  "price": {"energy": "0.12 USD/kWh", "carbon_intensity": "400 gCO2/kWh"},
  "measure": {"warmup": "1 s"}
})";

/// kScenario with `from` replaced by `to`; `from` must occur exactly once.
inline std::string scenario_with(const std::string& from, const std::string& to) {
  std::string text = kScenario;
  const std::size_t at = text.find(from);
  if (at == std::string::npos || text.find(from, at + 1) != std::string::npos) {
    throw std::logic_error("\"" + from + "\" does not occur once");
  }
  return text.replace(at, from.size(), to);
}

inline LoadOptions options_of(std::string text, std::vector<std::string> overrides = {}) {
  LoadOptions options;
  options.path = "configs/scenarios/test.json";
  options.text = std::move(text);
  options.overrides = std::move(overrides);
  return options;
}

inline Scenario load_text(std::string text, std::vector<std::string> overrides = {}) {
  return load_scenario(options_of(std::move(text), std::move(overrides)));
}

}  // namespace medley::test
