#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# usage: counters.sh ROOT [--print]
# docs/operations.md has a row for every counter there is, in the words of the code, and none that
# is not. --print: the rows of the Node's counters, to put them there.
set -euo pipefail
cd "$1"
page=docs/operations.md

# X(BadKey, bad_key, "D_Key is wrong") in counters.h, and the switch of counters.cpp that says what
# drops a frame -> | `bad_key` | D_Key is wrong | ● |
node_rows() {
  awk '
    FILENAME ~ /\.cpp$/ {
      if (match($0, /case Counter::k[A-Za-z]+:/))
        drops[substr($0, RSTART + 15, RLENGTH - 16)] = 1
      next
    }
    match($0, /X\([A-Z][A-Za-z]*, *[a-z_]+, *"/) {
      split(substr($0, RSTART + 2), part, /, */)
      text = $0
      sub(/^[^"]*"/, "", text)
      sub(/".*$/, "", text)
      printf "| `%s` | %s | %s|\n", part[2], text, (part[1] in drops) ? "● " : ""
    }' stp/counters.cpp stp/counters.h
}

# Names that a link, or stpd itself, counts under: {"tx_kept", ...}, {"clients", ...}.
other_names() {
  sed -E 's/\{"/\n&/g' dpdk_port/dpdk/ethdev_port.cpp dpdk_port/loop_port.cpp |
    sed -nE 's/^\{"([a-z_]+)", [a-z_]+[-.()a-z_>]*\}.*$/\1/p'
  sed -E 's/\{"/\n&/g' tools/stpd/served_link.cpp | sed -nE 's/^\{"([a-z_]+)", .*$/\1/p'
}

if [ "${2-}" = --print ]; then
  node_rows
  exit
fi

section() { sed -n "/^<!-- counters: $1 -->/,/^<!-- end of counters -->/p" "$page"; }
[ "$(node_rows | wc -l)" -gt 50 ] && [ "$(other_names | wc -l)" -gt 15 ] ||
  { echo "the counters are no longer found in the sources"; exit 1; }
echo "< $page, > the code:"
diff <(section node | grep '^| `') <(node_rows)
diff <(section others | sed -nE 's/^(\| `[^|]*)\|.*/\1/p' | grep -oE '[a-z_]{2,}' | sort -u) <(other_names | sort -u)
echo "the same"
