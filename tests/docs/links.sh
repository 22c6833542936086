#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# usage: links.sh ROOT
# Every relative link of the project's pages leads to an existing file, and every #fragment to a
# heading.
set -uo pipefail
cd "$1" || exit 1
broken=0

# The fragment of a heading: lower case, without punctuation, with hyphens for spaces.
headings_of() {
  sed -nE 's/^#+ +//p' "$1" | tr '[:upper:]' '[:lower:]' | sed -E 's/[^[:alnum:] _-]//g; s/ /-/g'
}

while IFS=: read -r page target; do
  file=${target%%#*} fragment=
  case $target in *#*) fragment=${target#*#} ;; esac
  path=$page
  [ -z "$file" ] || path=$(dirname "$page")/$file
  if [ ! -e "$path" ] ||
    { [ -n "$fragment" ] && ! headings_of "$path" | grep -qxF -- "$fragment"; }; then
    echo "$page: $target leads nowhere"
    broken=1
  fi
done < <(grep -noE '\]\([^)]+\)' README.md CONTRIBUTING.md SECURITY.md docs/*.md captures/*.md tools/examples/*.md |
  sed -E 's/^([^:]+):[0-9]+:\]\((.*)\)$/\1:\2/' | grep -v ':https\?://')
exit $broken
