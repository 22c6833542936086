#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# usage: tutorial_picture.sh ROOT BUILD [--update]
# The picture and the text of a trace in docs/tutorial.md are the output of `stp-replay ladder` and tshark for the
# capture that the page names. --update copies them to the page.
set -euo pipefail
cd "$1"
replay=$2/bin/stp-replay
page=docs/tutorial.md picture=docs/tutorial/trace.svg capture=captures/write.pcapng
command -v tshark >/dev/null || { echo "SKIPPED: no tshark here"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export LC_ALL=C.UTF-8 TZ=UTC HOME=$work XDG_CONFIG_HOME=$work

# The most important columns, cut to the width of a page.
tshark -X lua_script:tools/wireshark/stp-st.lua -r "$capture" -T fields \
  -e frame.number -e eth.src -e _ws.col.Protocol -e _ws.col.Info 2>/dev/null |
  awk -F '\t' '{ printf "%2s %s %s %s\n", $1, $2, $3, $4 }' | cut -c 1-108 >"$work/text"
"$replay" ladder "$capture" -o "$work/picture.svg" >"$work/said"

# Prints the page with the text between the fences that follow its mark.
grep -qxF "<!-- tshark: $capture -->" "$page" || { echo "$page has no place for the text"; exit 1; }
awk -v mark="<!-- tshark: $capture -->" -v text="$work/text" '
  inside && !/^```$/ { next }
  { print; inside = 0 }
  $0 == mark { marked = 1; next }
  marked && /^```$/ {
    while ((getline line < text) > 0) print line
    inside = 1
    marked = 0
  }' "$page" >"$work/page"
if [ "${3-}" = --update ]; then
  cp "$work/page" "$page"
  cp "$work/picture.svg" "$picture"
fi
[ "$(wc -l <"$work/text")" -eq 11 ] || { echo "tshark does not know the frames of $capture"; exit 1; }
diff "$page" "$work/page"
diff "$picture" "$work/picture.svg"
echo "the same"
