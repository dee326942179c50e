#!/usr/bin/env bash
# Installs what is missing, builds Release into build/ and runs every test.
# Arguments go to ctest: tools/test.sh -L unit
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

tools/install_deps.sh
tools/build.sh
exec ctest --test-dir build --output-on-failure --no-tests=error --parallel "$(nproc)" "$@"
