#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# A server ends on Ctrl-C while a client has it to itself. A client ends if its server is killed. A program that serves
# itself needs no port of theirs.
. "$(dirname "$0")/setup.sh"
socket=$work/stpd.sock
export STP_LINK=stpd:$socket

connections() { "$bin/stpctl" --socket "$socket" links --json | grep -o '"connections":[0-9]*' | head -1; }
have() { [ "$(connections)" = "\"connections\":$1" ]; }
ended() { ! kill -0 "$1" 2>/dev/null; }

# Starts a server and a client, and waits until all their connections are there.
measure() {
  : >"$work/server.log"
  start "$work/server.log" "$bin/stp-perf" server
  server=$!
  wait_for 60 contains "$work/server.log" listening || fail "no server: $(cat "$work/server.log")"
  start "$work/client.log" "$bin/stp-perf" latency --op "$1" --seconds 3600 :3000
  client=$!
  wait_for 60 have 4 || fail "not connected: $(cat "$work/server.log" "$work/client.log")"
}

start "$work/stpd.log" "$bin/stpd" --link loop --socket "$socket"
wait_for 60 contains "$work/stpd.log" ready || fail "no stpd: $(cat "$work/stpd.log")"

measure put
# Of the ports that the next one would try first, :3002 is free, and the one behind it, of level 0, is not.
start "$work/other.log" "$bin/stp-perf" server --port :3003
wait_for 60 contains "$work/other.log" listening || fail "no server: $(cat "$work/other.log")"
"$bin/stp-perf" -q latency --op level0 --seconds 0.01 --warm-up 0 >"$work/own.log" 2>&1 ||
  fail "a program that serves itself, beside a server: $(cat "$work/own.log")"
kill -STOP "$client"
kill -INT "$server"
wait_for 60 ended "$server" || fail "the server does not end on SIGINT"
wait "$server" || fail "the server has failed: $(cat "$work/server.log")"
kill_at_once "$client"
wait_for 60 have 0 || fail "connections stay"

for operation in put write; do
  measure $operation
  kill_at_once "$server"
  wait_for 60 ended "$client" || fail "with $operation, the client waits for a server that is gone"
  wait "$client" && fail "the client does not report that its server is gone"
  wait_for 60 have 0 || fail "connections stay"
done
exit 0
