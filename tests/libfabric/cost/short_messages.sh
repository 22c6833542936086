#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# usage: short_messages.sh BUILD
# Counts with callgrind the instructions that the provider itself adds to a message of 8 bytes: both sides, the calls that post
# and the polls. Fails where they are more than docs/mpi.md says.
set -u
build=$1
most=1170
command -v valgrind >/dev/null || { echo "no valgrind here"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export FI_PROVIDER_PATH=$build/lib/libfabric STP_LINK=loop FI_LOG_LEVEL=warn

# own COUNT: the provider's instructions in a run of so many messages.
own() {
  valgrind --tool=callgrind --compress-strings=no --compress-pos=no --callgrind-out-file="$work/out" \
    "$build/bin/libfabric_short_messages" send "$1" >"$work/log" 2>&1 || { cat "$work/log" >&2; return 1; }
  awk '/^ob=/ { here = /libstp-fi/ }
       /^calls=/ { called = 1; next }
       /^[0-9]/ { if (here && !called) sum += $2; called = 0 }
       END { print sum + 0 }' "$work/out"
}
# Both runs include the start and the end; the difference does not.
less=$(own 100) && more=$(own 600) || exit 1
each=$(((more - less) / 500))
echo "the provider adds $each instructions to a message, at most $most"
[ "$less" -gt 0 ] && [ "$each" -le $most ]
