#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# usage: links.sh ROOT
# Every relative link of the project's pages leads to an existing file, and every #fragment to a
# heading.
set -uo pipefail
cd "$1" || exit 1
broken=0
complain() {
  echo "$1: $2 leads nowhere"
  broken=1
}

# By "FILE#FRAGMENT": the page and the target that ask for it.
declare -A asked=() headings=() files=()
count=0
while IFS=: read -r page target; do
  count=$((count + 1))
  path=$page
  if [ -n "${target%%#*}" ]; then
    path=${target%%#*}
    case $page in */*) path=${page%/*}/$path ;; esac
  fi
  if [ ! -e "$path" ]; then
    complain "$page" "$target"
  elif [[ $target == *#* ]]; then
    asked["$path#${target#*#}"]+="$page $target"$'\n'
    files[$path]=1
  fi
done < <(grep -noE '\]\([^)]+\)' README.md CONTRIBUTING.md SECURITY.md docs/*.md captures/*.md tools/examples/*.md |
  sed -E 's/^([^:]+):[0-9]+:\]\((.*)\)$/\1:\2/' | grep -v ':https\?://')
[ "$count" -ge 100 ] || { echo "only $count links found"; exit 1; }

# The fragment of a heading: lower case, without punctuation, with hyphens for spaces.
while IFS= read -r heading; do headings[$heading]=1; done < <(awk '/^#+ / {
    sub(/^#+ +/, "")
    fragment = tolower($0)
    gsub(/[^a-z0-9 _-]/, "", fragment)
    gsub(/ /, "-", fragment)
    print FILENAME "#" fragment
  }' "${!files[@]}")

for each in "${!asked[@]}"; do
  [ -z "${headings[$each]-}" ] || continue
  while read -r page target; do complain "$page" "$target"; done < <(printf '%s' "${asked[$each]}")
done
exit $broken
