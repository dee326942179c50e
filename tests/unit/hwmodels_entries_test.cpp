#include <doctest/doctest.h>

#include <string>
#include <utility>
#include <vector>

#include "hwmodels/read.h"
#include "sim/core/error.h"
#include "tests/support/scratch_directory.h"

using namespace medley;

namespace {
std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const auto at = text.find(from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

const std::string kDevice = R"({
  "schema": "medley.device/1", "name": "card", "vendor": "me", "kind": "gpu", "year": 2026,
  "sources": {"page": "the data sheet", "bench": "our bench"},
  "peak": {"bf16": {"value": "100 TFLOP/s", "class": "datasheet", "source": "page"}},
  "sustained": {"bf16": {"value": 0.7, "class": "measured", "source": "bench"}},
  "memory": {
    "capacity": {"value": "24 GB", "class": "datasheet", "source": "page"},
    "bandwidth": {"value": "1 TB/s", "class": "datasheet", "source": "page"},
    "last_level_cache": {"value": null, "source": "not published"}},
  "efficiency": {"gemm": {
    "compute": {"bf16": {"fraction": 0.9, "half": "2 GFLOP", "class": "measured", "source": "bench"}},
    "memory": {"fraction": 0.8, "half": "4 MB", "class": "measured", "source": "bench"}}},
  "power": {
    "limit": {"value": "300 W", "class": "datasheet", "source": "page"},
    "energy_per_flop": {"bf16": {"value": "1.5 pJ/flop", "class": "measured", "source": "bench"}},
    "energy_per_byte": {"value": "100 pJ/B", "class": "measured", "source": "bench"}},
  "price": {"rent": {"value": "3.6 USD/h", "class": "assumed", "source": "page"}}
})";

const std::string kNode = R"({
  "schema": "medley.node/1", "name": "box", "device": "card", "devices": 4,
  "sources": {"page": "the data sheet"},
  "fabric": {"kind": "mesh", "link": "wire",
             "bandwidth": {"value": "90 GB/s", "class": "datasheet", "source": "page"}},
  "all_reduce": [{"ranks": 4, "launch": "graph", "class": "measured", "source": "page", "points": [
    {"payload": "1 MB", "time": "30 us"}, {"payload": "2 MB", "time": "50 us"}]}],
  "host": {"link": "PCIe 4.0 x16", "cpu": "EPYC 7763", "cpus": 2},
  "power": {"psu_efficiency": {"value": 0.9, "class": "assumed", "source": "page"}}
})";

const std::string kLink = R"({
  "schema": "medley.link/1", "name": "wire", "kind": "device", "sources": {"page": "the data sheet"},
  "bandwidth": {"value": "30 GB/s", "class": "datasheet", "source": "page"}
})";

const std::string kBackend = R"({
  "schema": "medley.backend/1", "name": "engine", "sources": {"page": "the manual"},
  "host": {"mode": "serial", "per_step": {"value": "1 ms", "class": "measured", "source": "page"}},
  "kernels": {"graph_capture": true, "graph_max_sequences": 64, "fused": 0.5},
  "memory": {"utilization": {"value": 0.9, "class": "datasheet", "source": "page"}},
  "defaults": {"block_size": 32, "max_num_seqs": 8, "enable_chunked_prefill": false},
  "weight_dtypes": ["bf16", "fp8_e4m3"], "kv_dtypes": ["bf16"], "device_kinds": ["gpu", "cpu"]
})";

struct Broken {
  std::string what;
  std::string from, to;
  std::string pointer;  ///< of the first problem
  std::string message;  ///< part of it
};

template <class Load>
void check_broken(const std::string& good, const std::vector<Broken>& cases, const Load& load) {
  const ScratchDirectory scratch;
  for (const Broken& b : cases) {
    CAPTURE(b.what);
    const std::string path = scratch.write("entry.json", replaced(good, b.from, b.to));
    try {
      load(path);
      FAIL_CHECK("accepted");
    } catch (const InputError& error) {
      REQUIRE(!error.problems().empty());
      const Problem& p = error.problems().front();
      CHECK(p.file == path);
      CHECK(p.pointer == b.pointer);
      CHECK_MESSAGE(to_text(p).find(b.message) != std::string::npos, to_text(p));
    }
  }
}
}  // namespace

TEST_CASE("a device entry reads in SI base units with class and source") {
  const ScratchDirectory scratch;
  const DeviceSpec d = load_device(scratch.write("card.json", kDevice), nullptr);
  CHECK(d.name == "card");
  CHECK(d.year == 2026);
  const auto& peak = d.peak[index(DType::kBf16)];
  CHECK((*peak).value() == 100e12);
  CHECK(peak.provenance == Provenance::kDatasheet);
  CHECK(peak.source == "the data sheet");
  CHECK(*d.sustained[index(DType::kBf16)] == 0.7);
  CHECK((*d.memory_capacity).value() == 24e9);
  CHECK(!d.last_level_cache.known());
  CHECK(d.last_level_cache.source == "not published");
  const OpEfficiency& gemm = d.efficiency[index(OpClass::kGemm)];
  CHECK((*gemm.compute[index(DType::kBf16)]).half == 2e9);
  CHECK((*gemm.memory).fraction == 0.8);
  CHECK((*gemm.memory).half == 4e6);
  CHECK((*d.power.energy_per_flop[index(DType::kBf16)]).value() == 1.5e-12);
  CHECK((*d.rent).value() == doctest::Approx(3.6 / 3600).epsilon(1e-15));
  CHECK(!d.power.deep_idle.known());
  CHECK(!d.launch_stream.known());  // no priors given, none invented
  CHECK(!d.peak[index(DType::kFp8)].known());
}

TEST_CASE("node, link and backend entries") {
  const ScratchDirectory scratch;
  const NodeSpec n = load_node(scratch.write("box.json", kNode));
  CHECK(n.devices == 4);
  CHECK(n.fabric == FabricKind::kMesh);
  CHECK(n.all_reduce.at(0).points.at(1).time.value() == doctest::Approx(50e-6));
  CHECK(n.cpus == 2);
  CHECK(*n.psu_efficiency == 0.9);
  CHECK(!n.overhead.known());
  const LinkSpec l = load_link(scratch.write("wire.json", kLink), nullptr);
  CHECK((*l.bandwidth).value() == 30e9);
  CHECK(!l.latency.known());
  const BackendSpec b = load_backend(scratch.write("engine.json", kBackend));
  CHECK(b.host_mode == HostMode::kSerial);
  CHECK((*b.host_per_step).value() == 1e-3);
  CHECK(b.block_size == 32);
  CHECK(b.max_num_batched_tokens == 8192);  // not given: the field's own default
  CHECK(!b.chunked_prefill);
  CHECK(b.weight_dtypes == std::vector<DType>{DType::kBf16, DType::kFp8});
}

TEST_CASE("each kind of broken device entry names file and place") {
  const std::string peak = R"({"value": "100 TFLOP/s", "class": "datasheet", "source": "page"})";
  check_broken(
      kDevice,
      {
          {"no class", peak, R"({"value": "100 TFLOP/s", "source": "page"})", "/peak/bf16/class",
           "missing required key"},
          {"no source", peak, R"({"value": "100 TFLOP/s", "class": "datasheet"})",
           "/peak/bf16/source", "missing required key"},
          {"bare text", peak, R"("100 TFLOP/s")", "/peak/bf16",
           "a value needs its class and source"},
          {"unknown class", R"("class": "datasheet", "source": "page"}},
  "sustained")",
           R"("class": "gossip", "source": "page"}},
  "sustained")",
           "/peak/bf16/class", "gossip"},
          {"source not listed", peak,
           R"({"value": "100 TFLOP/s", "class": "datasheet", "source": "pge"})",
           "/peak/bf16/source", R"(did you mean "page"?)"},
          {"wrong unit", "100 TFLOP/s", "100 TB/s", "/peak/bf16/value", "unknown unit"},
          {"no unit", R"("24 GB")", "24", "/memory/capacity/value", "has no unit"},
          {"negative", R"("24 GB")", R"("-24 GB")", "/memory/capacity/value",
           "must be greater than 0"},
          {"zero rate", R"("1 TB/s")", R"("0 B/s")", "/memory/bandwidth/value",
           "must be greater than 0"},
          {"unknown key", R"("year": 2026)", R"("yaer": 2026)", "/yaer", R"(did you mean "year"?)"},
          {"unknown key in a value", R"("fraction": 0.9)", R"("fraction": 0.9, "halff": "1 GFLOP")",
           "/efficiency/gemm/compute/bf16/halff", "unknown key"},
          {"unknown format", R"("peak": {"bf16")", R"("peak": {"bf61")", "/peak/bf61",
           R"(did you mean "bf16"?)"},
          {"alias of a format", R"("peak": {"bf16")", R"("peak": {"bfloat16")", "/peak/bfloat16",
           "unknown number format"},
          {"unknown op class", R"({"gemm": {)", R"({"gem": {)", "/efficiency/gem",
           R"(did you mean "gemm"?)"},
          {"fraction above one", R"("fraction": 0.9)", R"("fraction": 1.1)",
           "/efficiency/gemm/compute/bf16/fraction", "at most 1"},
          {"half in bytes where flops are due", R"("2 GFLOP")", R"("2 GB")",
           "/efficiency/gemm/compute/bf16/half", "unknown unit"},
          {"sustained above one", "0.7", "70", "/sustained/bf16/value", "at most 1"},
          {"unknown kind", R"("kind": "gpu")", R"("kind": "cpus")", "/kind",
           R"(did you mean "cpu"?)"},
          {"wrong schema", "medley.device/1", "medley.device/2", "/schema",
           R"(did you mean "medley.device/1"?)"},
          {"another schema", "medley.device/1", "medley.link/1", "/schema", "unknown value"},
          {"no name", R"("name": "card", )", "", "/name", "missing required key"},
          {"unknown without a reason", R"({"value": null, "source": "not published"})",
           R"({"value": null})", "/memory/last_level_cache/source", "missing required key"},
          {"a class for nothing", R"({"value": null, "source": "not published"})",
           R"({"value": null, "source": "not published", "class": "measured"})",
           "/memory/last_level_cache/class", "unknown key"},
          {"empty citation", R"("the data sheet")", R"("")", "/sources/page", "citation"},
          {"idle above the limit", R"("limit": {)",
           R"("deep_idle": {"value": "301 W", "class": "measured", "source": "bench"}, "limit": {)",
           "/power/deep_idle", "above the device's own limit"},
          {"duplicate key", R"("vendor": "me")", R"("vendor": "me", "vendor": "you")", "/vendor",
           "duplicate"},
      },
      [](const std::string& path) { (void)load_device(path, nullptr); });
}

TEST_CASE("all problems of a file are told at once") {
  const ScratchDirectory scratch;
  std::string text = replaced(kDevice, "100 TFLOP/s", "100 W");
  text = replaced(text, R"("24 GB")", R"("-1 GB")");
  text = replaced(text, R"("year")", R"("yeer")");
  try {
    (void)load_device(scratch.write("card.json", text), nullptr);
    FAIL("accepted");
  } catch (const InputError& error) {
    CHECK(error.problems().size() == 3);
  }
}

TEST_CASE("each kind of broken node entry names file and place") {
  check_broken(kNode,
               {
                   {"no devices", R"("devices": 4)", R"("devices": 0)", "/devices", "between 1"},
                   {"fabric without link", R"("kind": "mesh", "link": "wire",)",
                    R"("kind": "mesh",)", "/fabric/link", "missing required key"},
                   {"unknown fabric", R"("kind": "mesh")", R"("kind": "mseh")", "/fabric/kind",
                    R"(did you mean "mesh"?)"},
                   {"payloads that do not ascend", R"("2 MB")", R"("1 MB")", "/all_reduce/0/points",
                    "ascend"},
                   {"a table of one rank", R"("ranks": 4)", R"("ranks": 1)", "/all_reduce/0/ranks",
                    "must be between 2"},
                   {"launch mode left out", R"("launch": "graph", )", "", "/all_reduce/0/launch",
                    "missing required key"},
                   {"time in bytes", R"("50 us")", R"("50 MB")", "/all_reduce/0/points/1/time",
                    "unknown unit"},
                   {"CPUs without a type", R"("cpu": "EPYC 7763", )", "", "/host/cpu",
                    "missing required key"},
                   {"supply above one", "0.9", "1.9", "/power/psu_efficiency/value", "at most 1"},
               },
               [](const std::string& path) { (void)load_node(path); });
}

TEST_CASE("broken links and backends") {
  check_broken(
      kLink,
      {{"unknown kind", R"("kind": "device")", R"("kind": "devices")", "/kind",
        R"(did you mean "device"?)"},
       {"bits per second of power", "30 GB/s", "30 W", "/bandwidth/value", "unknown unit"}},
      [](const std::string& path) { (void)load_link(path, nullptr); });
  check_broken(
      kBackend,
      {{"unknown mode", R"("serial")", R"("parallel")", "/host/mode", "unknown value"},
       {"unknown format", R"("fp8_e4m3")", R"("fp9")", "/weight_dtypes", "fp9"},
       {"no formats", R"("kv_dtypes": ["bf16"])", R"("kv_dtypes": [])", "/kv_dtypes",
        "at least one"},
       {"fusion above one", R"("fused": 0.5)", R"("fused": 2)", "/kernels/fused", "at most 1"},
       {"unknown device kind", R"(["gpu", "cpu"])", R"(["gpu", "cpx"])", "/device_kinds",
        R"(did you mean "cpu"?)"},
       {"no block", R"("block_size": 32)", R"("block_size": 0)", "/defaults/block_size",
        "between 1"}},
      [](const std::string& path) { (void)load_backend(path); });
}

TEST_CASE("the arithmetic a device falls back to holds every value of the format") {
  DeviceSpec d;
  const auto has = [&](DType t) { d.peak[index(t)].value = FlopsPerSec(1e12); };
  CHECK(!compute_fallback(d, DType::kBf16));
  has(DType::kFp32);
  CHECK(compute_fallback(d, DType::kBf16) == DType::kFp32);
  CHECK(!compute_fallback(d, DType::kFp64));
  has(DType::kFp16);
  CHECK(compute_fallback(d, DType::kBf16) == DType::kFp16);
  CHECK(compute_fallback(d, DType::kFp4) == DType::kFp16);
  has(DType::kInt8);
  CHECK(compute_fallback(d, DType::kInt8) == DType::kInt8);
  CHECK(compute_fallback(d, DType::kFp8) == DType::kFp16);  // int8 holds no fp8 value range
  has(DType::kFp8);
  CHECK(compute_fallback(d, DType::kFp4) == DType::kFp16);
  CHECK(compute_fallback(d, DType::kInt4) == DType::kFp16);
  CHECK(compute_fallback(d, DType::kFp32) == DType::kFp32);
}

TEST_CASE("compute of scaled blocks and of widened weights, where measured") {
  OpEfficiency e;
  const auto put = [](Sourced<Ramp>& into, double fraction) { into.value = Ramp{fraction, 1.0}; };
  put(e.compute[index(DType::kFp8)], 0.6);
  put(e.compute[index(DType::kBf16)], 0.7);
  const auto of = [&](DType arithmetic, DType stored, bool block) {
    return e.compute_of(arithmetic, stored, block).value->fraction;
  };
  CHECK(of(DType::kFp8, DType::kFp8, true) == 0.6);  // nothing better known
  CHECK(of(DType::kBf16, DType::kInt4, false) == 0.7);
  put(e.compute_block_scaled[index(DType::kFp8)], 0.3);
  put(e.compute_by_format[index(DType::kInt4)], 0.2);
  CHECK(of(DType::kFp8, DType::kFp8, true) == 0.3);
  CHECK(of(DType::kFp8, DType::kFp8, false) == 0.6);
  CHECK(of(DType::kBf16, DType::kInt4, false) == 0.2);
  CHECK(of(DType::kBf16, DType::kFp4, false) == 0.7);  // another kernel than int4's
  CHECK(of(DType::kBf16, DType::kFp8, false) == 0.7);
  CHECK(of(DType::kBf16, DType::kBf16, false) == 0.7);
}
