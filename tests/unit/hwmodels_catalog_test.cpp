#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <string>

#include "hwmodels/catalog.h"
#include "hwmodels/read.h"
#include "sim/core/error.h"
#include "tests/support/scratch_directory.h"

using namespace medley;
namespace fs = std::filesystem;

namespace {
std::string shipped() {
  return shipped_data_directory() + "/hwmodels/catalog";
}

std::string error_of(const std::string& name) {
  const Catalog catalog({});
  try {
    (void)catalog.device(name);
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

/// The smallest complete entry.
std::string device_text(const std::string& name, const std::string& extra = "") {
  return R"({"schema": "medley.device/1", "name": ")" + name +
         R"(", "vendor": "me", "kind": "gpu", "sources": {"s": "a page"},
    "memory": {"capacity": {"value": "10 GB", "class": "datasheet", "source": "s"},
               "bandwidth": {"value": "1 TB/s", "class": "datasheet", "source": "s"}})" +
         extra + "}";
}
}  // namespace

TEST_CASE("every shipped entry loads, and there are enough of them") {
  const Catalog catalog({});
  CHECK(catalog.devices().size() >= 45);
  CHECK(catalog.links().size() >= 22);
  CHECK(catalog.nodes().size() >= 13);
  CHECK(catalog.backends().size() >= 6);
  CHECK(catalog.priors().kinds.size() == device_kinds().size());
}

TEST_CASE("names, aliases, case, blanks and underscores all find the entry") {
  const Catalog catalog({});
  const DeviceSpec* h100 = &catalog.device("H100-SXM5-80GB");
  for (const std::string name :
       {"h100-sxm5-80gb", "h100", "H100", "H100 SXM5 80GB", "h100_sxm5_80gb"}) {
    CAPTURE(name);
    CHECK(&catalog.device(name) == h100);
    CHECK(catalog.find_device(name) == h100);
  }
  CHECK(catalog.find_device("no such device") == nullptr);
  CHECK(catalog.find_device("") == nullptr);
  CHECK(catalog.node("dgx-h100").name == "8xH100-SXM");
  CHECK(catalog.link("pcie5").name == "PCIe 5.0 x16");
  CHECK(catalog.backend("vllm").name == "vllm-2026");
}

TEST_CASE("a miss says what was meant") {
  CHECK(error_of("H100-SXM-80GB") ==
        R"(unknown device "H100-SXM-80GB" (did you mean "H100-SXM5-80GB"?))");
  CHECK(error_of("rtx409") == R"(unknown device "rtx409" (did you mean "RTX 4090"?))");
  const std::string far = error_of("quantum annealer of the future");
  CHECK(far.find("unknown device") == 0);
  CHECK(far.find("known: ") != std::string::npos);
}

TEST_CASE("a lookup by name opens that file alone") {
  const ScratchDirectory scratch;
  scratch.write("devices/good.json", device_text("good"));
  scratch.write("devices/bad.json", "{ not json");
  const Catalog catalog({scratch.path()});
  CHECK(catalog.device("Good").vendor == "me");
  CHECK_THROWS_AS((void)catalog.device("bad"), InputError);
  CHECK_THROWS_AS((void)catalog.devices(), InputError);  // a listing reads all
}

TEST_CASE("a user's entry shadows a shipped one, the last directory wins") {
  const ScratchDirectory first;
  const ScratchDirectory second;
  first.write("devices/l40s.json", device_text("L40S", R"(, "notes": "first")"));
  second.write("devices/l40s.json", device_text("L40S", R"(, "notes": "second")"));
  const Catalog one({first.path()});
  CHECK(one.device("l40s").notes == "first");
  CHECK(one.device("h100").vendor == "NVIDIA");
  const Catalog both({first.path(), second.path()});
  CHECK(both.device("L40S").notes == "second");
  const auto all = both.devices();
  CHECK(std::count_if(all.begin(), all.end(), [](auto* d) { return d->name == "L40S"; }) == 1);
}

TEST_CASE("a file must be named after its entry") {
  const ScratchDirectory scratch;
  scratch.write("devices/mine.json", device_text("My Card+"));
  const Catalog catalog({scratch.path()});
  try {
    (void)catalog.device("mine");
    FAIL("accepted");
  } catch (const InputError& error) {
    REQUIRE(error.problems().size() == 1);
    CHECK(error.problems()[0].pointer == "/name");
    CHECK(error.problems()[0].hint == "name the file my-card-plus.json");
  }
}

TEST_CASE("the entry shown in the README is a valid one") {
  std::ifstream page(std::string(MEDLEY_SOURCE_DIR) + "/hwmodels/README.md");
  std::stringstream whole;
  whole << page.rdbuf();
  const std::string text = whole.str();
  const auto begin = text.find("```json\n");
  REQUIRE(begin != std::string::npos);
  const auto end = text.find("```", begin + 8);
  const ScratchDirectory scratch;
  scratch.write("devices/my-card.json", text.substr(begin + 8, end - begin - 8));
  const Catalog catalog({scratch.path()});
  CHECK(catalog.device("mycard").power.limit.known());
}

TEST_CASE("the measured vLLM run leaves the KV blocks it left") {
  // Llama-3.1-8B in bf16 on an RTX 4090, utilization 0.9, 2,048 batched tokens of 4,096 hidden:
  // 0.9 x 25,250,627,584 - 16,060,522,496 (weights) - reserve, over 16 x 131,072 B per block.
  const Catalog catalog({});
  const BackendSpec& vllm = catalog.backend("vllm-2026");
  const double reserve =
      vllm.context_reserve.value->value() + *vllm.activation_factor * 2048.0 * 4096.0 * 2.0;
  const double kv =
      *vllm.memory_utilization * catalog.device("RTX 4090").memory_capacity.value->value() -
      16060522496.0 - reserve;
  CHECK(std::floor(kv / (16.0 * 131072.0)) == 2588.0);
}

TEST_CASE("a directory without entries is refused") {
  const ScratchDirectory scratch;
  CHECK_THROWS_WITH_AS(Catalog({scratch.path()}), doctest::Contains("is no catalogue directory"),
                       InputError);
  CHECK_THROWS_AS(Catalog({"/no/such/place"}), InputError);
}

TEST_CASE("names and aliases of shipped entries are unambiguous") {
  const Catalog catalog({});
  const auto check = [](const auto& entries) {
    std::set<std::string> seen;
    for (const auto* entry : entries) {
      CAPTURE(entry->name);
      CHECK(seen.insert(slug(entry->name)).second);
      for (const std::string& alias : entry->aliases) {
        CAPTURE(alias);
        if (slug(alias) != slug(entry->name)) CHECK(seen.insert(slug(alias)).second);
      }
    }
  };
  check(catalog.devices());
  check(catalog.links());
  check(catalog.nodes());
  check(catalog.backends());
}

TEST_CASE("what shipped entries refer to exists") {
  const Catalog catalog({});
  for (const DeviceSpec* d : catalog.devices()) {
    CAPTURE(d->name);
    if (!d->fabric.empty()) CHECK(catalog.find_link(d->fabric));
    if (!d->host_link.empty()) CHECK(catalog.find_link(d->host_link));
  }
  for (const NodeSpec* n : catalog.nodes()) {
    CAPTURE(n->name);
    CHECK(catalog.find_device(n->device));
    if (!n->fabric_link.empty()) CHECK(catalog.find_link(n->fabric_link));
    if (!n->host_link.empty()) CHECK(catalog.find_link(n->host_link));
    if (!n->cpu.empty()) {
      REQUIRE(catalog.find_device(n->cpu));
      CHECK(catalog.device(n->cpu).kind == "cpu");
    }
    CHECK((n->fabric == FabricKind::kNone) == (n->devices == 1));
  }
}

TEST_CASE("MEDLEY_DATA_DIR replaces the shipped data, or is refused") {
  const ScratchDirectory scratch;
  const char* before = std::getenv("MEDLEY_DATA_DIR");
  const std::string kept = before ? before : "";
  setenv("MEDLEY_DATA_DIR", scratch.path().c_str(), 1);
  CHECK_THROWS_WITH_AS((void)shipped_data_directory(),
                       doctest::Contains("MEDLEY_DATA_DIR holds no hwmodels/catalog"), InputError);
  scratch.write("hwmodels/catalog/devices/only.json", device_text("only"));
  fs::copy_file(std::string(MEDLEY_SOURCE_DIR) + "/hwmodels/catalog/priors.json",
                scratch.path() + "/hwmodels/catalog/priors.json");
  CHECK(Catalog({}).devices().size() == 1);
  if (before) {
    setenv("MEDLEY_DATA_DIR", kept.c_str(), 1);
  } else {
    unsetenv("MEDLEY_DATA_DIR");
  }
}

TEST_CASE("file names of entries") {
  CHECK(slug("Xeon Platinum 8480+") == "xeon-platinum-8480-plus");
  CHECK(slug("PCIe 5.0 x16") == "pcie-5.0-x16");
  CHECK(slug("TPU v6e (Trillium)") == "tpu-v6e-trillium");
  CHECK(slug("  ") == "");
  for (const auto& file : fs::directory_iterator(shipped() + "/devices")) {
    CHECK(file.path().extension() == ".json");
    CHECK(slug(file.path().stem().string()) == file.path().stem().string());
  }
}
