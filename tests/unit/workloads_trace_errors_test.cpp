#include "sim/core/text_file.h"
#include "tests/support/traces.h"

using namespace medley;

namespace {
bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}
constexpr const char* kHeader = "arrival_s,input_tokens,output_tokens\n";
void drop_bad(TraceFileSpec& s) {
  s.on_bad_row = TraceFileSpec::BadRow::kDrop;
}
}  // namespace

TEST_CASE("empty traces say why") {
  CHECK(has(read_error(""), "trace.txt: is empty"));
  CHECK(has(read_error("\n\n"), "is empty"));
  CHECK(has(read_error("# a comment\n"), "comments only"));
  CHECK(has(read_error(kHeader), "no usable request in 0 rows"));
  const std::string error = read_error(std::string(kHeader) + "0,5,0\n1,0,3\n2,0,3\n");
  CHECK(has(error, "no usable request in 3 rows; 1 dropped: output_tokens is 0; 2 dropped"));
}

TEST_CASE("a truncated gzip file, a missing file, a directory") {
  const ScratchDirectory dir;
  std::string text = kHeader;
  for (int i = 0; i < 5000; ++i)
    text += std::to_string(i) + ",7," + std::to_string(i % 97 + 1) + "\n";
  TraceFileSpec spec;
  spec.path = spec.file = dir.path() + "/t.csv.gz";
  write_file_gzip(spec.path, text);
  CHECK(read_trace(spec).requests.size() == 5000);
  const std::string packed = [&] {
    std::ifstream in(spec.path, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(in), {});
  }();
  dir.write("t.csv.gz", packed.substr(0, packed.size() / 2));
  spec.file = "t.csv.gz";  // the user's words, not the path that was opened
  const std::string error = error_of([&] { read_trace(spec); });
  CHECK(has(error, "t.csv.gz"));
  CHECK_FALSE(has(error, dir.path()));
  CHECK(has(error, "truncated gzip"));
  spec.path = dir.path() + "/none";
  CHECK(has(error_of([&] { read_trace(spec); }), "cannot read"));
  spec.path = dir.path();
  CHECK(has(error_of([&] { read_trace(spec); }), "directory"));
}

TEST_CASE("a tar archive is no trace") {
  CHECK(has(read_error(std::string("trace.csv\0\0\0", 12) + kHeader + "0,1,1\n"), "is not text"));
}

TEST_CASE("a line of 10 MB is refused with its number") {
  const std::string error =
      read_error(std::string(kHeader) + "0,5,5\n" + std::string(10'000'000, '7') + "\n");
  CHECK(has(error, "trace.txt:line 3: is longer than 1 MiB"));
}

TEST_CASE("missing columns and unknown formats come with a suggestion") {
  const std::string error = read_error("arrival_s,input_token,output_tokens\n0,1,1\n");
  CHECK(has(error, "has no column for input_tokens"));
  CHECK(has(error, "did you mean `input_token`"));
  CHECK(has(read_error("input_tokens,output_tokens\n1,1\n"), "has no column for arrival"));
  CHECK(has(read_error("input_tokens,output_tokens\n1,1\n"), "\"arrivals\""));
  const auto choose = [](TraceFileSpec& s) {
    s.columns = {{TraceField::kArrival, "arival_s", std::nullopt}};
  };
  CHECK(has(read_error(std::string(kHeader) + "0,1,1\n", choose),
            "has no column `arival_s` (did you mean"));
  const auto mooncake = [](TraceFileSpec& s) { s.format = "mooncake"; };
  CHECK(has(read_error(std::string(kHeader) + "0,1,1\n", mooncake),
            "format mooncake is JSON lines, but the file holds CSV"));
  CHECK(has(read_error("0,1,1\n2,1,1\n"), "has no header line"));
  CHECK(has(read_error("[{\"timestamp\": 0}]\n"), "JSON array"));
}

TEST_CASE("bad rows: each with its line, all of them at once, or dropped and counted") {
  const std::string text = std::string(kHeader) +
                           "0,5,5\n"
                           "NaN,5,5\n"
                           "1,-1,5\n"
                           "2,5,3000000000\n"
                           "3,5.5,5\n"
                           "4,5\n"
                           "5,five,5\n"
                           ",5,5\n"
                           "1e300,5,5\n"
                           "\"6,5,5\n";
  const std::string error = read_error(text);
  CHECK(has(error, "line 3: arrival `NaN` is not a number"));
  CHECK(has(error, "line 4: input_tokens `-1` is negative"));
  CHECK(has(error, "line 5: output_tokens `3000000000` is too large"));
  CHECK(has(error, "line 6: input_tokens `5.5` is not a whole number"));
  CHECK(has(error, "line 7: wrong number of fields: 2 where the header has 3"));
  CHECK(has(error, "line 8: input_tokens `five` is not a number"));
  CHECK(has(error, "line 9: no arrival time"));
  CHECK(has(error, "line 10: arrival `1e300` is too large"));
  CHECK(has(error, "line 11: a quote is left open"));
  const Trace t = read_text(text, drop_bad);
  CHECK(t.accounts[0].rows_read == 10);
  CHECK(t.accounts[0].kept == 1);
  CHECK(t.accounts[0].dropped.size() == 9);
  check_trace(t);
}

TEST_CASE("hundreds of bad rows make a short message") {
  std::string text = kHeader;
  for (int i = 0; i < 500; ++i) text += "0,-1,5\n";
  const std::string error = read_error(text);
  CHECK(has(error, "500 bad rows in all"));
  CHECK(has(error, "on_bad_row"));
  CHECK(error.size() < 2500);
}

TEST_CASE("a number without a unit is not guessed at") {
  const std::string error = read_error("timestamp,input_tokens,output_tokens\n17,5,5\n18,5,5\n");
  CHECK(has(error, "line 2: arrival `17` has no unit that we know"));
  CHECK(has(error, "\"unit\""));
  CHECK_FALSE(has(error, "line 3"));
  CHECK(has(read_error("TIMESTAMP,ContextTokens,GeneratedTokens\n17,5,5\n"),
            "arrival `17` is not a date and time"));
}

TEST_CASE("prefix ids that do not fit the block size name the one that would") {
  const std::string row =
      R"({"timestamp": 0, "input_length": 100, "output_length": 5, "hash_ids": [0, 1, 2, 3, 4, 5, 6]})";
  const std::string error = read_error(row);
  CHECK(has(error, "line 1: 7 hash_ids for 100 input tokens: 512 tokens per id would be 1"));
  CHECK(has(error, "\"hash_block_tokens\": 16"));
  const Trace t = read_text(row, [](TraceFileSpec& s) { s.hash_block_tokens = 16; });
  CHECK(t.requests[0].hash_count == 7);
  const Trace u = read_text(row, [](TraceFileSpec& s) { s.use_prefix_ids = false; });
  CHECK(u.requests[0].hash_count == 0);
  // Dropping every row would hide a wrong setting: refused under that policy too.
  CHECK(has(read_error(row, drop_bad), "hash_ids"));
}

TEST_CASE("JSON lines: syntax, duplicate meaning, bad ids, words for numbers") {
  const std::string good = R"({"timestamp": 0, "input_length": 1, "output_length": 5})";
  CHECK(has(read_error(good + "\n{\"timestamp\": 1, \"input_length\": 1"),
            "line 2: not a JSON object"));
  CHECK(has(read_error(good + "\n" + R"({"a": {"b": }, "timestamp": 1})"),
            "line 2: not a JSON object"));
  CHECK(has(read_error("{\"timestamp\": 0"), "line 1: not a JSON object"));
  CHECK(has(
      read_error(good + "\n" +
                 R"({"timestamp": 1, "input_length": 1, "input_length": 2, "output_length": 5})"),
      "two values for input_tokens"));
  CHECK(has(
      read_error(good + "\n" +
                 R"({"timestamp": 1, "input_length": 1, "output_length": 5, "hash_ids": [-1]})"),
      "hash_ids are not a list"));
  CHECK(has(
      read_error(good + "\n" + R"({"timestamp": Infinity, "input_length": 1, "output_length": 5})"),
      "arrival `Infinity` is not a number"));
  CHECK(
      has(read_error(good + "\n" + R"({"timestamp": 1, "input_length": null, "output_length": 5})"),
          "no input_tokens"));
}

TEST_CASE("links that lead nowhere") {
  const std::string header = "arrival_s,input_tokens,output_tokens,session_id,follows,delay_s\n";
  CHECK(has(read_error(header + "0,5,5,,0,1\n"), "follows `0` is not"));  // itself
  CHECK(has(read_error(header + "0,5,5,,,\n,5,5,,,1\n"), "line 3: no arrival time"));
  CHECK(has(read_error(header + "0,5,5,,,\n,5,5,,0,-1\n"), "delay `-1` is negative"));
  // The first turn fails (zero output): its followers cannot arrive either.
  const Trace t = read_text(header + "0,5,0,s,,\n,5,5,s,,1\n,5,5,,1,1\n3,5,5,,,\n");
  CHECK(t.requests.size() == 1);
  CHECK(t.accounts[0].dropped.size() == 2);
  check_trace(t);
}

TEST_CASE("a session may not open when asked for times on every row") {
  const auto open = [](TraceFileSpec& s) { s.sessions = TraceFileSpec::Sessions::kOpen; };
  const std::string text =
      R"({"session_id": "a", "timestamp": 0, "input_length": 1, "output_length": 5}
{"session_id": "a", "delay": 5, "input_length": 1, "output_length": 5})";
  CHECK(read_text(text).requests.size() == 2);
  CHECK(has(read_error(text, open), "line 2: no arrival time"));
}

TEST_CASE("times before zero and 300 years apart") {
  const auto zero = [](TraceFileSpec& s) { s.origin = TraceFileSpec::Origin::kZero; };
  CHECK(has(read_error(std::string(kHeader) + "-1,5,5\n", zero), "before 0"));
  CHECK(read_text(std::string(kHeader) + "-1,5,5\n").requests[0].arrival.ns() == 0);
  CHECK(has(read_error("arrival_ns,input_tokens,output_tokens\n-9000000000000000000,5,5\n"
                       "9000000000000000000,5,5\n"),
            "292 years"));
}
