#include <doctest/doctest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "sim/core/csv.h"
#include "sim/core/text_file.h"
#include "sim/report/columns.h"
#include "sim/report/run_table.h"
#include "sim/report/table_file.h"
#include "sim/report/write_report.h"
#include "tests/support/report_run.h"
#include "tests/support/scratch_directory.h"

using namespace medley;
using namespace medley::testing;
namespace fs = std::filesystem;

namespace {
/// The report of a run, by file name.
class Report {
 public:
  explicit Report(const HandRun& run) {
    write_report(Analysis(run.scenario, run.result), scratch_.path() + "/out", false);
  }
  std::string text(const std::string& name) const { return slurp(path(name)); }
  std::vector<std::string> lines(const std::string& name) const { return lines_of(text(name)); }
  std::string path(const std::string& name) const { return scratch_.path() + "/out/" + name; }
  bool has(const std::string& name) const { return fs::exists(path(name)); }

 private:
  ScratchDirectory scratch_;
};

std::string row_of(const std::vector<std::string>& lines, const std::string& start) {
  for (const std::string& line : lines) {
    if (line.starts_with(start)) return line;
  }
  return "";
}
}  // namespace

TEST_CASE("requests.csv has the promised columns and exact times") {
  const auto lines = Report(hand_run()).lines("requests.csv");
  REQUIRE(lines.size() == 4);
  CHECK(
      lines[0] ==
      "request_id,session_id,turn,tenant,slo_class,model,pool,replica,arrival_s,queue_s,prefill_s,"
      "kv_transfer_s,ttft_s,tpot_s,e2e_s,input_tokens,cached_tokens,output_tokens,preemptions,"
      "finish_reason,slo_met,energy_j,cost_usd,prefill_pool,prefill_replica,"
      "kv_transfer_bytes,decode_queue_s,tier_cached_tokens,recall_s,migrations,"
      "compute_s,memory_s,link_s,host_s,contention_s,stall_s");
  CHECK(lines[1] ==
        "0,,0,default,default,small,p,0,0,0.5,0.5,0,1,0.5,3,100,0,5,0,finished,true,400,"
        "0.026666666666666665,,,,,0,0,0,0,0,0,0,0,0");
  CHECK(lines[3] ==
        "2,,0,default,default,small,,,5,,,,,,,300,0,0,0,rejected_never_fits,false,0,0,,,,,0,0,0"
        ",,,,,,");
}

TEST_CASE("rows of requests.csv can be sampled or left out, summaries never change") {
  HandRun run = hand_run();
  const std::string all = Report(run).text("summary.csv");
  run.scenario.report.requests = ReportSpec::Requests::kSample;
  run.scenario.report.sample = 2;
  const Report sampled(run);
  CHECK(sampled.lines("requests.csv").size() == 3);
  CHECK(sampled.text("summary.csv") == all);
  run.scenario.report.sample = 50;
  CHECK(Report(run).lines("requests.csv").size() == 4);
  run.scenario.report.requests = ReportSpec::Requests::kNone;
  const Report none(run);
  CHECK_FALSE(none.has("requests.csv"));
  CHECK(none.text("summary.csv") == all);
}

// Replica 0: 600 J active + 300 J idle on one device; the spare device is on node 1.
TEST_CASE("devices.csv tells energy by state for every device, spare ones too") {
  const auto lines = Report(hand_run()).lines("devices.csv");
  REQUIRE(lines.size() == 5);
  CHECK(lines[1] == "n,0,0,round,p,0,4,0.4,600,300,0,900,90,0.25,0.5,0,0.01,assumed,ok,0.5,60,0,0");
  CHECK(lines[3] == "n,1,0,round,p,2,0,0,0,500,0,500,50,,,0,0.02,assumed,ok,0,0,0,0");
  CHECK(lines[4] == "n,1,1,round,,,0,0,0,0,100,100,10,,,0,0,assumed,ok,0,0,0,0");
}

// Pool: 250 W in the first 4 s, 150 W after. Site in [0, 1): nodes ((100 + 200) + (100 + 60)) / .8
// x 1.25 = 718.75 W.
TEST_CASE("energy.csv has sites, pools and nodes per interval") {
  const auto lines = Report(hand_run()).lines("energy.csv");
  REQUIRE(lines.size() == 1 + 10 * 4);
  CHECK(lines[1] == "0,1,site,site,718.75,718.75,718.75,,,");
  CHECK(row_of(lines, "3,4,pool,p") == "3,4,pool,p,250,250,250,,3000,0");
  CHECK(row_of(lines, "4,5,pool,p") == "4,5,pool,p,150,150,150,,3000,0");
  CHECK(row_of(lines, "9,10,node,n/1") == "9,10,node,n/1,200,200,200,,,");
}

TEST_CASE("peaks are taken over sliding spans that end in the interval") {
  HandRun run = hand_run();
  run.result.bin = Seconds(0.5);  // 1 s = 2 bins; the burst of 250 W lies in [1.5, 2.5)
  run.result.replicas[0].extra_energy_j = {0, 0, 0, 200, 200};
  run.scenario.report.interval = Seconds(2.0);
  const auto lines = Report(run).lines("energy.csv");
  // [0, 2): the spans ending at 1.5 and 2 hold 0 and 200 J above 150 W.
  CHECK(row_of(lines, "0,2,pool,p") == "0,2,pool,p,500,250,350,,3000,0");
  // [2, 4): the span [1.5, 2.5) holds 400 J above 150 W.
  CHECK(row_of(lines, "2,4,pool,p") == "2,4,pool,p,500,250,550,,3000,0");
}

// Replica 0 of three is at its limit for 0.6 s of the second bin.
TEST_CASE("time at the limit is the devices' mean in each interval") {
  HandRun run = hand_run();
  run.result.replicas[0].limited_s = 0.6;
  run.result.replicas[0].limited_bin_s = {0, 0.6};
  const auto lines = Report(run).lines("energy.csv");
  CHECK(row_of(lines, "0,1,pool,p").ends_with(",3000,0"));
  CHECK(row_of(lines, "1,2,pool,p").ends_with(",3000,0.19999999999999998"));
  CHECK(lines_of(Report(run).text("devices.csv"))[1].find(",0.6,0.01,") != std::string::npos);
}

TEST_CASE("timeseries.csv differences the counters") {
  const auto lines = Report(hand_run()).lines("timeseries.csv");
  REQUIRE(lines.size() == 4);
  CHECK(lines[1] == "0,p,0,0,0,,,");
  // 300 prompt and 6 output tokens in 5 s; 4 s x 250 W + 1 s x 150 W.
  CHECK(lines[2] == "5,p,1,0,25,60,1.2,230");
  CHECK(lines[3] == "10,p,0,0,0,0,0.4,150");
}

TEST_CASE("summary.json speaks vLLM's words, in ms") {
  const auto json = nlohmann::ordered_json::parse(Report(hand_run()).text("summary.json"));
  for (const char* key :
       {"duration", "completed", "total_input_tokens", "total_output_tokens", "request_throughput",
        "request_goodput", "output_throughput", "total_token_throughput", "failed"}) {
    CHECK_MESSAGE(json.contains(key), key);
  }
  for (const char* metric : {"ttft", "tpot", "itl", "e2el"}) {
    for (const char* part : {"mean", "median", "std", "p90", "p95", "p99"}) {
      const std::string key = std::string(part) + "_" + metric + "_ms";
      CHECK_MESSAGE(json.contains(key), key);
    }
  }
  CHECK(json["completed"] == 2);
  CHECK(json["failed"] == 1);
  CHECK(json["total_input_tokens"] == 300);
  CHECK(json["mean_ttft_ms"] == 1000.0);
  CHECK(json["mean_itl_ms"].get<double>() == doctest::Approx(10.0 / 6 * 1e3));
  CHECK(json["pools"]["p"]["completed"] == 2);
}

TEST_CASE("unknown values are null in summary.json and blank in the CSVs") {
  HandRun run = hand_run();
  run.scenario.nodes[0].device.power.active_floor.value.reset();
  run.result.pools[0].power = replica_power(step_model_input(run.scenario, run.scenario.pools[0]));
  const Report report(run);
  const auto json = nlohmann::ordered_json::parse(report.text("summary.json"));
  CHECK(json["energy_site"].is_null());
  CHECK(json["missing"]["energy_site"] == "power.active_floor");
  CHECK(report.lines("requests.csv")[1].find("finished,true,,") != std::string::npos);
  CHECK(row_of(report.lines("energy.csv"), "0,1,pool,p") == "0,1,pool,p,,,,,3000,0");
  CHECK(report.lines("devices.csv")[1].ends_with("missing:power.active_floor,0.5,,0,0"));
  const auto manifest = nlohmann::ordered_json::parse(report.text("manifest.json"));
  CHECK(manifest["missing"][0]["supply"] ==
        "--set 'cluster.nodes.n.overrides.power.active_floor=... W'");
  CHECK(run_table(Analysis(run.scenario, run.result), false)
            .find("missing: power.active_floor of n leaves energy blank; supply --set "
                  "'cluster.nodes.n.overrides.power.active_floor=... W'") != std::string::npos);
}

TEST_CASE("the manifest counts requests, names its files and holds the resolved scenario") {
  HandRun run = hand_run();
  run.scenario.resolved_json = R"({"name": "test"})";
  ImportAccount import;
  import.source = "/home/someone/chat.csv";
  import.rows_read = 4, import.kept = 3;
  import.dropped = {{ "zero output", 1 }};
  run.scenario.trace.accounts = {import};
  const std::string text = Report(run).text("manifest.json");
  const auto json = nlohmann::ordered_json::parse(text);
  CHECK(json["requests"]["arrived"] == 3);
  CHECK(json["requests"]["rejected"] == 1);
  CHECK(json["resolved"]["name"] == "test");
  CHECK(json["imports"][0]["dropped"]["zero output"] == 1);
  CHECK(json["imports"][0]["source"] == "chat.csv");
  CHECK(text.find("/home/") == std::string::npos);
  CHECK(json["provenance"]["time_share"]["measured"] == 0.75);
  CHECK(json["files"].size() == 8);
}

TEST_CASE("the Chrome trace is JSON with a slice per span") {
  HandRun run = hand_run();
  run.scenario.report.chrome_trace = true;
  TraceSpan span;
  span.start = SimTime::from_ns(1500), span.end = at_s(4);
  span.sequences = 3, span.steps = 7;
  run.result.spans = {span};
  const auto json = nlohmann::ordered_json::parse(Report(run).text("trace.json"));
  const auto& slice = json["traceEvents"][1];
  CHECK(slice["ph"] == "X");
  CHECK(slice["ts"] == 1.5);
  CHECK(slice["dur"] == 3999998.5);
  CHECK(slice["args"]["steps"] == 7);
  CHECK(json["traceEvents"].size() == 5);
}

TEST_CASE("the same run gives the same bytes") {
  const Report one(hand_run());
  const Report two(hand_run());
  for (const ReportFile& file : report_files()) {
    const std::string name(file.name);
    CHECK(one.has(name) == two.has(name));
    CHECK_MESSAGE(one.text(name) == two.text(name), name);
  }
}

TEST_CASE("columns and metrics: code, columns.json and results/README.md agree") {
  const HandRun run = hand_run();
  const Report report(run);
  const Analysis a(run.scenario, run.result);
  std::set<std::string> emitted;
  for (const ScopeSummary& scope : a.scopes()) {
    for (const MetricRow& row : scope.rows) {
      const MetricInfo* info = find_metric(row.metric);
      REQUIRE_MESSAGE(info != nullptr, row.metric);
      CHECK_MESSAGE(info->unit == row.unit, row.metric);
      CHECK_MESSAGE(info->distribution == row.distribution, row.metric);
      emitted.insert(row.metric);
    }
  }
  CHECK(emitted.size() == report_metrics().size());
  const std::string readme = slurp(std::string(MEDLEY_SOURCE_DIR) + "/results/README.md");
  REQUIRE_FALSE(readme.empty());
  for (const ReportFile& f : report_files()) {
    CHECK_MESSAGE(readme.find("`" + std::string(f.name) + "`") != std::string::npos, f.name);
    CHECK_MESSAGE(readme.find(f.schema) != std::string::npos, f.schema);
  }
  for (const ColumnInfo& c : report_columns()) {
    const std::string line = "| `" + std::string(c.column) + "` | " + std::string(c.unit);
    CHECK_MESSAGE(readme.find(line) != std::string::npos, line);
    CHECK_MESSAGE(readme.find(c.definition) != std::string::npos, c.definition);
  }
  for (const MetricInfo& m : report_metrics()) {
    const std::string line = "| `" + std::string(m.metric) + "` | " + std::string(m.unit);
    CHECK_MESSAGE(readme.find(line) != std::string::npos, line);
    CHECK_MESSAGE(readme.find(m.definition) != std::string::npos, m.definition);
  }
  const auto json = nlohmann::ordered_json::parse(report.text("columns.json"));
  CHECK(json["columns"].size() == report_columns().size());
}

TEST_CASE("seconds are written exactly, without trailing zeros") {
  const auto text = [](std::int64_t ns) {
    std::string out;
    append_seconds(out, ns);
    return out;
  };
  CHECK(text(0) == "0");
  CHECK(text(1) == "0.000000001");
  CHECK(text(1500000000) == "1.5");
  CHECK(text(-20000000) == "-0.02");
  CHECK(text(9223372036854775807) == "9223372036.854775807");
}

TEST_CASE("more than a million rows are compressed, and read back whole") {
  const ScratchDirectory scratch;
  const std::string path = scratch.path() + "/x.csv.gz";
  {
    FileSink sink(path, true);
    for (int i = 0; i < 100000; ++i) {
      sink.buffer() += "row " + std::to_string(i) + "\n";
      sink.flush_if_full();
    }
    sink.close();
  }
  CHECK(fs::file_size(path) < 600000);
  LineReader lines(path);
  std::string_view line;
  std::string last;
  while (lines.next(line)) last = line;
  CHECK(last == "row 99999");
  CHECK(lines.line_number() == 100000);
}
