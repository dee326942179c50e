#!/usr/bin/env bash
# Installs the Debian packages medley is built with, those that are missing only.
#   tools/install_deps.sh          what building and testing need
#   tools/install_deps.sh --ci     clang-format too
# MEDLEY_SKIP_INSTALL=1 skips it (other systems: install these by other means).
set -euo pipefail

packages=(
  cmake g++ ninja-build python3
  libboost-dev libboost-iostreams-dev libfmt-dev libcli11-dev nlohmann-json3-dev libeigen3-dev
  zlib1g-dev doctest-dev
)
[[ "${1:-}" == "--ci" ]] && packages+=(clang-format-14)
[[ "${MEDLEY_SKIP_INSTALL:-0}" == 1 ]] && exit 0

if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
  echo "install_deps: this is no Debian system; install by other means: ${packages[*]}" >&2
  echo "install_deps: and set MEDLEY_SKIP_INSTALL=1" >&2
  exit 1
fi

missing=()
for package in "${packages[@]}"; do
  status=$(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null || true)
  [[ "$status" == installed ]] || missing+=("$package")
done
[[ ${#missing[@]} -eq 0 ]] && exit 0

as_root=()
if [[ $EUID -ne 0 ]]; then
  if ! command -v sudo >/dev/null; then
    echo "install_deps: neither root nor sudo; as root: apt-get install ${missing[*]}" >&2
    exit 1
  fi
  as_root=(sudo)
fi
echo "install_deps: installing ${missing[*]}" >&2
export DEBIAN_FRONTEND=noninteractive
"${as_root[@]}" apt-get update -qq </dev/null >&2
"${as_root[@]}" apt-get install -y -qq --no-install-recommends "${missing[@]}" </dev/null >&2
