#include <doctest/doctest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <limits>
#include <string>
#include <vector>

#include "sim/core/csv.h"
#include "sim/core/error.h"
#include "sim/core/rng.h"
#include "sim/core/text_file.h"

using namespace medley;

namespace {
/// A directory that goes away with the test.
class Scratch {
 public:
  Scratch()
      : dir_(std::filesystem::temp_directory_path() / ("medley_core_" + std::to_string(getpid()))) {
    std::filesystem::create_directories(dir_);
  }
  ~Scratch() { std::filesystem::remove_all(dir_); }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  std::string path(const std::string& name) const { return (dir_ / name).string(); }

 private:
  std::filesystem::path dir_;
};

std::vector<std::string> lines_of(const std::string& path, std::size_t max_line = 1 << 20) {
  LineReader reader(path, max_line);
  std::vector<std::string> all;
  std::string_view line;
  while (reader.next(line)) all.emplace_back(line);
  CHECK(reader.line_number() == static_cast<std::int64_t>(all.size()));
  return all;
}

template <class Action>
std::string error_of(const Action& action) {
  try {
    action();
  } catch (const InputError& e) {
    return e.what();
  }
  return "no error";
}

std::string random_text(std::size_t size) {
  Rng rng(3, "text");
  std::string text;
  while (text.size() < size)
    text += rng.below(40) == 0 ? '\n' : static_cast<char>('a' + rng.below(26));
  return text;
}
}  // namespace

TEST_CASE("numbers are written shortest and read back the same") {
  CHECK(number_text(0.1) == "0.1");
  CHECK(number_text(1e-9) == "1e-09");
  CHECK(number_text(100000.0) == "100000");
  CHECK(number_text(-3.0) == "-3");
  CHECK(number_text(0.0) == "0");
  CHECK(number_text(-0.0) == "-0");
  CHECK(number_text(1e16) == "1e+16");
  CHECK(number_text(999999999999999.0) == "999999999999999");
  CHECK(number_text(1e300) == "1e+300");
  CHECK(number_text(1.0 / 3.0) == "0.3333333333333333");
  CHECK(number_text(std::numeric_limits<double>::quiet_NaN()) == "");
  CHECK(number_text(std::numeric_limits<double>::infinity()) == "inf");
  CHECK(number_text(-std::numeric_limits<double>::infinity()) == "-inf");
  Rng rng(1, "numbers");
  for (int i = 0; i < 2000; ++i) {
    const double x = rng.uniform(-1, 1) * std::pow(10.0, rng.uniform(-300, 300));
    CHECK(std::stod(number_text(x)) == x);
    const double n = std::floor(rng.uniform(-1e16, 1e16));
    CHECK(std::stod(number_text(n)) == n);
  }
}

TEST_CASE("CSV rows are quoted only where needed and read back the same") {
  CsvWriter csv({"name", "x", "n", "note"});
  csv.field("a,b").field(0.5).field(3).blank().end_row();
  csv.field("say \"hi\"").field(std::nan("")).field(std::size_t{7}).field("line\nbreak").end_row();
  CHECK(csv.text() == "name,x,n,note\n\"a,b\",0.5,3,\n\"say \"\"hi\"\"\",,7,\"line\nbreak\"\n");
  csv.field("short");
  CHECK_THROWS_AS(csv.end_row(), InternalError);

  std::vector<std::string> fields = {"stale", "stale"};
  CHECK(split_csv("a,\"b,\"\"c\"\"\",,\"\"", fields));
  CHECK(fields == std::vector<std::string>{"a", "b,\"c\"", "", ""});
  CHECK(split_csv("", fields));
  CHECK(fields == std::vector<std::string>{""});
  CHECK(split_csv("a\tb c", fields, '\t'));
  CHECK(fields == std::vector<std::string>{"a", "b c"});
  CHECK(split_csv("x\"y,z", fields));  // a quote inside a bare field is text
  CHECK(fields == std::vector<std::string>{"x\"y", "z"});
  CHECK(!split_csv("a,\"open", fields));
}

TEST_CASE("lines: ends, BOM, last line without end") {
  const Scratch scratch;
  const std::string path = scratch.path("lines.txt");
  write_file(path,
             "\xef\xbb\xbf"
             "one\r\n\ntwo\nthree");
  CHECK(lines_of(path) == std::vector<std::string>{"one", "", "two", "three"});
  write_file(path, "");
  CHECK(lines_of(path).empty());
  write_file(path, "\n");
  CHECK(lines_of(path) == std::vector<std::string>{""});
  write_file(path, "ab");
  CHECK(lines_of(path) == std::vector<std::string>{"ab"});
}

TEST_CASE(
    "lines longer than a buffer arrive whole; longer than allowed is an error with its line") {
  const Scratch scratch;
  const std::string path = scratch.path("long.txt");
  const std::string longest(900000, 'x');
  write_file(path, "first\n" + longest + "\nlast\n");
  CHECK(lines_of(path) == std::vector<std::string>{"first", longest, "last"});
  CHECK(error_of([&] { lines_of(path, 1000); }) == path + ":line 2: is longer than 1000 bytes");
  write_file(path, std::string(10 << 20, 'y'));
  CHECK(error_of([&] { lines_of(path); }) == path + ":line 1: is longer than 1 MiB");
}

TEST_CASE("gzip: same bytes for the same text, and the text comes back") {
  const Scratch scratch;
  const std::string text = random_text(1'500'000);
  write_file_gzip(scratch.path("a.gz"), text);
  write_file_gzip(scratch.path("b"), text);
  const std::string packed = read_file(scratch.path("a.gz"));
  CHECK(packed == text);  // told by magic bytes, not by name
  CHECK(read_file(scratch.path("b")) == text);
  write_file(scratch.path("plain"), text);
  CHECK(lines_of(scratch.path("plain")) == lines_of(scratch.path("a.gz")));
  const auto size = std::filesystem::file_size(scratch.path("a.gz"));
  CHECK(size < text.size());
  CHECK(size == std::filesystem::file_size(scratch.path("b")));
  write_file_gzip(scratch.path("empty.gz"), "");
  CHECK(read_file(scratch.path("empty.gz")) == "");
}

namespace {
std::string raw_bytes(const std::string& path) {
  std::string bytes(std::filesystem::file_size(path), '\0');
  std::FILE* f = std::fopen(path.c_str(), "rb");
  REQUIRE(std::fread(bytes.data(), 1, bytes.size(), f) == bytes.size());
  std::fclose(f);
  return bytes;
}
}  // namespace

TEST_CASE("gzip: header without time and name; members follow one another; damage is told") {
  const Scratch scratch;
  const std::string path = scratch.path("x.gz");
  write_file_gzip(path, "hello\n");
  const std::string first = raw_bytes(path);
  CHECK(first.substr(0, 8) == std::string("\x1f\x8b\x08\x00\x00\x00\x00\x00", 8));
  write_file_gzip(path, "hello\n");
  CHECK(raw_bytes(path) == first);

  write_file(path, first + first);
  CHECK(lines_of(path) == std::vector<std::string>{"hello", "hello"});
  write_file(path, first + std::string(512, '\0'));
  CHECK(read_file(path) == "hello\n");

  for (const std::size_t cut : {2, 9, 12, static_cast<int>(first.size()) - 1}) {
    write_file(path, first.substr(0, cut));
    CHECK(error_of([&] { read_file(path); }) ==
          path + ": truncated gzip data: the file ends too early");
  }
  std::string damaged = first;
  damaged[damaged.size() - 6] ^= 1;  // a byte of the checksum
  write_file(path, damaged);
  CHECK(error_of([&] { lines_of(path); }) == path + ": corrupt gzip data: incorrect data check");
  write_file(path, first + "garbage");
  CHECK(error_of([&] { read_file(path); }) == path + ": corrupt gzip data: incorrect header check");
}

TEST_CASE("files that cannot be used are named") {
  const Scratch scratch;
  const std::string missing = scratch.path("missing");
  CHECK(error_of([&] { read_file(missing); }) ==
        missing + ": cannot read: No such file or directory");
  CHECK(error_of([&] { LineReader reader(missing); }) ==
        missing + ": cannot read: No such file or directory");
  const std::string dir = std::filesystem::path(missing).parent_path().string();
  CHECK(error_of([&] { read_file(dir); }) == dir + ": is a directory, not a file");
  write_file(missing, std::string(3 << 20, 'x'));
  CHECK(error_of([&] { read_file(missing, 1 << 20); }) == missing + ": is larger than 1 MiB");
  CHECK_THROWS_WITH_AS(
      write_file(scratch.path("no/such"), "x"),
      (scratch.path("no/such") + ": cannot write: No such file or directory").c_str(),
      std::runtime_error);
}

TEST_CASE("hash: published values of 64-bit FNV-1a") {
  CHECK(hex64(fnv1a("")) == "cbf29ce484222325");
  CHECK(hex64(fnv1a("a")) == "af63dc4c8601ec8c");
  CHECK(hex64(fnv1a("foobar")) == "85944171f73967e8");
  CHECK(fnv1a("bar", fnv1a("foo")) == fnv1a("foobar"));
  CHECK(hex64(10) == "000000000000000a");
}
