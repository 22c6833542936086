#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The level-0 client and server of tools/examples, two programs on one stpd.
. "$(dirname "$0")/setup.sh"
make_work_directory
start_stpd d - loop
await_stpd d
export STP_LINK=stpd:$work/d.sock

for text in "Hello over level 0" "and once more"; do
  log=$work/${text// /-}.log
  start "$log" "$bin/level0_server" localhost:3000
  server=$!
  expect wait_for 20 line_of "$log" "listening on"
  expect timeout 20 "$bin/level0_client" localhost:3000 "$text"
  expect wait "$server"
  expect says "$log" "$text"
done

# Error messages.
! timeout 20 "$bin/level0_client" localhost:3999 text 2>"$work/said" ||
  fail "nobody listens, and the client is content"
expect says "$work/said" "st_connect: "
! "$bin/level0_client" localhost:3000 2>"$work/said" || fail "an argument is missing"
expect says "$work/said" "usage:"
for program in level0_server "level0_client --help" peer_to_peer; do
  # shellcheck disable=SC2086
  timeout 20 "$bin/"$program --help 2>"$work/said" </dev/null
  expect [ $? -eq 2 ]
  expect says "$work/said" "usage:"
done
passed
