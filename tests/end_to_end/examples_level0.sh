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
for program in level0_server level0_client peer_to_peer request_service_c request_service_cpp coroutine_server epoll_server \
               kv_store; do
  [ -x "$bin/$program" ] || continue
  timeout 20 "$bin/$program" --nothing 2>"$work/said" </dev/null
  expect [ $? -eq 2 ]
  expect eval "grep -q '^usage: $program ' '$work/said' && [ \$(wc -l <'$work/said') -eq 2 ]"
  expect eval "timeout 20 '$bin/$program' --help 2>/dev/null | diff - '$work/said'"
done
passed
