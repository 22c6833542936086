#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# usage: short_messages.sh BUILD
# Counts with callgrind the instructions that the provider itself adds to a message of 8 bytes: both sides, the calls that post
# and the polls. Fails where they are more than docs/mpi.md says.
set -u
build=$1
most=650
command -v valgrind >/dev/null || { echo "no valgrind here"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export FI_PROVIDER_PATH=$build/lib/libfabric STP_LINK=loop FI_LOG_LEVEL=warn

# own COUNT: the provider's instructions in a run of so many messages, and how often it polled.
own() {
  valgrind --tool=callgrind --compress-strings=no --compress-pos=no --callgrind-out-file="$work/out" \
    "$build/bin/libfabric_short_messages" send "$1" >"$work/log" 2>&1 || { cat "$work/log" >&2; return 1; }
  awk '/^ob=/ { here = /libstp-fi/ }
       /^calls=/ { called = 1; next }
       /^[0-9]/ { if (here && !called) sum += $2; called = 0 }
       END { printf "%d ", sum }' "$work/out"
  awk '$1 == "polls" { print $2 }' "$work/log"
}
# Both runs include the start and the end; the difference does not. How often a program polls while its endpoints connect, and
# beyond three times for a message, depends on what else the machine does: such a poll finds nothing, and costs so much.
empty=64
short=$(own 100) && long=$(own 600) || exit 1
read -r less few <<<"$short"
read -r more many <<<"$long"
each=$(((more - less - empty * (many - few - 3 * 500)) / 500))
echo "the provider adds $each instructions to a message, at most $most ($few and $many polls)"
[ "$less" -gt 0 ] && [ "$each" -le $most ]
