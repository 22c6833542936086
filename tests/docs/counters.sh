#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# usage: counters.sh ROOT [--print]
# docs/operations.md has a row for every counter of the code, with the text of the code, and no other
# row. --print prints the rows of the Node's counters.
set -euo pipefail
cd "$1"
page=docs/operations.md

# D(BadKey, bad_key, frames, "D_Key is wrong") in counters.h -> | `bad_key` | D_Key is wrong | ● |; an X
# in the place of the D: it drops no frame.
node_rows() {
  awk '
    /^ *\/\// { next }
    match($0, /[XD]\([A-Z][A-Za-z]*, *[a-z_]+, *[a-z]+, *"/) {
      drops = substr($0, RSTART, 1) == "D"
      split(substr($0, RSTART + 2), part, /, */)
      text = $0
      sub(/^[^"]*"/, "", text)
      sub(/".*$/, "", text)
      printf "| `%s` | %s | %s|\n", part[2], text, drops ? "● " : ""
    }' stp/counters.h
}

# Names of the counters of a link, its service and stpd itself.
other_names() { sed -nE 's/^  [XG]\([a-z_]+, +([a-z_]+), .*$/\1/p' stp/counters.h; }

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
