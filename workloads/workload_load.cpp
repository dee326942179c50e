#include <fmt/format.h>

#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "sim/core/error.h"
#include "sim/core/unit_text.h"
#include "workloads/generator_load.h"
#include "workloads/workload_spec.h"

namespace medley {

namespace {
using Json = nlohmann::ordered_json;

void load_column(ObjectReader& columns, const std::string& key, TraceFileSpec& spec) {
  const auto field = parse_trace_field(key);
  const Json* node = columns.raw(key);
  if (!field) {
    columns.problem(key, "is no field of a request", suggest(key, user_field_names()));
    return;
  }
  ColumnChoice choice;
  choice.field = *field;
  if (node != nullptr && node->is_string()) {
    choice.name = node->get<std::string>();
  } else {
    ObjectReader r = columns.object(key);
    choice.name = r.text_or("name", "");
    const std::string unit = r.choice_or("unit", {"ns", "us", "ms", "s", "wall", ""}, "");
    if (!unit.empty()) choice.unit = parse_time_unit(unit);
    if (choice.unit && *field != TraceField::kArrival && *field != TraceField::kDelay) {
      r.problem("unit", "only arrival and delay have a unit");
    }
    r.finish();
  }
  spec.columns.push_back(std::move(choice));
}

TraceFileSpec::Zero load_zero(ObjectReader& r, std::string_view key) {
  const std::string text = r.choice_or(key, {"drop", "clamp", "error"}, "drop");
  return text == "drop"    ? TraceFileSpec::Zero::kDrop
         : text == "clamp" ? TraceFileSpec::Zero::kClamp
                           : TraceFileSpec::Zero::kError;
}

TraceFileSpec load_trace_file(ObjectReader r, const SearchDirs& dirs) {
  TraceFileSpec spec;
  spec.file = r.text("file");
  spec.path = find_input_file(r, "file", spec.file, dirs);
  spec.format = r.choice_or("format", trace_format_names(), "auto");
  if (auto columns = r.maybe_object("columns")) {
    for (const std::string& key : columns->keys()) load_column(*columns, key, spec);
  }
  if (r.choice_or("on_bad_row", {"error", "drop"}, "error") == "drop") {
    spec.on_bad_row = TraceFileSpec::BadRow::kDrop;
  }
  spec.zero_input = load_zero(r, "zero_input");
  spec.zero_output = load_zero(r, "zero_output");
  spec.hash_block_tokens =
      static_cast<std::int32_t>(r.integer_or("hash_block_tokens", 0, 1, 1 << 20));
  spec.use_prefix_ids = r.choice_or("prefix_ids", {"use", "ignore"}, "use") == "use";
  const std::string sessions = r.choice_or("sessions", {"auto", "open", "closed"}, "auto");
  if (sessions == "open") spec.sessions = TraceFileSpec::Sessions::kOpen;
  if (sessions == "closed") spec.sessions = TraceFileSpec::Sessions::kClosed;
  spec.session_input_is_new = r.choice_or("session_input", {"full", "new"}, "full") == "new";
  if (r.choice_or("time_origin", {"first", "zero"}, "first") == "zero") {
    spec.origin = TraceFileSpec::Origin::kZero;
  }
  r.finish();
  return spec;
}

/// "name" or {"name": weight, ...}; calls `add(name, weight)`.
template <class Add>
void load_weights(ObjectReader& parent, std::string_view key, Add add) {
  const Json* node = parent.raw(key);
  if (node == nullptr || node->is_null()) return;
  if (!node->is_object()) {
    add(node->is_string() ? node->get<std::string>() : node->dump(), 1.0);
    return;
  }
  ObjectReader r = parent.object(key);
  double sum = 0.0;
  for (const std::string& name : r.keys()) {
    const double weight = r.number_or(name, 0.0, Range::non_negative());
    sum += weight;
    if (weight > 0.0) add(name, weight);
  }
  if (sum <= 0.0) parent.problem(key, "no share is above 0", R"({"a": 0.7, "b": 0.3})");
}

Shares load_shares(ObjectReader& r, std::string_view key, std::string_view rename_key,
                   bool from_trace) {
  Shares shares;
  const Json* node = r.raw(key);
  if (node != nullptr && !node->is_string() && !node->is_object()) {
    r.problem(key, "is neither a name nor {name: share}");
  } else {
    load_weights(r, key, [&](const std::string& name, double weight) {
      shares.weights.emplace_back(name, weight);
    });
  }
  r.raw(rename_key);  // known though absent
  if (!r.has(rename_key)) return shares;
  ObjectReader names = r.object(rename_key);
  for (const std::string& from : names.keys()) shares.renames.emplace_back(from, names.text(from));
  if (!shares.weights.empty() || !from_trace) {
    r.problem(rename_key, fmt::format("has no effect: names come from \"{}\"",
                                      from_trace ? std::string(key) : "generate"));
  }
  return shares;
}

void load_priority(ObjectReader& r, SourceSpec& source) {
  load_weights(r, "priority", [&](const std::string& name, double weight) {
    const ParsedCount n = parse_count(name);
    const bool fine = n.fault == TextFault::kNone || n.fault == TextFault::kNegative;
    if (!fine || n.value < INT16_MIN || n.value > INT16_MAX) {
      r.problem("priority", fmt::format("`{}` is not a whole number from -32768 to 32767", name));
      return;
    }
    source.priority.emplace_back(static_cast<std::int16_t>(n.value), weight);
  });
}

/// [["0 s", "0 s"], ["1 h", "30 min"]]: both ascending.
void load_warp(ObjectReader& r, TransformSpec& t) {
  const Json* node = r.raw("warp");
  if (node == nullptr) return;
  const auto bad = [&](const std::string& message) {
    t.warp.clear();
    r.problem("warp", message, R"([["0 s", "0 s"], ["1 h", "30 min"]], both columns ascending)");
  };
  if (!node->is_array() || node->size() < 2) return bad("is not a list of two or more knots");
  for (const Json& knot : *node) {
    const bool shaped =
        knot.is_array() && knot.size() == 2 && knot[0].is_string() && knot[1].is_string();
    if (!shaped) return bad("has a knot that is not two times");
    try {
      t.warp.emplace_back(parse_quantity<Seconds>(knot[0].get<std::string>()).value(),
                          parse_quantity<Seconds>(knot[1].get<std::string>()).value());
    } catch (const std::invalid_argument& error) {
      return bad(error.what());
    }
    const std::size_t n = t.warp.size();
    const bool ascending = n < 2 || (t.warp[n - 1].first > t.warp[n - 2].first &&
                                     t.warp[n - 1].second >= t.warp[n - 2].second);
    if (!ascending) return bad("does not ascend");
  }
}

TransformSpec load_transform(ObjectReader& r) {
  TransformSpec t;
  if (auto slice = r.maybe_object("slice")) {
    t.slice_from = slice->maybe_quantity<Seconds>("from");
    t.slice_to = slice->maybe_quantity<Seconds>("to", Range::positive());
    if (t.slice_from && t.slice_to && *t.slice_from >= *t.slice_to) {
      slice->problem("to", "is not after from");
    }
    slice->finish();
  }
  t.first = r.maybe_integer("first", 1, INT64_MAX / 2);
  t.thin = r.maybe_number("thin", Range::fraction());
  t.scale_input = r.number_or("scale_input", 1.0, Range::positive());
  t.scale_output = r.number_or("scale_output", 1.0, Range::positive());
  t.max_input_tokens = r.maybe_integer("max_input_tokens", 1, INT32_MAX);
  t.max_output_tokens = r.maybe_integer("max_output_tokens", 1, INT32_MAX);
  t.repeat = r.integer_or("repeat", 1, 1, 1'000'000);
  t.repeat_period = r.maybe_quantity<Seconds>("repeat_period", Range::positive());
  t.repeat_fresh_prefixes = r.boolean_or("repeat_fresh_prefixes", true);
  t.scale_rate = r.number_or("scale_rate", 1.0, Range::positive());
  if (const auto rate = r.maybe_quantity<PerSec>("target_rate", Range::positive())) {
    t.target_rate = rate->value();
    if (r.has("scale_rate")) r.problem("target_rate", "and scale_rate set the same thing");
  }
  load_warp(r, t);
  t.jitter = r.maybe_quantity<Seconds>("jitter", Range::positive());
  t.time_step = r.maybe_quantity<Seconds>("time_step", Range::positive());
  t.shift = r.quantity_or<Seconds>("shift", Seconds(0.0));
  if (t.repeat == 1 && (r.has("repeat_period") || r.has("repeat_fresh_prefixes"))) {
    r.problem("repeat", "is missing: repeat_... has no effect");
  }
  return t;
}

SourceSpec load_source(const std::string& name, ObjectReader& r, const SearchDirs& dirs) {
  SourceSpec source;
  source.name = name;
  source.pointer = r.pointer();
  const bool trace = r.has("trace");
  if (trace == r.has("generate")) {
    r.problem("", R"(needs either "trace" or "generate")",
              R"("trace": {"file": "..."} or "generate": {"arrivals": {...}, ...})");
  }
  if (auto file = r.maybe_object("trace")) source.trace = load_trace_file(*file, dirs);
  if (auto made = r.maybe_object("generate")) source.generate = load_generator(*made, dirs);
  if (auto arrivals = r.maybe_object("arrivals")) {
    source.arrivals = load_arrivals(*arrivals, dirs);
    if (!trace) r.problem("arrivals", "belongs inside \"generate\" here");
    if (source.trace) source.trace->times_not_needed = true;
  }
  source.model = load_shares(r, "model", "model_names", trace);
  source.slo_class = load_shares(r, "class", "class_names", trace);
  source.tenant = load_shares(r, "tenant", "tenant_names", trace);
  load_priority(r, source);
  source.transform = load_transform(r);
  return source;
}
}  // namespace

TraceRecipe load_trace_recipe(const std::string& path,
                              const std::vector<std::string>& search_dirs) {
  const Json node = load_json(path);
  Problems problems;
  ObjectReader reader(node, path, "", problems);
  TraceRecipe recipe;
  recipe.seed = static_cast<std::uint64_t>(reader.integer_or("seed", 1, 0, INT64_MAX));
  reader.maybe_text("description");
  if (reader.has("workload")) {
    SearchDirs dirs = {std::filesystem::path(path).parent_path().string()};
    dirs.insert(dirs.end(), search_dirs.begin(), search_dirs.end());
    ObjectReader workload = reader.object("workload");
    recipe.workload = load_workload(workload, dirs);
  } else {
    reader.problem("workload", "is missing");
  }
  reader.finish();
  problems.throw_if_any();
  return recipe;
}

WorkloadSpec load_workload(ObjectReader& reader, const std::vector<std::string>& search_dirs) {
  WorkloadSpec spec;
  spec.file = reader.file();
  if (!reader.has("sources")) {
    spec.sources.push_back(load_source("main", reader, search_dirs));
    reader.finish();
    return spec;
  }
  reader.each_member("sources", [&](const std::string& name, ObjectReader r) {
    spec.sources.push_back(load_source(name, r, search_dirs));
    r.finish();
  });
  if (spec.sources.empty()) reader.problem("sources", "is empty: a workload needs a source");
  reader.finish();
  return spec;
}

}  // namespace medley
