#pragma once

// NCCL's tuning constants, retyped. Source: NVIDIA/nccl src/graph/tuning.cc and src/graph/topo.h
// @5067397 (2026-06-11); class datasheet (the vendor's own). Rows by algorithm and protocol are in
// the order ring LL, LL128, Simple, tree LL, LL128, Simple, NVLS Simple.

namespace medley::nccl {

inline constexpr int kRows = 7;
inline constexpr double kNone = -1.0;

inline constexpr double kBaseLatency[kRows] = {6.6e-6,  14.0e-6, 8.4e-6, 6.8e-6,
                                               14.0e-6, 8.4e-6,  0.0};
inline constexpr double kNvlinkLatency[kRows] = {0.6e-6,  1.9e-6, 3.4e-6, 0.6e-6,
                                                 1.25e-6, 4.0e-6, 25e-6};
inline constexpr double kPcieLatency[kRows] = {1.0e-6, 2.5e-6, 5.7e-6, 1.0e-6,
                                               1.9e-6, 4.0e-6, kNone};
inline constexpr double kNetLatency[kRows] = {2.7e-6, 4.0e-6,  14.0e-6, 5.0e-6,
                                              8.5e-6, 14.0e-6, 18e-6};

/// By generation: Volta, Ampere, Hopper, Blackwell.
struct Generation {
  const char* fabric;    ///< catalogue link
  double link;           ///< effective rate of one NVLink, per direction [B/s]
  int links;             ///< of the largest device of that fabric
  double ll_ceiling[3];  ///< of LL's bandwidth on 1, 2, >= 3 nodes [B/s]
  double nvls;           ///< efficiency; 0: cannot
};
inline constexpr Generation kGenerations[] = {
    {"NVLink2 link", 20.0e9, 6, {39.0e9, 39.0e9, 20.4e9}, 0.0},
    {"NVLink3", 20.0e9, 12, {87.7e9, 22.5e9, 19.0e9}, 0.0},
    {"NVLink4", 20.6e9, 18, {141e9, 45e9, 35e9}, 0.85},
    {"NVLink5", 40.1e9, 18, {282e9, 90e9, 70e9}, 0.74},
};

inline constexpr double kLl128Share = 0.92;
inline constexpr double kTreeShare = 0.92;
inline constexpr double kTreeLl128Share = 7.0 / 9.0;  ///< on one node
inline constexpr double kTreeLlShare = 1.0 / 3.8;
inline constexpr double kNvlsShare = 5.0 / 6.0;
inline constexpr int kNvlsRanks = 5;          ///< at least
inline constexpr double kNetLlPenalty = 1.8;  ///< of inner LL steps when there are several nodes
inline constexpr double kRingPlateau = 1.4;   ///< of Simple rings between nodes above a size
inline constexpr double kPlateauBytes = 65536.0 / 16.0;  ///< per rank

}  // namespace medley::nccl
