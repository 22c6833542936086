#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# usage: sentences.sh ROOT
# Finds remains of editing in the pages: a sentence of one small word at the end of a line, a
# heading that follows text without an empty line.
set -euo pipefail
cd "$1"
found=$(awk '
  FNR == 1 { code = 0; before = "" }
  /^ *```/ { code = !code }
  code { next }
  /[`)a-z]\. [a-z]+\.?$/ { print FILENAME ":" FNR ": a sentence of one small word: " $0 }
  /^[a-z]+\. / && before == "" { print FILENAME ":" FNR ": a sentence of one small word: " $0 }
  /^#/ && before != "" && before !~ /^<!--/ { print FILENAME ":" FNR ": no empty line before: " $0 }
  { before = $0 }' README.md CHANGELOG.md CONTRIBUTING.md SECURITY.md docs/*.md)
[ -z "$found" ] && exit 0
printf '%s\n' "$found"
exit 1
