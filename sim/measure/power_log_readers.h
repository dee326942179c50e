#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sim/core/error.h"
#include "sim/measure/power_log.h"

namespace medley {

/// Gathers readings by meter and turns them into a log; used by power_log_read.cpp only.
class PowerCollector {
 public:
  explicit PowerCollector(std::string file) { account_.source = std::move(file); }
  ImportAccount& account() { return account_; }
  bool empty() const { return readings_.empty(); }
  void add(const std::string& name, double time_s, double value);
  void drop(const std::string& reason);
  /// `joules_per_count` > 0: values are counters of energy in units of it; else watts.
  PowerLog finish(PowerScope scope, double joules_per_count);

 private:
  struct Reading {
    double time_s, value;
  };
  struct Readings {
    std::string name;
    std::vector<Reading> values;
  };
  std::vector<Readings> readings_;
  ImportAccount account_;
};

}  // namespace medley
