// End times of flows under plain max-min against SimGrid 3.32 set up to do just that (no latency,
// no cross-traffic, no windows, no correction factors): to 1e-9 relative.
#include <doctest/doctest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "tests/support/fluid.h"

namespace medley {
namespace {

struct GoldenFlow {
  double start_s;
  double bytes;
  std::vector<std::uint32_t> links;
  double end_s;  // SimGrid's
};

struct GoldenCase {
  std::vector<double> capacities;
  std::vector<GoldenFlow> flows;
};

void check_golden(GoldenCase c, const std::string& name) {
  std::stable_sort(c.flows.begin(), c.flows.end(),
                   [](const GoldenFlow& a, const GoldenFlow& b) { return a.start_s < b.start_s; });
  FluidRun run;
  for (const double capacity : c.capacities) run.link(capacity);
  std::vector<FluidStart> starts;
  for (const GoldenFlow& f : c.flows) starts.push_back(flow(f.start_s, f.bytes, f.links));
  run.play(starts);
  REQUIRE(run.end_s.size() == c.flows.size());
  for (std::size_t i = 0; i < c.flows.size(); ++i) {
    const double end = run.end_s.at(i);
    CHECK_MESSAGE(end == doctest::Approx(c.flows[i].end_s).epsilon(1e-9), name, ": flow from ",
                  c.flows[i].start_s, " s: ", end, ", SimGrid ", c.flows[i].end_s);
  }
}

// Random routes over few links, staggered starts: capacities in bytes/s; start in s, bytes, links,
// end in s.
const GoldenCase kGoldenCases[] = {
    {{2000000, 1631324, 2788100},
     {{0, 830614, {2, 0}, 0.830614},
      {1.014, 1335937, {2, 1, 0}, 1.95117619365},
      {0, 1322677, {0, 2, 1}, 1.25049626553},
      {8.133, 138779, {1, 0}, 8.21807138986},
      {15.841, 93508, {0, 1}, 15.8983203116},
      {17.468, 935968, {1}, 18.4584949182},
      {15.33, 223874, {2}, 15.4102962591},
      {17.625, 853733, {1}, 18.5650849445}}},
    {{8840063, 2000000, 5000000, 2000000, 1000000, 1000000, 2000000, 776972},
     {{11.126, 138813, {4, 3}, 11.264813},
      {0, 1523536, {1, 6, 4}, 3.138386},
      {0, 1062679, {4, 5, 0, 6}, 2.90658},
      {1.783, 71448, {2, 4, 3}, 1.997344},
      {9.91, 748163, {0, 7}, 11.046505542},
      {8.542, 659143, {4, 6, 0, 5}, 9.201143},
      {14.24, 116867, {1}, 14.2984335},
      {0, 10277, {3}, 0.0117451428571},
      {6.532, 506219, {4, 1}, 7.038219},
      {18.875, 27430, {2, 0, 6, 7}, 18.9103037175},
      {14.475, 534580, {5, 7, 6, 0}, 15.1630299419},
      {10.235, 549283, {2, 4, 5, 0}, 10.784283},
      {17.4, 1065683, {1, 0, 7}, 18.771584819},
      {19.091, 3351750, {4, 5, 3}, 23.919092},
      {0, 1103568, {2, 0, 3}, 0.655714},
      {5.222, 1103973, {4, 3, 5}, 6.325973},
      {0, 964019, {5, 1, 3}, 2.460504},
      {17.789, 1779382, {2, 4}, 21.7430573333},
      {0, 195995, {4, 2, 1, 0}, 0.65095},
      {15.369, 571951, {3, 0, 4}, 15.940951},
      {2.589, 1337538, {6, 5, 4}, 4.254161},
      {0, 540949, {7, 5, 0, 2}, 1.685812},
      {6.263, 1118216, {7}, 7.70219729411},
      {0, 936969, {6, 0}, 0.678009},
      {8.132, 188188, {7, 1, 5, 0}, 8.37420692638},
      {11.735, 3719407, {3, 0, 6, 1}, 13.5947035},
      {9.232, 661657, {3, 6, 0, 7}, 10.2571681965},
      {17.027, 1395477, {0, 4, 6}, 19.2102413333},
      {18.807, 365483, {4}, 19.9332593333},
      {0, 62965, {1, 7, 5, 4}, 0.25186}}},
};

TEST_CASE("fluid: end times equal SimGrid's") {
  int number = 0;
  for (const GoldenCase& c : kGoldenCases) check_golden(c, "case " + std::to_string(++number));
}

// "link <id> <bytes/s>" and "flow <id> <start s> <bytes> <link>,<link>..."; ends as "<flow> <s>".
GoldenCase read_golden(const std::filesystem::path& scenario, const std::filesystem::path& ends) {
  GoldenCase c;
  std::map<std::string, std::uint32_t> links;
  std::map<std::string, std::size_t> flows;
  std::string line, word, id;
  for (std::ifstream in(scenario); std::getline(in, line);) {
    std::istringstream fields(line);
    if (!(fields >> word >> id)) continue;
    if (word == "link") {
      links[id] = static_cast<std::uint32_t>(c.capacities.size());
      fields >> c.capacities.emplace_back();
      continue;
    }
    GoldenFlow f{};
    std::string route;
    fields >> f.start_s >> f.bytes >> route;
    std::istringstream names(route);
    for (std::string name; std::getline(names, name, ',');) f.links.push_back(links.at(name));
    flows[id] = c.flows.size();
    c.flows.push_back(f);
  }
  std::ifstream in(ends);
  for (double end = 0.0; in >> id >> end;) c.flows.at(flows.at(id)).end_s = end;
  return c;
}

TEST_CASE("fluid: end times equal SimGrid's, larger cases") {
  const char* given = std::getenv("MEDLEY_SHARED_DATA");
  const std::filesystem::path shared = given
                                           ? std::filesystem::path(given) / ".."
                                           : std::filesystem::path(MEDLEY_SOURCE_DIR) / "../shared";
  const std::filesystem::path folder = shared / "bench/simgrid/golden";
  if (!std::filesystem::is_directory(folder)) {
    MESSAGE("skipped: no shared data (set MEDLEY_SHARED_DATA)");
    return;
  }
  for (int n = 1; n <= 6; ++n) {
    const std::string stem = "maxmin-" + std::to_string(n);
    const GoldenCase c = read_golden(folder / (stem + ".txt"), folder / (stem + ".simgrid.out"));
    REQUIRE(c.flows.size() >= 8);
    check_golden(c, stem);
  }
}

}  // namespace
}  // namespace medley
