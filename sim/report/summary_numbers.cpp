#include <algorithm>
#include <cmath>

#include "sim/report/summary_builder.h"

namespace medley {

namespace {
constexpr double kMillion = 1e6;

double ratio(double a, double b) {
  return b > 0.0 ? a / b : kBlank;
}
double ratio(std::int64_t a, std::int64_t b) {
  return ratio(static_cast<double>(a), static_cast<double>(b));
}
}  // namespace

void SummaryBuilder::add_gaps() {
  LogHistogram fleet;
  for (const PoolRecord& p : result_.pools) fleet.merge(p.itl);
  const auto add = [&](std::size_t scope, const LogHistogram& gaps) {
    add_moments(scope, "itl", "s", moments_of(gaps));
  };
  add(0, fleet);
  for (const Grouping& g : groupings_) {
    for (std::size_t m = 0; m < g.names.size(); ++m) {
      if (g.scope == "pool") add(g.first + m, result_.pools[m].itl);
      if (g.scope != "model") continue;
      LogHistogram gaps;
      for (std::size_t p = 0; p < scenario_.pools.size(); ++p) {
        if (scenario_.pools[p].model_name == g.names[m]) gaps.merge(result_.pools[p].itl);
      }
      add(g.first + m, gaps);
    }
  }
}

void SummaryBuilder::add_request_numbers(std::size_t s) {
  const Tally& t = tallies_[s];
  const auto count = [&](const char* metric, const char* unit, std::int64_t n) {
    number(s, metric, unit, static_cast<double>(n));
  };
  number(s, "duration", "s", a_.window().seconds());
  count("num_requests", "request", t.requests);
  count("completed", "request", t.completed);
  count("rejected", "request", t.rejected);
  count("unfinished", "request", t.unfinished);
  count("total_input_tokens", "token", t.input_tokens);
  count("total_output_tokens", "token", t.output_tokens);
  number(s, "prefix_cache_hit_rate", "1", ratio(t.cached_tokens, t.started_input_tokens));
  number(s, "tier_hit_rate", "1", ratio(t.tier_tokens, t.started_input_tokens));
  count("preemptions", "1", t.preemptions);
  count("migrations", "1", t.migrations);
}

void SummaryBuilder::add_rates(std::size_t s) {
  const Tally& t = tallies_[s];
  const double seconds = a_.window().seconds();
  number(s, "request_throughput", "request/s", ratio(t.finished_in, seconds));
  number(s, "request_goodput", "request/s", t.has_slo ? ratio(t.good_in, seconds) : kBlank);
  number(s, "output_throughput", "token/s", ratio(t.output_tokens_in, seconds));
  number(s, "total_token_throughput", "token/s",
         ratio(t.output_tokens_in + t.prompt_tokens_in, seconds));
  number(s, "slo_attainment", "1", ratio(t.met, t.with_slo), t.with_slo);
  number(s, "slo_attainment_ttft", "1", ratio(t.ttft_met, t.ttft_judged), t.ttft_judged);
  number(s, "slo_attainment_tpot", "1", ratio(t.tpot_met, t.tpot_judged), t.tpot_judged);
  number(s, "slo_attainment_e2el", "1", ratio(t.e2e_met, t.e2e_judged), t.e2e_judged);
}

SummaryBuilder::Hardware SummaryBuilder::hardware_of(std::size_t p) const {
  const PoolSpec& pool = scenario_.pools[p];
  const double devices = pool.device_share();
  const PoolRates rates = pool_rates(scenario_, pool);
  Hardware h;
  for (const ReplicaRecord& r : result_.replicas) {
    if (r.pool != p) continue;
    h.replicas += 1.0;
    h.devices += devices;
    h.busy += r.busy_s * devices;
    h.flops += r.flops;
    h.bytes += r.bytes;
    h.limited += r.limited_s * devices;
    h.extrapolated += r.extrapolated_s * devices;
    h.waited_device += r.waited_device_s * devices;
    h.waited_link += r.waited_link_s * devices;
    h.loads += r.loads;
    h.load_s += r.load_s;
    h.active_j += r.active_energy_j;
    h.extrapolated_j += r.extrapolated_j;
    h.peak_flops += r.busy_s * devices * rates.peak_flops;
    h.peak_bytes += r.busy_s * devices * rates.bandwidth;
  }
  if (!a_.account().pools()[p].dynamic_known) h.power_missing = a_.account().pools()[p].missing;
  return h;
}

void SummaryBuilder::Hardware::add(const Hardware& h) {
  replicas += h.replicas, busy += h.busy, flops += h.flops, bytes += h.bytes;
  peak_flops += h.peak_flops, peak_bytes += h.peak_bytes, limited += h.limited;
  waited_device += h.waited_device, waited_link += h.waited_link;
  extrapolated += h.extrapolated, active_j += h.active_j, extrapolated_j += h.extrapolated_j;
  loads += h.loads, load_s += h.load_s;
  if (power_missing.empty()) power_missing = h.power_missing;
}

void SummaryBuilder::add_hardware(std::size_t s, const Hardware& h) {
  number(s, "devices", "1", h.devices);
  number(s, "replicas", "1", h.replicas);
  number(s, "cold_start", "s", ratio(h.load_s, h.loads));
  number(s, "utilization", "1", ratio(h.busy, h.devices * a_.account().run_s()));
  number(s, "mfu", "1", ratio(h.flops, h.peak_flops));
  number(s, "bandwidth_utilization", "1", ratio(h.bytes, h.peak_bytes));
  number(s, "limited_share", "1", ratio(h.limited, h.busy));
  number(s, "waited_device_share", "1", ratio(h.waited_device, h.busy));
  number(s, "waited_link_share", "1", ratio(h.waited_link, h.busy));
  number(s, "extrapolated_time_share", "1", ratio(h.extrapolated, h.busy));
  Known energy;
  energy.value = ratio(h.extrapolated_j, h.active_j);
  energy.missing = h.power_missing;
  number(s, "extrapolated_energy_share", "1", energy);
}

void SummaryBuilder::add_load(std::size_t s, std::uint16_t pool) {
  double running = 0.0, waiting = 0.0, kv = 0.0, n = 0.0;
  for (const PoolSample& sample : result_.samples) {
    const double t = sample.time.seconds().value();
    if (sample.pool != pool || t < a_.window().from || t > a_.window().to) continue;
    running += sample.running;
    waiting += sample.waiting;
    kv += sample.kv_usage;
    n += 1.0;
  }
  double peak = 0.0;
  for (const ReplicaRecord& r : result_.replicas) {
    if (r.pool != pool || r.blocks <= 0) continue;
    peak = std::max(peak, static_cast<double>(r.peak_blocks) / static_cast<double>(r.blocks));
  }
  number(s, "mean_running", "request", ratio(running, n));
  number(s, "mean_waiting", "request", ratio(waiting, n));
  number(s, "mean_kv_cache_usage", "1", ratio(kv, n));
  number(s, "peak_kv_cache_usage", "1", peak);
}

void SummaryBuilder::add_money(std::size_t s, const Known& devices_j, const Known& it_j,
                               const Known& usd) {
  const Tally& t = tallies_[s];
  const double pue = scenario_.price.pue;
  const auto scaled = [](Known k, double factor) {
    k *= factor;
    return k;
  };
  const auto per = [](Known k, double amount, double unit) {
    k.value = ratio(k.value * unit, amount);
    return k;
  };
  const double out = t.output_tokens_in;
  const double all = t.output_tokens_in + t.prompt_tokens_in;
  const Known site_j = scaled(it_j, pue);
  number(s, "energy_devices", "J", devices_j);
  number(s, "energy_it", "J", it_j);
  number(s, "energy_site", "J", site_j);
  number(s, "mean_power_devices", "W", per(devices_j, a_.window().seconds(), 1.0));
  number(s, "mean_power_site", "W", per(site_j, a_.window().seconds(), 1.0));
  number(s, "energy_per_output_token_devices", "J/token", per(devices_j, out, 1.0));
  number(s, "energy_per_output_token", "J/token", per(site_j, out, 1.0));
  number(s, "cost", "USD", usd);
  number(s, "cost_per_million_output_tokens", "USD", per(usd, out, kMillion));
  number(s, "cost_per_million_tokens", "USD", per(usd, all, kMillion));
  number(s, "electricity_cost", "USD", a_.account().energy_usd(it_j));
  const Known carbon = a_.account().carbon_g(it_j);
  number(s, "carbon", "gCO2", carbon);
  number(s, "carbon_per_million_output_tokens", "gCO2", per(carbon, out, kMillion));
}

void SummaryBuilder::add_pool_numbers(std::size_t p) {
  const FleetAccount& account = a_.account();
  const MeasuredWindow& w = a_.window();
  const std::size_t s = 1 + p;
  add_hardware(s, hardware_of(p));
  add_load(s, static_cast<std::uint16_t>(p));
  add_money(s, account.pool_devices_j(p, w.from, w.to), account.pool_it_j(p, w.from, w.to),
            account.pool_usd(p, w.from, w.to));
}

void SummaryBuilder::add_fleet_numbers() {
  Hardware all;
  for (std::size_t p = 0; p < scenario_.pools.size(); ++p) {
    all.add(hardware_of(p));
  }
  all.devices = a_.account().devices();
  add_hardware(0, all);
  add_links();
  const FleetAccount& account = a_.account();
  const MeasuredWindow& w = a_.window();
  add_money(0, account.cluster_devices_j(w.from, w.to), account.cluster_it_j(w.from, w.to),
            account.cluster_usd(w.from, w.to));
  add_trust();
}

void SummaryBuilder::add_links() {
  double busiest = kBlank, saturated = kBlank;
  for (const LinkRecord& link : result_.links) {
    busiest = std::fmax(busiest, link_utilization(link, a_.account().run_s()));
    saturated = std::fmax(saturated, link.saturated_s);
  }
  number(0, "busiest_link_utilization", "1", busiest);
  number(0, "link_saturated", "s", saturated);
}

void SummaryBuilder::add_trust() {
  for (int c = 0; c < kProvenanceClasses; ++c) {
    const std::string name(to_string(static_cast<Provenance>(c)));
    number(0, "time_share_" + name, "1", a_.trust().time[c]);
    number(0, "energy_share_" + name, "1", a_.trust().energy[c]);
  }
}

}  // namespace medley
