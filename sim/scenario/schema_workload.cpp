#include "sim/scenario/schema_sections.h"

namespace medley {

namespace {
SchemaSection source_section() {
  return {
      "Workload",
      "Either one source directly under `workload`, or several under `workload.sources.<name>`; "
      "`<source>` below stands for one of them. A source reads a trace or generates requests. Its "
      "transforms apply in the order of this table.",
      {{"<source>.trace.file", "file", "",
        "CSV or JSON lines, plain or gzip; looked up from the scenario's folder, then in the "
        "shipped data"},
       {"<source>.generate", "see Generators", "", ""},
       {"<source>.arrivals", "see Arrivals", "the trace's own", "replaces a trace's times"},
       {"<source>.model", "name, or {name: share}", "the trace's", "must be served by a pool"},
       {"<source>.model_names", "{trace's name: ours}", "", ""},
       {"<source>.class", "name, or {name: share}", "the trace's, else `default`", "SLO class"},
       {"<source>.class_names", "{trace's name: ours}", "", ""},
       {"<source>.tenant", "name, or {name: share}", "the trace's, else `default`", ""},
       {"<source>.tenant_names", "{trace's name: ours}", "", ""},
       {"<source>.priority", "integer, or {integer: share}", "the trace's, else 0",
        "lower is served first under scheduling_policy `priority`"},
       {"<source>.slice.from", "time", "", "keep what arrives from here on; becomes time 0"},
       {"<source>.slice.to", "time", "", "and before this"},
       {"<source>.first", "integer", "", "keep the first N"},
       {"<source>.thin", "number 0..1", "", "keep each request (session) with this probability"},
       {"<source>.scale_input", "number", "1", "multiplies prompt lengths"},
       {"<source>.scale_output", "number", "1", "multiplies output lengths"},
       {"<source>.max_input_tokens", "integer", "", "clamp, counted in the import account"},
       {"<source>.max_output_tokens", "integer", "", "clamp, counted"},
       {"<source>.repeat", "integer", "1", "copies, one after another"},
       {"<source>.repeat_period", "time", "span + one gap", "start to start"},
       {"<source>.repeat_fresh_prefixes", "true/false", "true",
        "copies share no prompt prefix with one another"},
       {"<source>.scale_rate", "number", "1", "divides times"},
       {"<source>.target_rate", "req/s", "", "instead of scale_rate: the mean rate wanted"},
       {"<source>.warp", "[[time, time], ...]", "", "knots (old, new), linear between"},
       {"<source>.jitter", "time", "", "added to each arrival, uniform from 0"},
       {"<source>.shift", "time", "0 s", "added to every arrival"},
       {"<source>.time_step", "time", "", "rounds arrivals to multiples of it"}}};
}

SchemaSection trace_section() {
  return {"Trace files",
          "Formats are told by their columns. `medley list formats` shows the formats and names.",
          {{"<source>.trace.format", "name", "auto", "Azure, Mooncake, BurstGPT, native, ..."},
           {"<source>.trace.columns.<field>", "column, or {name, unit}", "by alias",
            "fields: arrival, input_tokens, output_tokens, delay, model, class, tenant, priority, "
            "session, ...; unit of times: ns, us, ms, s, wall"},
           {"<source>.trace.on_bad_row", "error, drop", "error", "dropped rows are counted"},
           {"<source>.trace.zero_input", "drop, clamp, error", "drop", "prompts of no token"},
           {"<source>.trace.zero_output", "drop, clamp, error", "drop", "outputs of no token"},
           {"<source>.trace.prefix_ids", "use, ignore", "use", "prompt-prefix identity"},
           {"<source>.trace.hash_block_tokens", "integer", "the format's",
            "tokens that one prefix id stands for"},
           {"<source>.trace.sessions", "auto, open, closed", "auto",
            "closed: a turn follows the completion of the one before; open: as timed"},
           {"<source>.trace.session_input", "full, new", "full",
            "new: rows hold only each turn's own tokens"},
           {"<source>.trace.time_origin", "first, zero", "first",
            "first: the first request arrives at 0"}}};
}

SchemaSection generator_section() {
  return {
      "Generators",
      "",
      {{"<source>.generate.arrivals", "see Arrivals", "required", ""},
       {"<source>.generate.input_tokens", "integer or distribution", "required", ""},
       {"<source>.generate.output_tokens", "integer or distribution", "required", ""},
       {"<source>.generate.requests", "integer", "", "how many in all; this or duration"},
       {"<source>.generate.duration", "time", "", "of the arrivals"},
       {"<source>.generate.session.turns", "integer or distribution", "required in a session",
        "requests come in sessions; a prompt extends the previous prompt and output"},
       {"<source>.generate.session.think_time", "time or distribution", "required in a session",
        "from a completion to the next turn"},
       {"<source>.generate.session.first_input_tokens", "integer or distribution", "input_tokens",
        "of the first turn"},
       {"<source>.generate.session.max_context_tokens", "integer", "", "ends a session before it"},
       {"<source>.generate.shared_prefix.groups", "integer", "1", "system prompts, documents"},
       {"<source>.generate.shared_prefix.tokens", "integer or distribution",
        "required in a shared prefix", "length of each; on top of input_tokens"},
       {"<source>.generate.shared_prefix.zipf", "number", "0", "popularity ~ 1/k^zipf"},
       {"<source>.generate.shared_prefix.share", "number 0..1", "1", "of requests that have one"},
       {"<source>.generate.hash_block_tokens", "integer", "16",
        "granularity of prompt-prefix identity"}}};
}

SchemaSection arrivals_section() {
  return {
      "Arrivals",
      "`<arrivals>` is `<source>.generate.arrivals` or `<source>.arrivals`. Open processes need "
      "exactly one of rate, ramp, diurnal, hourly, series.",
      {{"<arrivals>.process", "constant, poisson, gamma, weibull, closed_loop", "required",
        "gamma and weibull: bursty; closed_loop: a fixed number of users"},
       {"<arrivals>.rate", "req/s", "", "constant mean rate"},
       {"<arrivals>.cv", "number", "required for gamma, weibull",
        "coefficient of variation of the gaps; 1 is Poisson"},
       {"<arrivals>.ramp", "{from, to, over, hold}", "", "rates and times"},
       {"<arrivals>.diurnal", "{mean, amplitude, period, peak}", "",
        "sine wave; period 24 h, peak at half of it unless given"},
       {"<arrivals>.hourly", "{mean, levels, period}", "",
        "relative levels of equal parts of the period"},
       {"<arrivals>.series",
        "{file, time, rate, header, where, time_unit, scale, interpolate, repeat}", "",
        "rates from a CSV"},
       {"<arrivals>.concurrency", "integer", "required for closed_loop", "users"},
       {"<arrivals>.think_time", "time or distribution", "0 s",
        "closed_loop: from a completion to the user's next request"},
       {"<arrivals>.ramp_up", "time", "0 s", "closed_loop: users start spread over it"},
       {"<arrivals>.queue", "per_user, shared", "per_user",
        "closed_loop: whether a free user takes its own next request or the first that waits (as "
        "load generators with a concurrency limit do)"}}};
}

SchemaSection distribution_section() {
  return {"Distributions",
          "Where the tables above say so, in place of a plain number or time. Lengths are numbers, "
          "times have units. `min` and `max` clamp.",
          {{"{\"dist\": \"fixed\"}", "value", "", ""},
           {"{\"dist\": \"uniform\"}", "min, max", "", ""},
           {"{\"dist\": \"exponential\"}", "mean", "", ""},
           {"{\"dist\": \"lognormal\"}", "two of mean, p50, p90, p99, cv; or mu, sigma", "", ""},
           {"{\"dist\": \"gamma\"}", "mean, cv", "", ""},
           {"{\"dist\": \"histogram\"}", "bins, or csv (with low, high, weight)", "",
            "bins: [[value, weight], ...] or [[low, high, weight], ...]"}}};
}
}  // namespace

std::vector<SchemaSection> workload_sections() {
  return {source_section(), trace_section(), generator_section(), arrivals_section(),
          distribution_section()};
}

}  // namespace medley
