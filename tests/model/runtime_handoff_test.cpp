// Prefill and decode on different replicas: times derived by hand for constant steps.
#include <doctest/doctest.h>

#include "tests/support/split_fleet.h"

using namespace medley;
using namespace medley::testing;

namespace {
/// Latencies of links stay below this.
constexpr double kLatency = 20e-6;

bool within(double value, double expected) {
  return value >= expected - 2e-9 && value <= expected + kLatency;
}
double ttft(const RunResult& r, std::size_t i = 0) {
  return (r.requests[i].first_token - r.requests[i].arrival).value();
}
double e2e(const RunResult& r, std::size_t i = 0) {
  return (r.requests[i].last_token - r.requests[i].arrival).value();
}
Scenario one_request(double bandwidth, KvTransferSpec::Overlap overlap) {
  Scenario s = split_fleet(bandwidth);
  s.kv_transfer.overlap = overlap;
  s.trace.requests = {request_at(0.0, 1000, 5)};
  return s;
}
}  // namespace

TEST_CASE("KV after the prompt: prefill, transfer and first decode step add up") {
  // Prefill 1000 x 1 ms + 10 ms = 1.01 s; 256 kB at 1 MB/s = .256 s; the last prompt token again in
  // one step of 10 ms; four more tokens.
  const RunResult r = run(test_catalog(), one_request(1e6, KvTransferSpec::Overlap::kNone));
  CHECK(within(ttft(r), 1.01 + 0.256 + 0.01));
  CHECK(within(e2e(r), 1.01 + 0.256 + 0.05));
  const HandoffRecord& h = r.handoffs[0];
  CHECK(close(h.bytes, 256e3));
  CHECK(close(h.prefilled.seconds().value(), 1.01));
  CHECK(h.prefill_pool == 0);
  CHECK(r.requests[0].pool == 1);
}

TEST_CASE("KV layer by layer hides all but the last layer's transfer behind a fast link") {
  // 2 layers of 128 kB; at 1 MB/s the first leaves by .505 + .128 s, the second after the prompt.
  const RunResult r = run(test_catalog(), one_request(1e6, KvTransferSpec::Overlap::kLayer));
  CHECK(within(ttft(r), 1.01 + 0.128 + 0.01));
}

TEST_CASE("KV layer by layer over a slow link: the link decides from the first layer on") {
  // The first layer is there after .505 s; 256 kB at 100 kB/s take 2.56 s.
  const RunResult r = run(test_catalog(), one_request(1e5, KvTransferSpec::Overlap::kLayer));
  CHECK(within(ttft(r), 0.505 + 2.56 + 0.01));
}

TEST_CASE("KV chunk by chunk: what earlier chunks made leaves during the next") {
  // Chunks of 500: .51 s each. The first 128 kB leave from .51 to .638 s, hidden; the second after
  // 1.02 s.
  Scenario s = one_request(1e6, KvTransferSpec::Overlap::kChunk);
  s.pools[0].batching.max_num_batched_tokens = 500;
  const RunResult r = run(test_catalog(), s);
  CHECK(within(ttft(r), 1.02 + 0.128 + 0.01));
}

TEST_CASE("the prefill replica's own first token need not wait for the KV") {
  Scenario s = one_request(1e6, KvTransferSpec::Overlap::kNone);
  s.kv_transfer.first_token = Handoff::kPrefillToken;
  const RunResult r = run(test_catalog(), s);
  CHECK(close(ttft(r), 1.01));
  CHECK(within(e2e(r), 1.01 + 0.256 + 0.04));  // four tokens are left
  CHECK(r.pools[1].itl.count() == 4);
  // One output token: nothing to hand over.
  s.trace.requests[0].output_tokens = 1;
  const RunResult one = run(test_catalog(), s);
  CHECK(close(e2e(one), 1.01));
  CHECK(one.handoffs[0].bytes == 0.0);
}

TEST_CASE("a full decode replica holds prompts back on the prefill side") {
  // 63 blocks of 16 hold one prompt of 1000 and its output, not two: the second request's KV leaves
  // when the first has ended. Both prompts share one prefill step of 2.02 s.
  Scenario s = one_request(1e6, KvTransferSpec::Overlap::kNone);
  s.trace.requests = {request_at(0.0, 1000, 5), request_at(0.0, 1000, 5)};
  s.pools[1].num_blocks_override = 63;
  const RunResult r = run(test_catalog(), s);
  const double prefill = 2.0 + 0.02;
  CHECK(within(e2e(r, 0), prefill + 0.256 + 0.05));
  CHECK(within(ttft(r, 1), e2e(r, 0) + 0.256 + 0.01));
  CHECK(r.replicas[1].peak_blocks <= 63);
  // With room for both the two transfers share the link and end together.
  s.pools[1].num_blocks_override = 1 << 10;
  const RunResult both = run(test_catalog(), s);
  CHECK(within(ttft(both, 0), prefill + 0.512 + 0.02));
  CHECK(within(ttft(both, 1), prefill + 0.512 + 0.02));
}

TEST_CASE("the prefill engine's answer comes before the decode engine's first step") {
  Scenario s = one_request(1e9, KvTransferSpec::Overlap::kNone);
  for (PoolSpec& pool : s.pools) {
    pool.backend.name = "test";
    pool.backend.host_per_step = pool.backend.host_per_sequence = known(Seconds(0));
    pool.backend.request_overhead = known(Seconds(0.1));
  }
  // 1.01 s, .1 s of the prefill engine's front end, 10 ms, .1 s of the decode engine's.
  CHECK(within(ttft(run(test_catalog(), s)), 1.01 + 0.1 + 0.01 + 0.1));
}
