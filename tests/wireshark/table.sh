#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# usage: table.sh ROOT PROGRAM
# The dissector has the same names of operations and fields as the table of operations.
set -euo pipefail
made=$("$2")
there=$(sed -n '/^-- Made by stp-dissector-table from/,/^-- Made by stp-dissector-table: end/p' \
  "$1/tools/wireshark/stp-st.lua")
[ "$(wc -l <<<"$made")" -gt 20 ] || { echo "the table has too few lines"; exit 1; }
diff <(echo "$there") <(echo "$made") ||
  { echo "to mend it: build/bin/stp-dissector-table --write tools/wireshark/stp-st.lua"; exit 1; }
echo "the same"
