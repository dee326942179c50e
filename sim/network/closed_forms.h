#pragma once

#include <cstdint>

#include "sim/network/collective.h"

namespace medley {

/// Times of collectives on an idle, non-blocking, full-duplex network (every rank sends and
/// receives at B, a message of m bytes takes a + m/B, latencies after the bytes, so that a sender
/// goes on at once). n ranks, S bytes, k chunks. These are what an executed collective takes when
/// nothing contends, to rounding; and lower bounds of it when something does.
///
///   x = time of one message's bytes.
///
/// ring (all-reduce L = 2(n-1) steps, reduce-scatter and all-gather L = n-1; x = S/(n k B)):
///   T = (L-1) max(k x, x + a) + k x + a          k = 1: L (a + S/(n B))
/// ring broadcast (a chain; x = S/(k B)):
///   T = (n-1)(x + a) + (k-1) x
double ring_time(std::uint32_t steps, std::uint32_t ranks, std::uint32_t chunks, double bytes,
                 const LinkModel& m);
double chain_time(std::uint32_t hops, std::uint32_t chunks, double bytes, const LinkModel& m);
/// double binary tree: two trees with half of S each, every rank inside at most one of them (of an
/// odd number one rank is a leaf twice). d = floor(log2 n) their height, w = the most streams
/// through one port, each bounded to B/w, x = S w/(2 k B). Chunks go up and down in one pipeline:
///   all-reduce  T = 2 d (x + a) + (k-1) x
/// broadcast: trees over the n-1 others, d = floor(log2(n-1)) + 1:
///   T = d (x + a) + (k-1) x
double tree_time(std::uint32_t levels, std::uint32_t streams, std::uint32_t chunks, double bytes,
                 const LinkModel& m);
/// recursive halving-doubling: q = 2^p the largest power of two <= n, the n-q ranks beyond it fold
/// their S into a neighbour first and get the result back at the end:
///   all-reduce T = [n > q] 2 (a + S/B) + 2 p a + 2 (1 - 1/q) S/B
///   reduce-scatter, all-gather (n = q only): half of the last two terms
double halving_time(std::uint32_t ranks, bool all_reduce, double bytes, const LinkModel& m);
/// direct, each rank to each other, n-1 messages of m bytes, however many at a time:
///   T = a + (n-1) m/B
///   all-gather, reduce-scatter, all-to-all m = S/n; one-shot all-reduce and broadcast-to-all
///   m = S; two-shot all-reduce: reduce-scatter, then all-gather
///   send: a + S/B; broadcast from the root: a + (n-1) S/B
double direct_time(std::uint32_t messages, double bytes, const LinkModel& m);
/// hierarchical: G = n/g servers of g ranks, B' and a' inside, B and a for each rank between:
///   all-reduce T = 2 (g-1)(a' + S/(g B')) + 2 (G-1)(a + S/(g G B))
///   reduce-scatter, all-gather: half of it
double hierarchical_time(std::uint32_t ranks, std::uint32_t group, bool all_reduce, double bytes,
                         const LinkModel& m);
/// in-switch reduction: every rank's S up, the sum down, in k chunks, x = f S/(k B), a both hops
/// together; f = 1 (a switch that keeps the sum) or 1 + 1/n (NVLS: each rank reads its n-th of the
/// sum and writes it to all):
///   T = 2 x + a + (k-1) x
double in_switch_time(double factor, std::uint32_t chunks, double bytes, const LinkModel& m);

}  // namespace medley
