#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# usage: rooms.sh ROOT
# A subject has one file, and a file all of its subject. So the product has few files, few of them are
# short, and few headers serve one file alone. It fails beyond these limits; --list prints those headers.
set -uo pipefail
most_files=560 least_median=110 most_short=10 short=40 most_single=40
cd "${1:?usage: rooms.sh ROOT [--list]}" || exit 1

mapfile -t files < <(find stp dpdk_port libst tools -type f \( -name '*.cpp' -o -name '*.h' -o -name '*.c' \) | sort)
[ "${#files[@]}" -gt 0 ] || { echo "no sources in $1"; exit 1; }

# An include names a header from the root, from beside the file, or, between < and >, from a folder of public headers. Its own
# source does not count.
single=$(awk '
  function stem(name) { sub(/\.[^.\/]*$/, "", name); return name }
  BEGIN { for (i = 1; i < ARGC; ++i) known[ARGV[i]] = 1; split("libst/include/ libst/udapl/dat1/include/", places, " ") }
  /^[ \t]*#[ \t]*include[ \t]*["<]/ {
    split($0, part, /["<>]/)
    header = part[2]
    beside = FILENAME
    sub(/[^\/]*$/, header, beside)
    for (at in places) if (places[at] header in known) header = places[at] header
    if (!(header in known)) header = beside
    if (header in known && stem(header) != stem(FILENAME) && !((header, FILENAME) in seen)) {
      seen[header, FILENAME] = 1
      ++users[header]
      user[header] = FILENAME
    }
  }
  END {
    for (header in users)
      if (users[header] == 1) print header ": " user[header] " alone includes it"
  }' "${files[@]}" | sort)
[ "${2-}" = --list ] && printf '%s\n' "$single"
singles=$(grep -c . <<<"$single")
read -r count median share < <(wc -l "${files[@]}" | awk '$2 != "total" { print $1 }' | sort -n |
  awk -v short="$short" '{ n[NR] = $1; few += $1 < short }
                         END { print NR, n[int((NR + 1) / 2)], few * 100 / NR }')

echo "$count files with a median of $median lines, $share % shorter than $short; $singles headers have one includer"
bad=0
if [ "$count" -gt "$most_files" ]; then
  echo "More than $most_files files: put what has one subject into one file."
  bad=1
fi
if [ "$median" -lt "$least_median" ]; then
  echo "The median is below $least_median lines: put what has one subject into one file."
  bad=1
fi
if awk "BEGIN { exit !($share > $most_short) }"; then
  echo "More than $most_short % of the files are shorter than $short lines: fold them into their subject."
  bad=1
fi
if [ "$singles" -gt "$most_single" ]; then
  printf '%s\n' "$single"
  echo "More than $most_single headers have one includer besides their source: fold some into it."
  bad=1
fi
exit "$bad"
