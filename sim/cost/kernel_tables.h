#pragma once

#include <string>
#include <vector>

#include "workloads/step_ops.h"

namespace medley {

/// Measured kernel times of one model on one device, as a profiler writes them: a folder with
///   dense.csv         layer,tokens,time_us      one row per (kernel kind, token count)
///   per_sequence.csv  layer,sequences,time_us   lm_head and sampler
///   attention.csv     prefill_chunk,kv_prefill,n_decode,kv_decode,time_us
/// A step of L layers takes
///   L (2 layernorm + qkv_proj + rotary_emb + attention + o_proj + gate_up_proj + act_fn +
///   down_proj)
///   + embedding + final_layernorm [tokens] + lm_head + sampler [sequences needing logits],
/// attention looked up at (sum of chunks, sum of tokens cached before each chunk, decodes, mean
/// KV). Interpolation is linear between the points that exist, axis by axis; below the first point
/// its value holds; above the last the line through the last two continues.
class KernelTables {
 public:
  /// Throws InputError (missing file or layer, bad row with its line).
  static KernelTables load(const std::string& directory);

  double dense_s(double tokens, int layers) const;  ///< all layers, plus embedding and final norm
  double per_sequence_s(double sequences) const;
  double attention_s(double chunk, double prior, double decodes,
                     double mean_kv) const;  ///< one layer
  // Inside the grid: between the first and the last point of every axis that has more than one.
  bool dense_inside(double tokens) const;
  bool per_sequence_inside(double sequences) const;  ///< none: inside
  bool attention_inside(double chunk, double prior, double decodes, double kv) const;
  /// The piece of attention_s(0, 0, decodes, kv) around kv: value, slope per token, and the upper
  /// end of the interval on which it is linear (infinity past the last point).
  struct Piece {
    double value_s = 0.0;
    double slope_s = 0.0;
    double end_kv = 0.0;
  };
  Piece decode_piece(double decodes, double mean_kv) const;

 private:
  struct Curve {  ///< piecewise-linear in one variable
    std::vector<double> x, y;
    double at(double v) const;
    bool inside(double v) const { return x.size() == 1 || (v >= x.front() && v <= x.back()); }
    Piece piece(double v) const;
  };
  /// One axis level of the attention table: keys ascending, children by key.
  template <class Child>
  struct Axis {
    std::vector<double> keys;
    std::vector<Child> children;
  };
  using Decodes = Axis<Curve>;
  using Prior = Axis<Decodes>;

  Curve layer_;  ///< sum of the per-layer dense kernels
  Curve once_;   ///< embedding + final_layernorm
  Curve sequence_;
  Axis<Prior> attention_;
};

}  // namespace medley
