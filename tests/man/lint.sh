#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# usage: lint.sh MAN_DIRECTORY
# mandoc finds nothing wrong with the pages that were built. Neither does groff, if it is installed.
set -u
command -v mandoc >/dev/null || { echo "SKIPPED: no mandoc here"; exit 77; }
wrong=0

for page in "$1"/man*/*.gz; do
  [ ! -L "$page" ] || continue
  # scdoc writes a .PP after headings and lists: superfluous, and harmless.
  said=$(zcat "$page" | mandoc -T lint -W warning | grep -v 'skipping paragraph macro')
  if command -v groff >/dev/null; then
    said+=$(zcat "$page" | groff -man -t -ww -z -T utf8 2>&1)
  fi
  [ -z "$said" ] || { echo "$page: $said"; wrong=1; }
done
for link in "$1"/man*/*.gz; do [ -e "$link" ] || { echo "$link leads nowhere"; wrong=1; }; done
exit $wrong
