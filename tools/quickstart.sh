#!/usr/bin/env bash
# From a bare Debian 12 to a first result: installs what is missing, builds, runs the default scenario.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

tools/install_deps.sh
tools/build.sh medley
exec build/medley run configs/scenarios/mixed_fleet.json --overwrite
