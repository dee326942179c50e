#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "workloads/workload_spec.h"

namespace medley {

/// Applies `spec` in the order of its declaration and keeps the account. Random streams
/// "<source>/thin" and "<source>/jitter". Throws InputError when nothing is left.
void transform_trace(Trace& trace, const TransformSpec& spec, const std::string& source,
                     std::uint64_t seed);

/// One trace out of several, sorted by (arrival, source, row); rows are numbered through. With
/// `distinct_prefixes` prefix ids of different sources never meet. Differing block sizes are
/// brought to their greatest common divisor.
Trace superpose(std::vector<Trace> traces, bool distinct_prefixes = true);

/// Splits each prefix id into ids of `block` tokens; `block` divides the trace's own size.
void reblock(Trace& trace, std::int32_t block);

/// Mean rate of the requests that arrive on the clock: (n - 1) / (last - first) [1/s]; 0 when that
/// says nothing.
double mean_rate(const Trace& trace);

}  // namespace medley
