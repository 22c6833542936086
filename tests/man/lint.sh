#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# usage: lint.sh MAN_DIRECTORY
# mandoc finds nothing wrong with the pages that were built. Neither does groff, if it is installed.
set -u
command -v mandoc >/dev/null || { echo "SKIPPED: no mandoc here"; exit 77; }
wrong=0

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
find "$1"/man* -name '*.gz' -type f -exec cp -t "$folder" {} +
gunzip "$folder"/*.gz || { echo "no pages in $1"; exit 1; }
# scdoc writes a .PP after headings and lists: superfluous, and harmless.
said=$(cd "$folder" && mandoc -T lint -W warning ./* | grep -v 'skipping paragraph macro')
if command -v groff >/dev/null; then said+=$(cd "$folder" && groff -man -t -ww -z -T utf8 ./* 2>&1); fi
[ -z "$said" ] || { echo "$said"; wrong=1; }
for link in "$1"/man*/*.gz; do [ -e "$link" ] || { echo "$link leads nowhere"; wrong=1; }; done
exit $wrong
