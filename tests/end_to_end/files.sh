#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Several files at once: empty, of one byte, around the size of a Block. Their modes are kept.
. "$(dirname "$0")/setup.sh"
make_work_directory
link_kind=memif
start_pair
mkdir "$work/in"
for size in 0 1 7 8191 8192 262143 262144 262145 5000000; do
  random_file "$work/in/f$size" "$size"
done
chmod 0751 "$work/in/f7"
chmod 4644 "$work/in/f8192"
random_file "$work/in/ä name with spaces" 100

start_receiver receiver b "$work/out" 3000
receiver=$!
await_receiver receiver
expect send_from a 60 "$work"/in/* 10.9.0.2:3000
expect diff -r "$work/in" "$work/out"
expect [ "$(stat -c %a "$work/out/f7")" = 751 ]
expect [ "$(stat -c %a "$work/out/f8192")" = 644 ]

# A file that is there already is replaced.
random_file "$work/in/f7" 7
expect send_from a 60 --quiet "$work/in/f7" 10.9.0.2:3000 >"$work/quiet" 2>&1
expect same "$work/in/f7" "$work/out/f7"
expect [ ! -s "$work/quiet" ]

# A file gets another name where one is given, and two never get the same.
expect send_from a 60 --name sub/other "$work/in/f7" 10.9.0.2:3000
expect same "$work/in/f7" "$work/out/sub/other"
mkdir "$work/second"
cp "$work/in/f1" "$work/second/f7"
send_from a 60 "$work/in/f7" "$work/second/f7" 10.9.0.2:3000 2>"$work/refused" && fail "it was sent"
expect says "$work/refused" "would both arrive as f7"
expect same "$work/in/f7" "$work/out/f7"

# An idle receiver ends with status 0 when it gets a signal.
kill -TERM "$receiver"
expect wait "$receiver"
passed
