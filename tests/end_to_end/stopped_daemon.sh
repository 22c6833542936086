#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# usage: stopped_daemon.sh BUILD
# The stpd of programs is stopped (SIGSTOP) while they wait, or move a file. Each gives it up after 10 to 15 s and names
# it, and not the peer, which is alive. Closing takes no longer.
. "$(dirname "$0")/setup.sh"
make_work_directory
# shellcheck disable=SC2034 # used by daemons.sh
link_kind=memif
start_pair

start "$work/serve.log" "$bin/stpctl" ping --link "stpd:$work/b.sock" --serve :3009
expect wait_for 20 contains "$work/serve.log" listening
random_file "$work/long" 200M
start_receiver receiver b "$work/out" 3001
await_receiver receiver
declare -A programs
begin() { # NAME TEXT COMMAND...: one that is under way once it has said TEXT
  start "$work/$1.log" "${@:3}"
  programs[$1]=$!
  expect wait_for 20 contains "$work/$1.log" "$2"
}
begin ping 'answer 1' "$bin/stpctl" ping --link "stpd:$work/a.sock" 10.9.0.2:3009
start "$work/send.log" "$bin/stp-send" --link "stpd:$work/a.sock" --bwlimit 4M "$work/long" 10.9.0.2:3001
programs[send]=$!
has_partial_file() { [ -n "$(find "$work/out" -name '.stp-recv.*' -size +1M)" ]; }
expect wait_for 20 has_partial_file
if [ -e "$build/python/stp" ]; then
  export PYTHONPATH=$build/python PYTHONDONTWRITEBYTECODE=1
  for port in 3010 3011; do
    start "$work/peer$port.log" "$python" -m stp --link "stpd:$work/b.sock" receive --answer :$port
    expect wait_for 20 contains "$work/peer$port.log" listening
  done
  cat >"$work/waits.py" <<'PYTHON'
import asyncio, stp, stp.aio, sys, time

def says(call, *arguments):
    try:
        call(*arguments)
    except stp.Error as error:
        print(type(error).__name__, error, flush=True)

async def accept():
    async with stp.aio.Domain(sys.argv[2]) as domain:
        listener = domain.listen(":4001")
        print("waits", flush=True)
        await listener.accept()

if sys.argv[1] == "aio":
    says(asyncio.run, accept())
    sys.exit()
domain = stp.Domain(sys.argv[2])
if sys.argv[1] == "accept":
    with domain, domain.listen(":4000") as listener:
        print("waits", flush=True)
        says(listener.accept)
        says(listener.accept)
else:
    peer = domain.connect("10.9.0.2:3010" if sys.argv[1] == "receive" else "10.9.0.2:3011")
    print("waits", flush=True)
    if sys.argv[1] == "receive":
        says(peer.receive)
    else:
        sys.stdin.readline()
    peer.close()
    domain.close()
    print("has closed", flush=True)
PYTHON
  for name in accept aio receive; do begin $name waits "$python" "$work/waits.py" $name "stpd:$work/a.sock"; done
  mkfifo "$work/closes"
  exec {closes}<>"$work/closes"
  begin close waits "$python" "$work/waits.py" close "stpd:$work/a.sock" <"$work/closes"
fi

# shellcheck disable=SC2154 # start_pair has set it
kill -STOP "$stpd_a"
[ -z "${closes-}" ] || echo >&"$closes"
have_ended() {
  local name
  for name in "${!programs[@]}"; do ! kill -0 "${programs[$name]}" 2>/dev/null || return 1; done
}
begun=$EPOCHSECONDS
wait_for 60 have_ended || { tail -n 3 "$work"/*.log >&2; fail "not all have given it up"; }
kill -CONT "$stpd_a"
echo "all have given it up after $((EPOCHSECONDS - begun)) s"
for name in "${!programs[@]}"; do
  text="stpd:$work/a.sock: stpd has stopped answering"
  [ $name != close ] || text="has closed"
  contains "$work/$name.log" "$text" || { cat "$work/$name.log" >&2; fail "$name does not name it"; }
  ! contains "$work/$name.log" Traceback || { cat "$work/$name.log" >&2; fail "$name"; }
done
passed
