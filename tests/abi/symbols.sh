#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# usage: symbols.sh NM LIBRARY LIST [--update]
# The library exports the calls of LIST with the versions given there, and nothing else. A missing
# call breaks programs. --update adds new ones to LIST.
set -euo pipefail
list=$3

exported() {
  "$1" --dynamic --defined-only --with-symbol-versions "$2" | awk '$2 != "A" { print $NF }' |
    LC_ALL=C sort
}

if [ "${4-}" = --update ]; then exported "$1" "$2" >"$list"; fi
diff "$list" <(exported "$1" "$2") || {
  echo "exports differ from $list: '<' are gone, '>' are new (tests/abi/symbols.sh ... --update)"
  exit 1
}
echo "$(wc -l <"$list") calls"
