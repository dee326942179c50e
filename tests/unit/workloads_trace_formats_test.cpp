#include "tests/support/traces.h"
#include "workloads/trace_stats.h"

using namespace medley;

namespace {
std::vector<std::int64_t> arrivals(const Trace& t) {
  std::vector<std::int64_t> ns;
  for (const Request& r : t.requests) ns.push_back(r.arrival.ns());
  return ns;
}
using Ns = std::vector<std::int64_t>;
constexpr std::int64_t kMs = 1'000'000;

std::vector<std::uint64_t> ids_of(const Trace& t, std::size_t i) {
  const Request& r = t.requests[i];
  const auto begin = t.hash_ids.begin() + r.hash_begin;
  return {begin, begin + r.hash_count};
}
using Ids = std::vector<std::uint64_t>;
}  // namespace

TEST_CASE("Azure 2023: CRLF and no final newline") {
  const Trace t = read_text(
      "TIMESTAMP,ContextTokens,GeneratedTokens\r\n"
      "2023-11-16 10:00:00.5000000,4808,10\r\n"
      "2023-11-16 10:00:00.5520000,3180,8");
  CHECK(t.accounts[0].format == "azure-llm");
  CHECK(arrivals(t) == Ns{0, 52 * kMs});
  CHECK(t.requests[0].input_tokens == 4808);
  CHECK(t.requests[1].output_tokens == 8);
  CHECK(t.models == std::vector<std::string>{"default"});
  check_trace(t);
}

TEST_CASE("Azure 2024 leaves the fraction out when it is zero; 2025 puts a column in between") {
  const Trace t = read_text(
      "TIMESTAMP,ContextTokens,GeneratedTokens\n"
      "2024-05-12 00:00:00+00:00,2162,5\n"
      "2024-05-12 00:00:00.001163+00:00,2399,6\n");
  CHECK(arrivals(t) == Ns{0, 1'163'000});
  const Trace u = read_text(
      "TIMESTAMP,NumImages,ContextTokens,GeneratedTokens\n"
      "2024-10-15T12:00:00.269Z,1,900,50\n"
      "2024-10-15T12:00:01Z,0,100,20\n");
  CHECK(arrivals(u) == Ns{0, 731 * kMs});
  CHECK(u.requests[0].input_tokens == 900);
}

TEST_CASE("Mooncake: any key order, one time for many, ids of 512 tokens") {
  const Trace t = read_text(
      R"({"timestamp": 0, "input_length": 1025, "output_length": 5, "hash_ids": [0, 1, 2]})"
      "\n"
      R"({"hash_ids":[0,1],"output_length":7,"input_length":1024,"timestamp":0})"
      "\n\n"
      R"({"input_length": 10, "output_length": 1, "timestamp": 2999, "hash_ids": [9]})");
  CHECK(t.accounts[0].format == "mooncake");
  CHECK(t.hash_block_tokens == 512);
  CHECK(arrivals(t) == Ns{0, 0, 2999 * kMs});
  CHECK(ids_of(t, 0) == Ids{0, 1, 2});
  CHECK(ids_of(t, 1) == Ids{0, 1});
  CHECK(t.requests[2].row == 2);
  check_trace(t);
}

TEST_CASE("Mooncake with sessions: a turn with only a delay follows the one before") {
  const Trace t = read_text(
      R"({"session_id": "a", "timestamp": 100, "input_length": 10, "output_length": 5}
{"session_id": "b", "timestamp": 50, "input_length": 20, "output_length": 5}
{"session_id": "a", "delay": 2500, "input_length": 30, "output_length": 5}
{"session_id": "a", "delay": 0.5, "input_length": 50, "output_length": 5}
)");
  check_trace(t);
  REQUIRE(t.requests.size() == 4);
  CHECK(t.requests[0].input_tokens == 20);  // b is first on the clock
  CHECK(t.sessions == std::vector<std::string>{"a", "b"});
  REQUIRE(t.follow_ups.size() == 2);
  CHECK(t.follow_ups[0].previous == 1);
  CHECK(t.follow_ups[0].next == 2);
  CHECK(t.follow_ups[0].delay.value() == doctest::Approx(2.5));
  CHECK(t.follow_ups[1].previous == 2);
  CHECK(t.follow_ups[1].delay.value() == doctest::Approx(0.0005));
  CHECK(t.requests[3].turn == 2);
}

TEST_CASE("sessions can be opened or closed by the user") {
  const std::string text =
      R"({"session_id": "a", "timestamp": 0, "input_length": 10, "output_length": 5}
{"session_id": "a", "timestamp": 1000, "delay": 200, "input_length": 30, "output_length": 5}
)";
  CHECK(read_text(text).follow_ups.empty());
  const Trace closed =
      read_text(text, [](TraceFileSpec& s) { s.sessions = TraceFileSpec::Sessions::kClosed; });
  REQUIRE(closed.follow_ups.size() == 1);
  CHECK(closed.follow_ups[0].delay.value() == doctest::Approx(0.2));
  check_trace(closed);
}

TEST_CASE("new-tokens-only sessions are accumulated and share their prefix") {
  const Trace t = read_text(
      R"({"session_id": "a", "timestamp": 0, "input_length": 100, "output_length": 20}
{"session_id": "a", "delay": 10, "input_length": 30, "output_length": 5}
{"session_id": "a", "delay": 10, "input_length": 7, "output_length": 5}
)",
      [](TraceFileSpec& s) { s.session_input_is_new = true; });
  // 100; 100 + 20 + 30 = 150; 150 + 5 + 7 = 162.
  CHECK(t.requests[1].input_tokens == 150);
  CHECK(t.requests[2].input_tokens == 162);
  CHECK(t.hash_block_tokens == 16);
  Ids first = ids_of(t, 1);
  Ids last = ids_of(t, 2);
  REQUIRE(first.size() == 10);  // ceil(150 / 16)
  REQUIRE(last.size() == 11);
  CHECK(std::equal(first.begin(), first.end(), last.begin()));
  check_trace(t);
}

TEST_CASE("Bailian: seconds, blocks of 16, sessions from parents") {
  const Trace t = read_text(
      R"({"chat_id": 7, "parent_chat_id": -1, "timestamp": 0.0, "input_length": 20, "output_length": 3, "type": "text", "turn": 1, "hash_ids": [4, 5]}
{"chat_id": 8, "parent_chat_id": -1, "timestamp": 0.25, "input_length": 16, "output_length": 3, "type": "text", "turn": 1, "hash_ids": [6]}
{"chat_id": 9, "parent_chat_id": 7, "timestamp": 61.114, "input_length": 33, "output_length": 3, "type": "text", "turn": 2, "hash_ids": [4, 5, 9]}
)");
  CHECK(t.accounts[0].format == "bailian");
  CHECK(t.hash_block_tokens == 16);
  CHECK(arrivals(t) == Ns{0, 250 * kMs, 61'114 * kMs});
  CHECK(t.requests[2].session == t.requests[0].session);
  CHECK(t.requests[2].turn == 1);
  CHECK(t.requests[1].session != t.requests[0].session);
}

TEST_CASE("BurstGPT v1 and v3, failures dropped with an account") {
  const Trace v1 = read_text(
      "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n"
      "5,ChatGPT,472,18,490,Conversation log\n"
      "45,GPT-4,1087,230,1317,API log\n"
      "46,ChatGPT,12,0,12,API log\n"
      "47,ChatGPT,0,0,0,API log\n");
  CHECK(v1.accounts[0].format == "burstgpt");
  CHECK(arrivals(v1) == Ns{0, 40'000 * kMs});
  CHECK(v1.models == std::vector<std::string>{"ChatGPT", "GPT-4"});
  CHECK(v1.accounts[0].rows_read == 4);
  CHECK(v1.accounts[0].kept == 2);
  using Dropped = std::vector<std::pair<std::string, std::int64_t>>;
  CHECK(v1.accounts[0].dropped == Dropped{{"output_tokens is 0", 1}, {"input_tokens is 0", 1}});
  const Trace v3 = read_text(
      "Timestamp,Session ID,Elapsed time,Model,Request tokens,Response tokens,Total tokens,Log "
      "Type\n"
      "19440110.0,1722ac82,43,GPT-4,906,446,1352,Conversation log\n"
      "19440161.5,,2,ChatGPT,36,29,65,API log\n");
  CHECK(arrivals(v3) == Ns{0, 51'500 * kMs});
  CHECK(v3.sessions == std::vector<std::string>{"1722ac82"});
  CHECK(v3.requests[1].session == Request::kNone);
  CHECK(v3.requests[1].input_tokens == 36);
}

TEST_CASE("zero outputs can be clamped or refused instead") {
  const std::string text = "arrival_s,input_tokens,output_tokens\n0,5,0\n1,5,2\n";
  const Trace t =
      read_text(text, [](TraceFileSpec& s) { s.zero_output = TraceFileSpec::Zero::kClamp; });
  CHECK(t.requests[0].output_tokens == 1);
  CHECK(t.accounts[0].kept == 2);
  CHECK(t.accounts[0].adjusted.at(0).second == 1);
  const std::string error =
      read_error(text, [](TraceFileSpec& s) { s.zero_output = TraceFileSpec::Zero::kError; });
  CHECK(error.find("trace.txt:line 2: output_tokens is 0") != std::string::npos);
  CHECK(error.find("zero_output") != std::string::npos);
}

TEST_CASE("Vidur, Splitwise-sim, APEX") {
  const Trace vidur =
      read_text("arrived_at,num_prefill_tokens,num_decode_tokens\n0.0,374,44\n4.314579,396,109\n");
  CHECK(vidur.accounts[0].format == "vidur");
  CHECK(arrivals(vidur) == Ns{0, 4'314'579'000});
  const Trace splitwise = read_text(
      "request_id,request_type,application_id,arrival_timestamp,batch_size,prompt_size,token_size\n"
      "0,2,0,0.5,1,1024,128\n1,2,0,0.75,1,64,8\n");
  CHECK(splitwise.accounts[0].format == "splitwise-sim");
  CHECK(splitwise.requests[1].input_tokens == 64);
  CHECK(arrivals(splitwise) == Ns{0, 250 * kMs});
  const Trace apex = read_text(
      R"({"StartTimeOffset": 197890289, "ContextTokens": 156, "GeneratedTokens": 67, "RequestID": "a", "TotalTokens": 223}
{"StartTimeOffset": 1500203480, "ContextTokens": 115, "GeneratedTokens": 390, "RequestID": "b", "TotalTokens": 505})");
  CHECK(apex.accounts[0].format == "apex");
  CHECK(arrivals(apex) == Ns{0, 1'302'313'191});
}

TEST_CASE("LLMServingSim: flat requests and sessions in one file") {
  const Trace t = read_text(
      R"({"input_toks": 11, "output_toks": 2, "arrival_time_ns": 500}
{"session_id": "s", "arrival_time_ns": 100, "sub_requests": [{"input_toks": 50, "output_toks": 5, "tool_duration_ns": 2000000000}, {"input_toks": 80, "output_toks": 6, "tool_duration_ns": 0}, {"input_toks": 90, "output_toks": 7}]}
)");
  CHECK(t.accounts[0].format == "llmservingsim");
  CHECK(t.accounts[0].rows_read == 4);
  check_trace(t);
  CHECK(t.requests[0].input_tokens == 50);
  CHECK(t.requests[1].input_tokens == 11);
  CHECK(t.requests[1].arrival.ns() == 400);
  REQUIRE(t.follow_ups.size() == 2);
  CHECK(t.follow_ups[0].delay.value() == doctest::Approx(2.0));
  CHECK(t.follow_ups[1].previous == 2);
  CHECK(t.follow_ups[1].delay.value() == 0.0);
}

TEST_CASE("AIBrix: several requests on a line") {
  const Trace t = read_text(
      R"({"timestamp": 6011, "requests": [{"Prompt Length": 178, "Output Length": 8, "prompt": "a \"b\""}, {"Prompt Length": 258, "Output Length": 40}]}
{"timestamp": 6917, "requests": [{"Prompt Length": 5, "Output Length": 4}]}
)");
  CHECK(t.accounts[0].format == "aibrix");
  CHECK(arrivals(t) == Ns{0, 0, 906 * kMs});
  CHECK(t.requests[1].input_tokens == 258);
}

TEST_CASE("RAGPulse: text times in seconds, ids by component, one inversion") {
  const Trace t = read_text(
      R"({"timestamp": "82", "input_length": 3112, "output_length": 192, "hash_ids": {"sys": [1, 2], "user": []}, "session_id": "x"}
{"timestamp": "80", "input_length": 10, "output_length": 9, "hash_ids": {"sys": [1], "user": [3]}, "session_id": "y"}

)");
  CHECK(t.accounts[0].format == "ragpulse");
  CHECK(arrivals(t) == Ns{0, 2000 * kMs});
  CHECK(t.requests[0].input_tokens == 10);
  CHECK(t.requests[0].row == 1);
  CHECK(t.hash_block_tokens == 0);
  const auto& notes = t.accounts[0].notes;
  CHECK(std::any_of(notes.begin(), notes.end(), [](const std::string& n) {
    return n.find("no prefix chain") != std::string::npos ||
           n.find("not a prefix chain") != std::string::npos;
  }));
}

TEST_CASE("native CSV: byte-order mark, quotes, blank lines, every column") {
  const Trace t = read_text(
      "\xef\xbb\xbf# hash_block_tokens = 64\n"
      "Arrival_S , "
      "input_tokens,output_tokens,model,class,tenant,priority,session_id,follows,delay_s,"
      "hash_ids,colour\n\n"
      "0.5,\"1,200\",5,\"m, one\",chat,acme,-3,,,,7-9 40,red\n"
      "1.5,100.0,6,m2,,,,s1,,,,\n"
      ",120,7,m2,,,,s1,1,2.25,,\n");
  CHECK(t.accounts[0].format == "native-csv");
  CHECK(t.requests[0].input_tokens == 1200);
  CHECK(t.models == std::vector<std::string>{"m, one", "m2"});
  CHECK(t.classes == std::vector<std::string>{"chat", "default"});
  CHECK(t.requests[0].priority == -3);
  CHECK(t.hash_block_tokens == 64);
  CHECK(ids_of(t, 0) == Ids{7, 8, 9, 40});
  REQUIRE(t.follow_ups.size() == 1);
  CHECK(t.follow_ups[0].previous == 1);
  CHECK(t.follow_ups[0].delay.value() == doctest::Approx(2.25));
  check_trace(t);
}

TEST_CASE("native CSV: prefix groups share whole blocks") {
  const Trace t = read_text(
      "arrival_ms,input_tokens,output_tokens,prefix_id,prefix_tokens\n"
      "0,100,5,sys,40\n1,200,5,sys,40\n2,200,5,other,40\n3,9,5,,\n");
  CHECK(t.hash_block_tokens == 16);
  CHECK(ids_of(t, 0).size() == 2);  // floor(40 / 16)
  CHECK(ids_of(t, 0) == ids_of(t, 1));
  CHECK(ids_of(t, 0) != ids_of(t, 2));
  CHECK(ids_of(t, 3).empty());
  check_trace(t);
}

TEST_CASE("the user's word beats the table") {
  const Trace t = read_text("ts,in,out\n1700000000000000001,5,6\n1700000000000000003,7,8\n",
                            [](TraceFileSpec& s) {
                              s.columns = {{TraceField::kArrival, "ts", TimeUnit::kNs},
                                           {TraceField::kInput, "in", std::nullopt},
                                           {TraceField::kOutput, "out", std::nullopt}};
                            });
  CHECK(arrivals(t) == Ns{0, 2});
  const Trace u = read_text(
      R"({"timestamp": "2024-01-01 08:00:00+08:00", "input_length": 5, "output_length": 6}
{"timestamp": "2024-01-01 00:00:01Z", "input_length": 5, "output_length": 6})",
      [](TraceFileSpec& s) {
        s.columns = {{TraceField::kArrival, "", TimeUnit::kWallClock}};
      });
  CHECK(arrivals(u) == Ns{0, 1000 * kMs});
}

TEST_CASE("times can stay as written") {
  const Trace t = read_text("arrival_s,input_tokens,output_tokens\n5,5,6\n",
                            [](TraceFileSpec& s) { s.origin = TraceFileSpec::Origin::kZero; });
  CHECK(t.requests[0].arrival.ns() == 5000 * kMs);
}

TEST_CASE("ties keep the file's order and rows keep their numbers") {
  const Trace t =
      read_text("arrival_s,input_tokens,output_tokens\n2,1,1\n1,2,1\n2,3,1\n1,4,1\n1,0,1\n0,5,1\n");
  std::vector<std::int32_t> order;
  for (const Request& r : t.requests) order.push_back(r.input_tokens);
  CHECK(order == std::vector<std::int32_t>{5, 2, 4, 1, 3});
  CHECK(t.requests[0].row == 5);
  check_trace(t);
}
