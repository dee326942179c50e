#pragma once

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "hwmodels/backend.h"
#include "hwmodels/device.h"
#include "sim/core/json_reader.h"

namespace medley {

class SourcedReader;

/// An overlay of fitted numbers: a partial device (or backend) document that `medley calibrate`
/// writes and the catalogue lays over the entry it names, before gaps are filled with priors.
///
///   {"schema": "medley.calibration/1", "device": "H100-SXM5-80GB", "date": "2026-11-30",
///    "command": "medley calibrate ...", "notes": "...", "sources": {"key": "citation"},
///    "efficiency": {...}, "sustained": {...}, "launch": {...}, "power": {...}}
///   {"schema": "medley.calibration/1", "backend": "vllm-2026", ...,
///    "host": {per_step, per_sequence}, "kernels": {decode_skew},
///    "memory": {context_reserve, activation_factor}}
///
/// Leaves are those of device and backend files and may carry, as those may,
///   "error": relative standard error, "n": samples, and ramps "range": ["1 MFLOP", "3 TFLOP"].
/// File: calibrations/<slug of the name>.json in a catalogue directory.
struct Calibration {
  std::string file;
  std::string device;   ///< catalogue name; empty for a backend's
  std::string backend;  ///< catalogue name; empty for a device's
  std::string date;     ///< YYYY-MM-DD, an argument of the command that made it
  std::string command;
  std::string notes;
  std::map<std::string, std::string> sources;  ///< key: citation
  DeviceSpec device_values;                    ///< only what the overlay says is known
  BackendSpec backend_values;
  const std::string& name() const { return device.empty() ? backend : device; }
};

Calibration read_calibration(ObjectReader& reader, Problems& problems);
/// Throws InputError with every problem of the file.
Calibration load_calibration(const std::string& path);

/// Every known leaf of the overlay replaces the entry's. Throws InputError {the overlay's file}
/// where an idle power would be above the device's limit.
void apply(const Calibration& calibration, DeviceSpec& device);
void apply(const Calibration& calibration, BackendSpec& backend);

/// The document as text. Law: read_calibration of it gives the same values; same values, same
/// bytes.
std::string to_json_text(const Calibration& calibration);

/// Sections that devices and their overlays share: sustained, efficiency, launch, power.
void read_calibrated(ObjectReader& reader, SourcedReader& sourced, DeviceSpec& device);
/// The same of backends: host times, decode skew, memory reserves. The readers are those of the
/// sections "host", "kernels", "memory".
void read_calibrated(ObjectReader& host, ObjectReader& kernels, ObjectReader& memory,
                     SourcedReader& sourced, BackendSpec& backend);

}  // namespace medley
