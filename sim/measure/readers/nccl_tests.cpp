#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "sim/measure/readers/row_table.h"

namespace medley {

namespace {
constexpr std::array<std::pair<std::string_view, const char*>, 7> kBinaries = {{
    {"all_reduce", "all_reduce"},
    {"all_gather", "all_gather"},
    {"reduce_scatter", "reduce_scatter"},
    {"alltoall", "all_to_all"},
    {"all_to_all", "all_to_all"},
    {"sendrecv", "send_recv"},
    {"broadcast", "broadcast"},
}};

/// Words of a line; commas are blanks, so that a table saved as CSV reads the same.
std::vector<std::string_view> words_of(std::string_view line) {
  std::vector<std::string_view> words;
  constexpr std::string_view kBlanks = " \t,;";
  for (std::size_t at = line.find_first_not_of(kBlanks); at != std::string_view::npos;) {
    const std::size_t end = std::min(line.find_first_of(kBlanks, at), line.size());
    words.push_back(line.substr(at, end - at));
    at = line.find_first_not_of(kBlanks, end);
  }
  return words;
}

bool contains(const std::vector<std::string_view>& words, std::string_view word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

bool is_header(const std::vector<std::string_view>& words) {
  return contains(words, "size") && contains(words, "time") && contains(words, "algbw") &&
         contains(words, "busbw");
}

std::string op_named_in(std::string_view text) {
  for (const auto& [binary, op] : kBinaries) {
    if (text.find(binary) != std::string_view::npos) return op;
  }
  return {};
}

/// "#  Rank  3 Group  0 Pid ..." or "#   Rank  3 Pid ...": one per device.
int rank_in(const std::vector<std::string_view>& words) {
  if (words.size() < 4 || words[0] != "#" || words[1] != "Rank") return -1;
  const auto rank = number_in(words[2]);
  return rank && *rank >= 0.0 && *rank < 1e6 ? static_cast<int>(*rank) : -1;
}

struct NcclColumns {
  std::vector<std::size_t> times;  ///< out of place, in place
  std::size_t size = 0;
  std::size_t count = 0;
};

NcclColumns columns_of(std::vector<std::string_view> header) {
  if (!header.empty() && header[0] == "#") header.erase(header.begin());
  NcclColumns c;
  c.count = header.size();
  for (std::size_t i = 0; i < header.size(); ++i) {
    if (header[i] == "time") c.times.push_back(i);
    if (header[i] == "size") c.size = i;
  }
  return c;
}

class NcclOutput {
 public:
  NcclOutput(const KernelFile& file, KernelSink& sink)
      : file_(file), sink_(sink), lines_(file.path), op_(op_named_in(file.name())) {
    devices_ = sink.options().devices;
  }
  void read() {
    std::string_view line;
    while (lines_.next(line)) {
      const auto words = words_of(line);
      if (words.empty()) continue;
      if (is_header(words)) {
        start_table(words);
      } else if (words[0].starts_with("#") || columns_.times.empty()) {
        remark(line, words);
      } else {
        row(words);
      }
    }
    if (columns_.times.empty()) {
      throw InputError(file_.path, "", "holds no nccl-tests table",
                       "its header has size, time, algbw and busbw");
    }
  }

 private:
  void remark(std::string_view line, const std::vector<std::string_view>& words) {
    if (const int rank = rank_in(words); rank >= 0 && sink_.options().devices == 0) {
      if (rank == 0) devices_ = 0;  // of the next run in the same file
      devices_ = std::max(devices_, rank + 1);
    }
    const std::string op = op_named_in(line);
    if (!op.empty()) op_ = op;
  }
  void start_table(const std::vector<std::string_view>& words) {
    columns_ = columns_of(words);
    const std::string where = fmt::format("line {}", lines_.line_number());
    Problems problems;
    if (op_.empty()) {
      problems.add(file_.path, where, "does not say which collective was run",
                   "put its name (all_reduce, all_gather, ...) into the file's name");
    }
    if (devices_ == 0) {
      problems.add(file_.path, where, "does not list the ranks",
                   "say how many there were with --devices");
    }
    problems.throw_if_any();
  }
  void row(const std::vector<std::string_view>& words) {
    sink_.row();
    const auto bytes =
        words.size() == columns_.count ? number_in(words[columns_.size]) : std::nullopt;
    if (!bytes) {
      sink_.drop("no row of the table");
      return;
    }
    if (*bytes <= 0.0) {
      sink_.drop("a size is not positive");
      return;
    }
    bool first = true;
    for (const std::size_t at : columns_.times) {
      const auto us = number_in(words[at]);
      CollectiveSample s{op_, first ? "nccl" : "nccl_in_place", devices_, *bytes,
                         us.value_or(0.0) * kMicro};
      if (first) {
        if (!sink_.take_time(us)) return;
        sink_.add(std::move(s));
      } else if (us && *us > 0.0) {
        sink_.add_more(std::move(s));
      }
      first = false;
    }
  }

  const KernelFile& file_;
  KernelSink& sink_;
  LineReader lines_;
  std::string op_;
  int devices_ = 0;
  NcclColumns columns_;
};
}  // namespace

bool takes_nccl_tests(const KernelFile& file) {
  return std::any_of(file.head.begin(), file.head.end(),
                     [](const std::string& line) { return is_header(words_of(line)); });
}

void read_nccl_tests(const KernelFile& file, KernelSink& sink) {
  NcclOutput(file, sink).read();
}

}  // namespace medley
