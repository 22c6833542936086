#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# usage: format.sh ROOT
# C and C++ sources are formatted as .clang-format says. Other versions of clang-format format
# differently, so only version 14 counts.
set -uo pipefail
cd "$1" || exit 1
command -v clang-format-14 >/dev/null || {
  echo "clang-format-14 is missing: apt-get install --no-install-recommends clang-format-14"
  exit 77
}
mapfile -d '' -t sources < <(find stp dpdk_port libst tools tests captures \
  -name 'build*' -prune -o -type f \( -name '*.cpp' -o -name '*.h' -o -name '*.c' \) -print0)
[ "${#sources[@]}" -gt 0 ] || { echo "no sources in $1"; exit 1; }
wrong=$(clang-format-14 --dry-run "${sources[@]}" 2>&1 | sed -n 's/: warning: code should be.*//p' | sort -u)
[ -z "$wrong" ] && exit 0
printf '%s\n' "$wrong"
echo "Lines of these places differ from what clang-format writes. Run clang-format-14 -i FILE."
exit 1
