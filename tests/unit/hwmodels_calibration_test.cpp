#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "hwmodels/calibration.h"
#include "hwmodels/catalog.h"
#include "sim/core/error.h"
#include "tests/support/scratch_directory.h"

using namespace medley;
namespace fs = std::filesystem;

namespace {
void write(const fs::path& path, const std::string& text) {
  fs::create_directories(path.parent_path());
  std::ofstream(path) << text;
}

std::string overlay(const std::string& body, const std::string& device = "H100-SXM5-80GB") {
  return R"({"schema": "medley.calibration/1", "device": ")" + device +
         R"(", "date": "2026-01-31", "sources": {"mine": "own sweep"})" + body + "}";
}
constexpr const char* kGemm = R"(, "efficiency": {"gemm": {
  "compute": {"bf16": {"fraction": 0.5, "half": "2 GFLOP", "serial": 0.25,
              "range": ["1 MFLOP", "3 TFLOP"], "error": 0.06, "n": 2500,
              "class": "measured", "source": "mine"}},
  "memory_by_format": {"fp4": {"fraction": 0.6, "half": "1 MB", "class": "measured",
                       "source": "mine"}}}})";

std::string what(const std::string& directory, const std::string& device) {
  try {
    const Catalog catalog({directory});
    (void)catalog.device(device);
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}
bool has(const std::string& text, const char* part) {
  return text.find(part) != std::string::npos;
}
}  // namespace

TEST_CASE("a user's overlay replaces the leaves it names and no others, whatever the alias") {
  const ScratchDirectory scratch;
  write(fs::path(scratch.path()) / "calibrations" / "h100-sxm5-80gb.json", overlay(kGemm));
  const Catalog plain({});
  const Catalog mine({scratch.path()});
  const OpEfficiency& before = plain.device("h100").efficiency[index(OpClass::kGemm)];
  const OpEfficiency& after = mine.device("h100").efficiency[index(OpClass::kGemm)];
  const Sourced<Ramp>& ramp = after.compute[index(DType::kBf16)];
  CHECK(ramp.value->fraction == 0.5);
  CHECK(ramp.value->half == 2e9);
  CHECK(ramp.value->serial == 0.25);
  CHECK(ramp.value->low == 1e6);
  CHECK(ramp.value->high == 3e12);
  CHECK(ramp.error == 0.06);
  CHECK(ramp.n == 2500);
  CHECK(ramp.source == "own sweep");
  CHECK(after.memory_of(DType::kFp4).value->fraction == 0.6);
  CHECK(after.memory.value->fraction == before.memory.value->fraction);
  CHECK(after.compute[index(DType::kFp8)].value->fraction ==
        before.compute[index(DType::kFp8)].value->fraction);
}

TEST_CASE("overlays of later directories win; an entry of one's own has no shipped overlay") {
  const ScratchDirectory first, second, third;
  const auto at = [](const ScratchDirectory& d) {
    return fs::path(d.path()) / "calibrations" / "h100-sxm5-80gb.json";
  };
  write(at(first), overlay(R"(, "launch": {"graph": {"value": "1 us", "class": "measured",
                              "source": "mine"}, "stream": {"value": "9 us", "class": "measured",
                              "source": "mine"}})"));
  write(at(second), overlay(R"(, "launch": {"graph": {"value": "2 us", "class": "measured",
                               "source": "mine"}})"));
  const Catalog catalog({first.path(), second.path()});
  CHECK((*catalog.device("h100").launch_graph).value() == 2e-6);
  CHECK((*catalog.device("h100").launch_stream).value() == 9e-6);

  write(fs::path(third.path()) / "devices" / "h100-sxm5-80gb.json",
        R"({"schema": "medley.device/1", "name": "H100-SXM5-80GB", "vendor": "me", "kind": "gpu",
            "sources": {"s": "a page"},
            "peak": {"bf16": {"value": "900 TFLOP/s", "class": "datasheet", "source": "s"}},
            "memory": {"bandwidth": {"value": "3 TB/s", "class": "datasheet", "source": "s"}}})");
  const Catalog own({first.path(), third.path()});
  const DeviceSpec& device = own.device("H100-SXM5-80GB");
  CHECK(device.launch_graph.provenance == Provenance::kAssumed);
  CHECK(device.efficiency[index(OpClass::kGemm)].compute[index(DType::kBf16)].provenance ==
        Provenance::kAssumed);
}

TEST_CASE("a backend's overlay") {
  const ScratchDirectory scratch;
  write(fs::path(scratch.path()) / "calibrations" / "vllm-2026.json",
        R"({"schema": "medley.calibration/1", "backend": "vllm-2026", "date": "2026-01-31",
            "sources": {"mine": "own runs"},
            "host": {"per_step": {"value": "3 ms", "error": 0.1, "class": "measured",
                                  "source": "mine"}},
            "kernels": {"decode_skew": {"value": 0.1, "class": "measured", "source": "mine"}}})");
  const Catalog catalog({scratch.path()});
  const BackendSpec& b = catalog.backend("vllm");
  CHECK((*b.host_per_step).value() == 3e-3);
  CHECK(b.host_per_step.error == 0.1);
  CHECK(*b.decode_skew == 0.1);
  CHECK(b.host_per_sequence.source != "own runs");
}

TEST_CASE("what is written reads back equal, and writes the same bytes again") {
  const nlohmann::ordered_json document =
      parse_json(overlay(std::string(kGemm) +
                         R"(, "sustained": {"bf16": {"value": 0.68, "n": 44, "class": "measured",
                  "source": "mine"}},
                 "power": {"active_floor": {"value": "104.5 W", "class": "derived",
                  "source": "mine"}, "energy_per_flop": {"fp8": {"value": "0.5 pJ/flop",
                  "error": 0.2, "class": "measured", "source": "mine"}}})"),
                 "overlay");
  Problems problems;
  ObjectReader reader(document, "overlay", "", problems);
  const Calibration c = read_calibration(reader, problems);
  REQUIRE(problems.empty());
  const std::string text = to_json_text(c);
  const nlohmann::ordered_json again = parse_json(text, "again");
  ObjectReader second(again, "again", "", problems);
  const Calibration d = read_calibration(second, problems);
  REQUIRE(problems.empty());
  CHECK(to_json_text(d) == text);
  const auto ramp_of = [](const Calibration& x) {
    return x.device_values.efficiency[index(OpClass::kGemm)].compute[index(DType::kBf16)];
  };
  CHECK(ramp_of(d).value->half == ramp_of(c).value->half);
  CHECK(ramp_of(d).value->low == 1e6);
  CHECK(ramp_of(d).value->serial == 0.25);
  CHECK(ramp_of(d).n == 2500);
  CHECK(d.device_values.power.active_floor.value == c.device_values.power.active_floor.value);
  CHECK(d.device_values.sustained[index(DType::kBf16)].n == 44);
  CHECK(d.date == "2026-01-31");
}

TEST_CASE("bad overlays say where and what") {
  struct Case {
    const char* file;
    std::string text;
    std::vector<const char*> parts;
  };
  const std::string h100 = "h100-sxm5-80gb.json";
  const std::vector<Case> cases = {
      {"h100-sxm5-80g.json", overlay(""), {"no device or backend", "h100-sxm5-80gb"}},
      {h100.c_str(),
       overlay("", "H200-SXM-141GB"),
       {"/device", "H200-SXM-141GB", "H100-SXM5-80GB"}},
      {h100.c_str(), overlay(R"(, "efficency": {})"), {"efficency", "efficiency"}},
      {h100.c_str(), overlay(R"(, "peak": {})"), {"/peak"}},
      {h100.c_str(),
       overlay(R"(, "launch": {"graph": {"value": "3 W", "class": "measured", "source": "mine"}})"),
       {"/launch/graph/value", "3 W"}},
      {h100.c_str(),
       overlay(R"(, "launch": {"graph": {"value": "3 us", "class": "measured", "source": "his"}})"),
       {"/launch/graph/source", "his"}},
      {h100.c_str(),
       overlay(R"(, "efficiency": {"gemm": {"memory": {"fraction": 0.8, "range": ["3 GB", "1 MB"],
                  "class": "measured", "source": "mine"}}})"),
       {"/efficiency/gemm/memory/range"}},
      {h100.c_str(),
       overlay(R"(, "efficiency": {"gemm": {"memory": {"fraction": 0.8, "range": ["3 W", "1 MB"],
                  "serial": 0.1, "class": "measured", "source": "mine"}}})"),
       {"/efficiency/gemm/memory/range", "serial"}},
      {h100.c_str(),
       overlay(R"(, "efficiency": {"gemm": {"compute": {"bf17": {"fraction": 0.8,
                  "class": "measured", "source": "mine"}}}})"),
       {"bf17", "bf16"}},
      {h100.c_str(),
       overlay(R"(, "power": {"active_floor": {"value": "900 W", "class": "measured",
                  "source": "mine"}})"),
       {"/power/active_floor", "900 W"}},
      {h100.c_str(),
       R"({"schema": "medley.calibration/1", "date": "soon", "sources": {}})",
       {"/date", "one device or one backend"}}};
  for (const Case& c : cases) {
    const ScratchDirectory scratch;
    write(fs::path(scratch.path()) / "calibrations" / c.file, c.text);
    const std::string text = what(scratch.path(), "H100-SXM5-80GB");
    CAPTURE(c.text);
    CAPTURE(text);
    for (const char* part : c.parts) CHECK_MESSAGE(has(text, part), part);
    CHECK(has(text, c.file));
  }
}
