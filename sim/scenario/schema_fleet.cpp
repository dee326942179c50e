#include "sim/scenario/schema_sections.h"

namespace medley {

SchemaSection general_section() {
  return {
      "Scenario",
      "",
      {{"schema", "\"medley.scenario/1\"", "required", "version of this format"},
       {"name", "text", "the file's name", "names the result folder"},
       {"seed", "integer >= 0", "1",
        "of every random stream: arrivals, lengths, routing, sampling"},
       {"include", "list of files", "",
        "merged in order underneath this file, maps member by member; `null` takes a part away"},
       {"catalog", "list of folders", "", "of your own devices, links, node types, backends"},
       {"zoo", "list of folders", "", "of your own models"},
       {"assume_missing", "true/false", "false",
        "fill unknown power and price with class priors, marked `assumed`"},
       {"horizon", "time", "until the last request ends", "stop there; the rest is unfinished"},
       {"fast_forward", "true/false", "true",
        "advance unchanged decode batches in one piece (same results, much faster)"},
       {"tie_seed", "integer >= 0", "",
        "permutes simultaneous events; a result that depends on it is fragile"},
       {"comment", "anything", "", "ignored, anywhere; so are keys that start with `$`"}}};
}

SchemaSection nodes_section() {
  return {
      "Cluster",
      "A node group is `count` servers of one type: a catalogue type (`medley list nodes`), or one "
      "spelled out here.",
      {{"cluster.nodes.<name>.type", "name of a node type", "required, unless spelled out", ""},
       {"cluster.nodes.<name>.count", "integer >= 1", "1", "servers"},
       {"cluster.nodes.<name>.power_limit", "power", "the device's own",
        "limit of each device; only lower"},
       {"cluster.nodes.<name>.overrides.<field>", "the field's own unit", "",
        "any value of the catalogue's device: `power.context_idle`, `memory.bandwidth`, "
        "`peak.bf16`, `efficiency.gemm.compute.bf16`, `price.rent`, ...; nested or dotted; bare "
        "(class `assumed`) or `{\"value\", \"class\", \"source\"}`"},
       {"cluster.nodes.<name>.overrides.node.<field>", "the field's own unit", "",
        "the same for the server: `power.overhead`, `power.psu_efficiency`, `price.rent`, "
        "`price.capex`, `fabric.bandwidth`, `network`, `host.memory`, ..."},
       {"cluster.nodes.<name>.device", "name of a device", "", "spelled-out node: accelerator"},
       {"cluster.nodes.<name>.devices", "integer >= 1", "", "spelled-out node: how many"},
       {"cluster.nodes.<name>.fabric", "{kind, link, bandwidth}", "none",
        "kind: none, switch, mesh, ring, torus, host; link: a catalogue link"},
       {"cluster.nodes.<name>.all_reduce", "list of tables", "",
        "measured all-reduce times: {ranks, points: [{payload, time}]}"},
       {"cluster.nodes.<name>.host", "{link, cpu, cpus, memory}", "", "the server around them"},
       {"cluster.nodes.<name>.network", "bandwidth", "", "all NICs, per direction"},
       {"cluster.nodes.<name>.power", "{idle, overhead, psu_efficiency}", "",
        "of the server without its devices"},
       {"cluster.nodes.<name>.price", "{capex, rent}", "", "of the whole server"}}};
}

SchemaSection pools_section() {
  return {
      "Pools",
      "A pool is replicas of one model on one node group, in the words of the serving engines.",
      {{"pools.<name>.node", "name of a node group", "required", ""},
       {"pools.<name>.device", "accelerator, cpu", "accelerator",
        "cpu: on the host CPUs of those servers, whose cores and DRAM it shares with the host work "
        "of the accelerators' replicas"},
       {"pools.<name>.model", "name of a model, or a .json file", "required",
        "`medley list models`; or a Hugging Face config.json"},
       {"pools.<name>.backend", "name of a backend", "vllm-2026", "`medley list backends`"},
       {"pools.<name>.role", "unified, prefill, decode", "unified",
        "prefill pools compute prompts and hand their KV to decode pools of the same model"},
       {"pools.<name>.sharing.mode", "exclusive, time_slice, mps, mig", "exclusive",
        "replicas that share devices: kernels in turn, side by side, or fixed slices"},
       {"pools.<name>.sharing.fraction", "number 0..1", "1",
        "of each device's memory that a replica gets (mig: of its arithmetic and bandwidth too)"},
       {"pools.<name>.replicas", "integer >= 1", "1", ""},
       {"pools.<name>.data_parallel_size", "integer >= 1", "1", "multiplies replicas"},
       {"pools.<name>.tensor_parallel_size", "integer >= 1", "1",
        "whole nodes where it is larger than one"},
       {"pools.<name>.pipeline_parallel_size", "integer 1..64", "1",
        "stages may lie on different nodes"},
       {"pools.<name>.enable_expert_parallel", "true/false", "false", "whole experts per device"},
       {"pools.<name>.expert_parallel", "true/false", "", "short for the same"},
       {"pools.<name>.dtype", "auto, bf16, fp16, fp32", "auto", "auto: the checkpoint's"},
       {"pools.<name>.quantization", "auto, none, fp8, int8, w8a8, awq, gptq, int4, mxfp4, nvfp4",
        "auto", "fp8, int8 = w8a8 and nvfp4 compute in that format; the others only store it"},
       {"pools.<name>.kv_cache_dtype", "auto or a number format", "auto", "auto: `dtype`"},
       {"pools.<name>.allow_dtype_fallback", "true/false", "false",
        "compute in a wider format where the device lacks the wanted one"},
       {"pools.<name>.gpu_memory_utilization", "number 0..1", "the backend's",
        "share of device memory the engine may use"},
       {"pools.<name>.max_model_len", "integer", "the model's", "longest prompt + output"},
       {"pools.<name>.max_num_seqs", "integer", "the backend's", "most sequences in a step"},
       {"pools.<name>.max_num_batched_tokens", "integer", "the backend's",
        "most tokens in a step; without chunked prefill at least max_model_len"},
       {"pools.<name>.block_size", "integer", "the backend's", "tokens per KV block"},
       {"pools.<name>.num_gpu_blocks_override", "integer", "from memory", "KV blocks"},
       {"pools.<name>.enable_prefix_caching", "true/false", "the backend's", ""},
       {"pools.<name>.enable_chunked_prefill", "true/false", "the backend's",
        "false: same as scheduler `continuous`"},
       {"pools.<name>.scheduler", "chunked, continuous, static", "as above",
        "chunked: running first, prompts in pieces within the token budget; continuous: whole "
        "prompts join; static: a batch runs until its last request ends"},
       {"pools.<name>.scheduling_policy", "fcfs, priority", "fcfs",
        "priority: lower numbers first"}}};
}

SchemaSection engine_section() {
  return {"Step times",
          "Where the time of a step comes from, and the engine's overheads.",
          {{"pools.<name>.step_model.kind", "roofline, tables, constant", "roofline",
            "catalogue rates; measured kernel tables; constants"},
           {"pools.<name>.step_model.tables", "folder", "required for tables",
            "dense.csv, per_sequence.csv, attention.csv"},
           {"pools.<name>.step_model.decode_skew", "number 0..1", "the backend's",
            "weight of the longest sequence in decode attention"},
           {"pools.<name>.step_model.per_step", "time", "0", "constant: of every step"},
           {"pools.<name>.step_model.per_prompt_token", "time", "0", "constant"},
           {"pools.<name>.step_model.per_sequence", "time", "0", "constant"},
           {"pools.<name>.backend_overrides.host_mode", "serial, overlapped", "the backend's",
            "host work after the device's, or beside it"},
           {"pools.<name>.backend_overrides.host_per_step", "time", "the backend's", ""},
           {"pools.<name>.backend_overrides.host_per_sequence", "time", "the backend's", ""},
           {"pools.<name>.backend_overrides.sync_per_step", "time", "the backend's",
            "host work of every step that nothing hides"},
           {"pools.<name>.backend_overrides.sync_per_sequence", "time", "the backend's", ""},
           {"pools.<name>.backend_overrides.host_per_kernel", "time", "the backend's",
            "to issue one kernel outside a captured graph"},
           {"pools.<name>.backend_overrides.request_overhead", "time", "the backend's",
            "front end: added to TTFT and end-to-end time"},
           {"pools.<name>.backend_overrides.prompt_token_overhead", "time", "the backend's",
            "the same per token of the prompt: tokenisation"},
           {"pools.<name>.backend_overrides.graph_capture", "true/false", "the backend's", ""},
           {"pools.<name>.backend_overrides.graph_max_sequences", "integer", "the backend's", ""},
           {"pools.<name>.backend_overrides.kernels_fused", "number 0..1", "the backend's",
            "kernel launches over the unfused count"},
           {"pools.<name>.backend_overrides.context_reserve", "size", "the backend's",
            "device memory the engine needs besides weights, activations, KV"},
           {"pools.<name>.backend_overrides.activation_factor", "number", "the backend's",
            "peak activation bytes over tokens x hidden x element size"},
           {"pools.<name>.backend_overrides.decode_skew", "number 0..1", "the backend's", ""}}};
}

std::vector<SchemaSection> settings_sections() {
  return {
      {"Contention",
       "What replicas share (links, co-located devices) slows their steps down.",
       {{"contention.steps", "shared, alone", "shared", "alone: steps take what they take alone"},
        {"contention.fidelity", "folded, layered", "folded",
         "kernels, then messages of a whole step; or of every layer in turn (slower)"}}},
      {"Prefill and decode apart",
       "Pools of one model with roles `prefill` and `decode`. The KV of a prompt crosses the "
       "fabric; blocks for it are taken on the decode side before anything is sent, and kept on "
       "the prefill side until all of it has arrived, so a full decode pool holds prefill back.",
       {{"kv_transfer.overlap", "layer, chunk, none", "layer",
         "send each layer's KV when it is computed, each chunk's, or all after the prompt"},
        {"kv_transfer.first_token", "decode, prefill", "decode",
         "which replica makes it; decode: after the transfer and the prefill engine's answer, "
         "which "
         "passes its front end (vLLM); prefill: before the transfer"},
        {"kv_transfer.pairing.policy", "a routing policy", "least_outstanding_tokens",
         "picks the decode replica among those with room; its parameters go beside it"}}},
      {"Objectives",
       "By class; `default` serves classes without their own. A request meets its SLO when it "
       "meets "
       "every given part.",
       {{"slo.<class>.ttft", "time", "", "to the first token, from arrival"},
        {"slo.<class>.tpot", "time", "", "mean time per output token after the first"},
        {"slo.<class>.e2e", "time", "", "to the last token, from arrival"}}},
      {"Power, price, carbon",
       "",
       {{"power.pue", "number >= 1", "1", "site energy over IT energy"},
        {"price.energy", "USD/kWh", "", "electricity; absent: its cost stays blank"},
        {"price.carbon_intensity", "gCO2/kWh", "", "of electricity; absent: carbon stays blank"},
        {"price.basis", "rent, capex", "rent", "what hardware costs"},
        {"price.amortization", "time", "4 years", "with basis capex"}}},
      {"Measurement and reports",
       "",
       {{"measure.warmup", "time", "0 s", "requests that arrive earlier are not measured"},
        {"measure.window", "time", "to the end of the run", "length of the measurement"},
        {"report.interval", "time >= 1 ms", "1 s", "of timeseries.csv and energy.csv"},
        {"report.requests", "all, none, sample:N", "all", "rows of requests.csv"},
        {"report.trace", "true/false", "false", "write trace.json for Perfetto"}}}};
}

}  // namespace medley
