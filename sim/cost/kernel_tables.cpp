#include "sim/cost/kernel_tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <map>

#include "sim/core/csv.h"
#include "sim/core/error.h"
#include "sim/core/text_file.h"

namespace medley {

namespace {

/// Bracketing interval of v in ascending keys and the weight of its upper end (clamped below,
/// extrapolating above).
struct Bracket {
  std::size_t low = 0;
  std::size_t high = 0;
  double weight = 0.0;
};
Bracket bracket(const std::vector<double>& keys, double v) {
  if (keys.size() == 1 || v <= keys.front()) return {0, 0, 0.0};
  std::size_t high =
      static_cast<std::size_t>(std::lower_bound(keys.begin(), keys.end(), v) - keys.begin());
  high = std::min(high, keys.size() - 1);
  const std::size_t low = high - 1;
  return {low, high, (v - keys[low]) / (keys[high] - keys[low])};
}

double parse_cell(const std::string& text, const std::string& path, std::int64_t line) {
  double value = 0.0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value) ||
      value < 0) {
    throw InputError(path, fmt::format("line {}", line),
                     fmt::format("\"{}\" is no non-negative number", text));
  }
  return value;
}

/// Calls row(label, numbers) for each data row; the header must equal `header`.
template <class Row>
void read_table(const std::string& path, const std::string& header, bool labelled, Row row) {
  LineReader reader(path);
  std::string_view line;
  if (!reader.next(line) || line != header) {
    throw InputError(path, "line 1", "unexpected header", "expected \"" + header + "\"");
  }
  const auto columns = static_cast<std::size_t>(std::count(header.begin(), header.end(), ',')) + 1;
  std::vector<std::string> cells;
  std::vector<double> numbers;
  while (reader.next(line)) {
    if (line.empty()) continue;
    if (!split_csv(line, cells) || cells.size() != columns) {
      throw InputError(path, fmt::format("line {}", reader.line_number()),
                       fmt::format("expected {} cells, found {}", columns, cells.size()));
    }
    numbers.clear();
    for (std::size_t i = labelled ? 1 : 0; i < cells.size(); ++i) {
      numbers.push_back(parse_cell(cells[i], path, reader.line_number()));
    }
    row(cells[0], numbers);
  }
}

using Layers = std::map<std::string, std::map<double, double>>;  // layer -> x -> us

Layers read_layers(const std::string& path, const std::string& header) {
  Layers layers;
  read_table(path, header, true, [&](const std::string& name, const std::vector<double>& n) {
    layers[name][n[0]] = n[1] * 1e-6;
  });
  return layers;
}

double interpolate(const std::map<double, double>& points, double x) {
  auto high = points.lower_bound(x);
  if (high == points.begin()) return high->second;
  if (high == points.end()) --high;
  const auto low = std::prev(high);
  return low->second + (high->second - low->second) * (x - low->first) / (high->first - low->first);
}

}  // namespace

double KernelTables::Curve::at(double v) const {
  const Bracket b = bracket(x, v);
  return y[b.low] + (y[b.high] - y[b.low]) * b.weight;
}

KernelTables::Piece KernelTables::Curve::piece(double v) const {
  if (x.size() == 1) return {y[0], 0.0, std::numeric_limits<double>::infinity()};
  if (v < x.front()) return {y[0], 0.0, x.front()};
  std::size_t high = static_cast<std::size_t>(std::upper_bound(x.begin(), x.end(), v) - x.begin());
  const bool past = high >= x.size() - 1;
  high = std::min(high, x.size() - 1);
  const std::size_t low = high - 1;
  const double slope = (y[high] - y[low]) / (x[high] - x[low]);
  return {y[low] + slope * (v - x[low]), slope,
          past ? std::numeric_limits<double>::infinity() : x[high]};
}

KernelTables KernelTables::load(const std::string& directory) {
  KernelTables t;
  const auto combine = [&](const Layers& layers, const std::string& path,
                           const std::vector<std::pair<std::string, double>>& parts) {
    Curve curve;
    std::map<double, double> grid;
    for (const auto& [name, factor] : parts) {
      const auto it = layers.find(name);
      if (it == layers.end()) {
        std::vector<std::string> known;
        for (const auto& [layer, points] : layers) known.push_back(layer);
        throw InputError(path, "", fmt::format("no rows for layer \"{}\"", name),
                         suggest(name, known));
      }
      for (const auto& [x, y] : it->second) grid[x] = 0.0;
    }
    for (const auto& [x, unused] : grid) {
      double sum = 0.0;
      for (const auto& [name, factor] : parts) sum += factor * interpolate(layers.at(name), x);
      curve.x.push_back(x);
      curve.y.push_back(sum);
    }
    return curve;
  };
  const std::string dense = directory + "/dense.csv";
  const Layers dense_layers = read_layers(dense, "layer,tokens,time_us");
  t.layer_ = combine(dense_layers, dense,
                     {{"layernorm", 2.0},
                      {"qkv_proj", 1.0},
                      {"rotary_emb", 1.0},
                      {"o_proj", 1.0},
                      {"gate_up_proj", 1.0},
                      {"act_fn", 1.0},
                      {"down_proj", 1.0}});
  t.once_ = combine(dense_layers, dense, {{"embedding", 1.0}, {"final_layernorm", 1.0}});
  const std::string sequence = directory + "/per_sequence.csv";
  t.sequence_ = combine(read_layers(sequence, "layer,sequences,time_us"), sequence,
                        {{"lm_head", 1.0}, {"sampler", 1.0}});

  std::map<double, std::map<double, std::map<double, std::map<double, double>>>> grid;
  const std::string attention = directory + "/attention.csv";
  read_table(attention, "prefill_chunk,kv_prefill,n_decode,kv_decode,time_us", false,
             [&](const std::string&, const std::vector<double>& n) {
               grid[n[0]][n[1]][n[2]][n[3]] = n[4] * 1e-6;
             });
  if (grid.empty()) throw InputError(attention, "", "the table has no rows");
  for (const auto& [chunk, priors] : grid) {
    Prior prior_axis;
    for (const auto& [prior, decodes] : priors) {
      Decodes decode_axis;
      for (const auto& [n, kv] : decodes) {
        Curve curve;
        for (const auto& [x, y] : kv) {
          curve.x.push_back(x);
          curve.y.push_back(y);
        }
        decode_axis.keys.push_back(n);
        decode_axis.children.push_back(std::move(curve));
      }
      prior_axis.keys.push_back(prior);
      prior_axis.children.push_back(std::move(decode_axis));
    }
    t.attention_.keys.push_back(chunk);
    t.attention_.children.push_back(std::move(prior_axis));
  }
  return t;
}

double KernelTables::dense_s(double tokens, int layers) const {
  return layers * layer_.at(tokens) + once_.at(tokens);
}
double KernelTables::per_sequence_s(double sequences) const {
  return sequences > 0 ? sequence_.at(sequences) : 0.0;
}

namespace {
template <class AxisT, class Leaf>
double along(const AxisT& axis, double v, Leaf leaf) {
  const Bracket b = bracket(axis.keys, v);
  const double low = leaf(axis.children[b.low]);
  if (b.high == b.low || b.weight == 0.0) return low;
  return low + (leaf(axis.children[b.high]) - low) * b.weight;
}
}  // namespace

double KernelTables::attention_s(double chunk, double prior, double decodes, double mean_kv) const {
  return along(attention_, chunk, [&](const Prior& p) {
    return along(p, prior, [&](const Decodes& d) {
      return along(d, decodes, [&](const Curve& c) { return c.at(mean_kv); });
    });
  });
}

bool KernelTables::dense_inside(double tokens) const {
  return layer_.inside(tokens) && once_.inside(tokens);
}
bool KernelTables::per_sequence_inside(double sequences) const {
  return sequences <= 0 || sequence_.inside(sequences);
}

namespace {
/// `leaf` holds for both children around v, and v lies within the axis.
template <class AxisT, class Leaf>
bool all_inside(const AxisT& axis, double v, Leaf leaf) {
  if (axis.keys.size() > 1 && (v < axis.keys.front() || v > axis.keys.back())) return false;
  const Bracket b = bracket(axis.keys, v);
  return (b.weight >= 1.0 || leaf(axis.children[b.low])) &&
         (b.weight <= 0.0 || leaf(axis.children[b.high]));
}
}  // namespace

bool KernelTables::attention_inside(double chunk, double prior, double decodes, double kv) const {
  return all_inside(attention_, chunk, [&](const Prior& p) {
    return all_inside(p, prior, [&](const Decodes& d) {
      return all_inside(d, decodes, [&](const Curve& c) { return c.inside(kv); });
    });
  });
}

KernelTables::Piece KernelTables::decode_piece(double decodes, double mean_kv) const {
  // Chunk 0 has the single prior 0: only the decode and KV axes remain.
  const Decodes& axis = attention_.children.front().children.front();
  const Bracket b = bracket(axis.keys, decodes);
  const Piece low = axis.children[b.low].piece(mean_kv);
  if (b.high == b.low) return low;
  const Piece high = axis.children[b.high].piece(mean_kv);
  return {low.value_s + (high.value_s - low.value_s) * b.weight,
          low.slope_s + (high.slope_s - low.slope_s) * b.weight, std::min(low.end_kv, high.end_kv)};
}

}  // namespace medley
