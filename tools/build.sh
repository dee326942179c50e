#!/usr/bin/env bash
# Configures Release into build/ and builds it: tools/build.sh [target...]
# MEDLEY_CMAKE_ARGS adds cmake arguments, MEDLEY_JOBS sets the number of compilers at once.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

if [[ -z "${CMAKE_CXX_COMPILER_LAUNCHER:-}" ]] && command -v ccache >/dev/null; then
  export CMAKE_CXX_COMPILER_LAUNCHER=ccache
fi
generator=()
[[ -f build/CMakeCache.txt ]] || generator=(-G Ninja)  # an existing tree keeps its own
read -r -a extra <<<"${MEDLEY_CMAKE_ARGS:-}"
cmake -S . -B build "${generator[@]}" -DCMAKE_BUILD_TYPE=Release "${extra[@]}"

# One compiler takes up to 1.2 GB.
memory_kb=$(awk '/^MemAvailable:/ {print $2}' /proc/meminfo 2>/dev/null || echo 4000000)
jobs=$((memory_kb / 1200000))
cores=$(nproc)
((jobs > cores)) && jobs=$cores
((jobs < 1)) && jobs=1
targets=()
[[ $# -gt 0 ]] && targets=(--target "$@")
cmake --build build --parallel "${MEDLEY_JOBS:-$jobs}" "${targets[@]}"
