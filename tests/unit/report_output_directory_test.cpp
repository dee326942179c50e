#include <doctest/doctest.h>

#include <filesystem>

#include "sim/core/error.h"
#include "sim/report/output_directory.h"
#include "sim/report/write_report.h"
#include "tests/support/report_run.h"
#include "tests/support/scratch_directory.h"

using namespace medley;
using namespace medley::testing;
namespace fs = std::filesystem;

namespace {
std::size_t entries(const std::string& path) {
  return static_cast<std::size_t>(
      std::distance(fs::directory_iterator(path), fs::directory_iterator()));
}
}  // namespace

TEST_CASE("a directory appears at commit, with the parents it needed") {
  const ScratchDirectory scratch;
  const std::string target = scratch.path() + "/a/b/out";
  {
    OutputDirectory out(target + "/", false);
    std::ofstream(out.file("summary.csv")) << "x";
    CHECK_FALSE(fs::exists(target));
    out.commit();
  }
  CHECK(slurp(target + "/summary.csv") == "x");
  CHECK(entries(scratch.path() + "/a/b") == 1);
}

TEST_CASE("without commit nothing is left, made parents included") {
  const ScratchDirectory scratch;
  {
    OutputDirectory out(scratch.path() + "/a/b/out", false);
    std::ofstream(out.file("summary.csv")) << "x";
  }
  CHECK(entries(scratch.path()) == 0);
}

TEST_CASE("a directory with files is refused, or replaced when they are ours") {
  const ScratchDirectory scratch;
  const std::string target = scratch.path() + "/out";
  scratch.write("out/summary.csv", "old");
  CHECK_THROWS_AS(OutputDirectory(target, false), InputError);
  {
    OutputDirectory out(target, true);
    std::ofstream(out.file("manifest.json")) << "new";
    CHECK(slurp(target + "/summary.csv") == "old");
    out.commit();
  }
  CHECK_FALSE(fs::exists(target + "/summary.csv"));
  CHECK(slurp(target + "/manifest.json") == "new");
  CHECK(entries(scratch.path()) == 1);
  SUBCASE("never when somebody else's file is in it") {
    scratch.write("out/thesis.tex", "years of work");
    CHECK_THROWS_WITH_AS(OutputDirectory(target, true), doctest::Contains("thesis.tex"),
                         InputError);
    CHECK(slurp(target + "/thesis.tex") == "years of work");
  }
}

TEST_CASE("a file or an unwritable place is refused in words") {
  const ScratchDirectory scratch;
  scratch.write("file", "x");
  CHECK_THROWS_WITH_AS(OutputDirectory(scratch.path() + "/file", true),
                       doctest::Contains("no directory"), InputError);
  CHECK_THROWS_AS(OutputDirectory("/proc/medley/out", false), std::runtime_error);
  CHECK_THROWS_AS(OutputDirectory(scratch.path() + "/file/out", false), std::runtime_error);
  CHECK(entries(scratch.path()) == 1);
}

TEST_CASE("a full disk is an error at the latest on close") {
  if (!fs::exists("/dev/full")) return;
  for (const bool gzip : {false, true}) {
    CHECK_THROWS_WITH_AS(
        [&] {
          FileSink sink("/dev/full", gzip);
          sink.buffer() += "x";
          sink.close();
        }(),
        doctest::Contains("/dev/full: cannot write"), std::runtime_error);
  }
}

TEST_CASE("a report that fails half-way leaves nothing") {
  const ScratchDirectory scratch;
  HandRun run = hand_run();
  run.scenario.resolved_json = "{ not json";  // makes the last file fail
  CHECK_THROWS(
      write_report(Analysis(run.scenario, run.result), scratch.path() + "/results/out", false));
  CHECK(entries(scratch.path()) == 0);
}
