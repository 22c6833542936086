#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# usage: layout_complete.sh ROOT
# Every constant and every field of a structure in the public C headers is in tests/abi/layout_*.c.
set -euo pipefail
cd "$1"
headers=(libst/include/stp/*.h)
layouts=(tests/abi/layout_*.c)
. tests/lib/c_headers.sh
missing=0

constants() { # enumerators, and macros that are numbers
  without_comments "${headers[@]}" | grep -oE '(^|[{,]) *STM?_[A-Z0-9_]+ *(=|,|$)' |
    grep -oE 'STM?_[A-Z0-9_]+'
  sed -nE 's/^#define (STM?_[A-Z0-9_]+) +[0-9(].*/\1/p' "${headers[@]}"
}

fields() { # TYPE FIELD
  without_comments "${headers[@]}" | awk '
    /^typedef struct [a-z_]+ \{/ { inside = 1; next }
    inside && /^\}/ {
      type = $2
      sub(/;.*/, "", type)
      for (i = 1; i <= count; ++i) print type, fields[i]
      inside = count = 0
    }
    inside {
      while (match($0, /[a-z][a-z0-9_]*(\[[^]]*\])?[,;]/)) {
        field = substr($0, RSTART, RLENGTH)
        sub(/[[,;].*/, "", field)
        fields[++count] = field
        $0 = substr($0, RSTART + RLENGTH)
      }
    }'
}

text=$(cat "${layouts[@]}")
values=0 members=0
while read -r constant; do
  values=$((values + 1))
  [[ $text == *"VALUE($constant"[!A-Za-z0-9_]* ]] || { echo "no VALUE($constant, ...)"; missing=1; }
done < <(constants | sort -u)
while read -r type field; do
  members=$((members + 1))
  [[ $text == *"FIELD($type, $field,"* ]] || { echo "no FIELD($type, $field, ...)"; missing=1; }
done < <(fields)
if [ "$values" -lt 40 ] || [ "$members" -lt 40 ]; then
  echo "headers not understood"
  exit 1
fi
[ $missing -eq 0 ] || echo "${layouts[*]} say what may not change within a SONAME: add these lines"
exit $missing
