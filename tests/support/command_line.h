#pragma once

#include <sys/wait.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "tests/support/scenario_text.h"
#include "tests/support/scratch_directory.h"

namespace medley::testing {

struct Outcome {
  int code = -1;
  std::string out, err;
};

inline bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

/// The program in an empty directory of its own, with a small scenario "s.json" in it.
class Shell {
 public:
  Shell() { scratch_.write("s.json", medley::test::kScenario); }
  /// `medley <arguments>` through sh, from the directory.
  Outcome medley(const std::string& arguments) const {
    return sh(std::string("\"") + MEDLEY_BINARY + "\" " + arguments);
  }
  Outcome sh(const std::string& command) const {
    Outcome outcome;
    const std::string full = "cd '" + path() + "' && { " + command + "; } >.out 2>.err </dev/null";
    const int status = std::system(full.c_str());  // NOLINT: our own test commands
    outcome.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    outcome.out = read(".out");
    outcome.err = read(".err");
    return outcome;
  }
  void write(const std::string& name, const std::string& text) const { scratch_.write(name, text); }
  std::string read(const std::string& name) const {
    std::ifstream in(path() + "/" + name, std::ios::binary);
    std::ostringstream text;
    text << in.rdbuf();
    return text.str();
  }
  bool exists(const std::string& name) const {
    return std::filesystem::exists(path() + "/" + name);
  }
  /// Entries of the directory that the test did not put there.
  std::vector<std::string> litter() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(path())) {
      const std::string name = entry.path().filename().string();
      if (name != "s.json" && name != ".out" && name != ".err") names.push_back(name);
    }
    return names;
  }
  const std::string& path() const { return scratch_.path(); }

 private:
  ScratchDirectory scratch_;
};

}  // namespace medley::testing
