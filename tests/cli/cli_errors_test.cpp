#include <doctest/doctest.h>

#include "tests/support/command_line.h"

using namespace medley;
using namespace medley::testing;

TEST_CASE("every command explains itself") {
  const Shell shell;
  const Outcome top = shell.medley("--help");
  CHECK(top.code == 0);
  CHECK(has(top.out, "Exit codes: 0 ok, 1 infeasible"));
  CHECK(shell.medley("--version").out.starts_with("medley "));
  for (const char* command : {"run", "compare", "check", "list", "show", "explain", "trace",
                              "trace show", "trace generate", "trace convert", "completion"}) {
    CAPTURE(command);
    const Outcome o = shell.medley(std::string(command) + " --help");
    CHECK(o.code == 0);
    CHECK(has(o.out, "--help"));
    CHECK(o.err.empty());
    CHECK(has(top.out, std::string(command).substr(0, std::string(command).find(' '))));
  }
}

TEST_CASE("wrong usage is exit code 2, told on stderr") {
  const Shell shell;
  for (const char* line : {"",
                           "ran s.json",
                           "run",
                           "run s.json --wrong",
                           "run s.json --format xml",
                           "list",
                           "list things",
                           "show device",
                           "trace",
                           "completion powershell",
                           "run s.json extra",
                           "trace convert t.csv --out u.csv --input-format azure",
                           "trace show s.json --seed x",
                           "run s.json --uncertainty 0",
                           "run s.json --uncertainty -3",
                           "run s.json --uncertainty x",
                           "run s.json --threads 2",
                           "run s.json --uncertainty 5 --threads 0",
                           "compare",
                           "compare s.json",
                           "compare s.json s.json --uncertainty 0",
                           "compare s.json s.json --draw-seed 2"}) {
    CAPTURE(line);
    const Outcome o = shell.medley(line);
    CHECK(o.code == 2);
    CHECK(o.out.empty());
    CHECK_FALSE(o.err.empty());
  }
  CHECK(shell.litter().empty());
}

TEST_CASE("bad input is exit code 2 with file, place and hint, and leaves nothing") {
  struct Case {
    const char* arguments;
    const char* told;
  };
  const Shell shell;
  shell.write("broken.json", "{\"schema\": \"medley.scenario/1\",\n \"pools\": {,}}");
  shell.write("keys.json", medley::test::scenario_with("\"seed\": 7", "\"sed\": 7"));
  for (const Case& c : {
           Case{"run missing.json", "missing.json"},
           Case{"run broken.json", "broken.json:/pools: line 2"},
           Case{"run keys.json", "keys.json:/sed: unknown key (did you mean \"seed\"?)"},
           Case{"run s.json --set pools.small.replica=3", "did you mean \"replicas\"?"},
           Case{"run s.json --set pools.small.replicas=-1", "pools.small.replicas=-1"},
           Case{"run s.json --set novalue", "novalue"},
           Case{"run s.json --seed abc", "seed=abc"},
           Case{"run s.json --catalog nowhere", "nowhere"},
           Case{"run s.json --set pools.small.model=llama-3.1-9b", "llama-3.1-8b"},
           Case{"check keys.json", "unknown key"},
           Case{"compare s.json missing.json", "missing.json"},
           Case{"compare s.json keys.json --out c", "did you mean \"seed\"?"},
           Case{"explain s.json --pool smal", "did you mean \"small\"?"},
           Case{"explain s.json --batch decode:0x5", "cannot read \"decode:0x5\""},
           Case{"explain s.json --batch prefill", "cannot read \"prefill\""},
           Case{"explain s.json --batch decode:4x1e3", "cannot read"},
           Case{"show device h1000", "h1000"},
           Case{"show model llama-3.1-8", "did you mean"},
           Case{"trace show nothing.csv", "nothing.csv"},
       }) {
    CAPTURE(c.arguments);
    const Outcome o = shell.medley(c.arguments);
    CHECK(o.code == 2);
    CHECK(o.out.empty());
    CHECK_MESSAGE(has(o.err, c.told), o.err);
    CHECK(o.err.starts_with("medley: "));
  }
  CHECK(shell.litter().size() == 2);  // the two broken scenarios
}

TEST_CASE("what fits nowhere is exit code 1") {
  const Shell shell;
  const std::string set = " --set pools.big.tensor_parallel_size=1 --set pools.big.replicas=1";
  for (const std::string command : {"run s.json", "check s.json"}) {
    CAPTURE(command);
    const Outcome o = shell.medley(command + set);
    CHECK(o.code == 1);
    CHECK(has(o.err, "llama-3.1-70b"));
    CHECK(has(o.err, "does not fit"));
  }
  CHECK(shell.litter().empty());
}

TEST_CASE("places that cannot be written are told, and nothing is left") {
  const Shell shell;
  shell.write("file", "x");
  for (const char* out : {"file", "file/r", "/proc/medley/r", "''"}) {
    CAPTURE(out);
    const Outcome o = shell.medley(std::string("run s.json -q --overwrite --out ") + out);
    if (std::string(out) == "''") {
      CHECK(o.code == 0);  // no name given: the default
      continue;
    }
    CHECK(o.code == 2);
    CHECK_FALSE(o.err.empty());
  }
  CHECK(shell.read("file") == "x");
}

TEST_CASE("a full disk under stdout is an error") {
  if (!std::filesystem::exists("/dev/full")) return;
  const Shell shell;
  const Outcome o = shell.sh(std::string("'") + MEDLEY_BINARY + "' list backends >/dev/full");
  CHECK(o.code == 2);
  CHECK(has(o.err, "cannot write to stdout"));
}

// --foreground: one signal to the program alone; a second one would kill it at once.
TEST_CASE("Ctrl-C ends a run with 130 and leaves nothing") {
  const Shell shell;
  const Outcome o =
      shell.sh(std::string("timeout --foreground --preserve-status -s INT 0.5 '") + MEDLEY_BINARY +
               "' run '" + MEDLEY_SOURCE_DIR + "/configs/scenarios/big_fleet.json' --out r");
  CHECK(o.code == 130);
  CHECK(has(o.err, "medley: interrupted"));
  CHECK(o.out.empty());
  CHECK(shell.litter().empty());
}
