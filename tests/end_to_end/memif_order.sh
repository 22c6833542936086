#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# A memif client that starts before its server says what is missing, and goes on when the server has
# started. The server, too, waits for the folder of its socket.
. "$(dirname "$0")/setup.sh"
make_work_directory

mac=02:00:00:00:09:0
links() { "$bin/stpctl" --socket "$work/a.sock" links; }
troubled() { links | grep -qF "no memif server has opened $work/later/memif.sock"; }
untroubled() { ! troubled; }
pings() { "$bin/stpctl" --socket "$work/a.sock" ping 10.9.0.2:2999 --count 1 >"$work/ping" 2>&1; }

start_stpd a - "memif:$work/later/memif.sock,role=client,mac=${mac}1,address=10.9.0.1/24"
await_stpd a
wait_for 20 troubled || fail "stpctl links does not name the socket that is missing"
told() { grep -qF "no memif server has opened" "$work/a.log"; }
wait_for 20 told || fail "the log does not name it"
sleep 1
# One line in the log, however often the client tries.
expect [ "$(grep -cF "no memif server has opened" "$work/a.log")" -eq 1 ]
expect [ "$(wc -l <"$work/a.log")" -le 8 ]

start_stpd b - "memif:$work/later/memif.sock,role=server,mac=${mac}2,address=10.9.0.2/24"
await_stpd b
waits() { "$bin/stpctl" --socket "$work/b.sock" links | grep -qF "there is no directory $work/later"; }
wait_for 20 waits || fail "stpctl links does not name the folder that is missing"
mkdir "$work/later"
opened() { grep -qF "stpd: link memif:$work/later/memif.sock,role=server" "$work/b.log"; }
wait_for 20 opened || fail "the server does not open its link when the folder is there"
start "$work/pings.log" "$bin/stpctl" --socket "$work/b.sock" ping --serve :2999
wait_for 30 pings || fail "the client does not find its server"
wait_for 20 untroubled || fail "it still names the socket as missing"
passed
