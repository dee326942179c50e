#include <doctest/doctest.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>

#include "sim/validation/validation.h"

TEST_CASE("measured vLLM runs are reproduced within the targets, from kernel tables") {
  const char* named = std::getenv("MEDLEY_SHARED_DATA");
  medley::ValidationContext context;
  context.data = named != nullptr ? named : std::string(MEDLEY_SOURCE_DIR) + "/../shared/data";
  if (!std::filesystem::is_directory(context.data + "/serving/LLMServingSim")) {
    MESSAGE("skipped: the measured data is not here");
    return;
  }
  const medley::ValidationSet& set = medley::validation_set("serving_requests");
  const auto rows = medley::run_validation(set, context);
  CHECK(rows.size() == 20);
  for (const medley::ValidationRow& r : rows) {
    CAPTURE(r.key);
    CAPTURE(r.basis);
    // The catalogue alone is less exact, but an error of this size would be a defect.
    CHECK(std::fabs(r.error_pct()) < 40.0);
  }
  int with_target = 0;
  for (const medley::ValidationSummary& s : medley::summarise(set, rows)) {
    if (s.basis != "tables" || !s.target) continue;
    CAPTURE(s.metric);
    CAPTURE(s.max_pct);
    CHECK(s.met);
    ++with_target;
  }
  CHECK(with_target == 5);
}
