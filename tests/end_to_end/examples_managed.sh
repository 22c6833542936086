#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The programs of tools/examples that use the managed API, run as their first lines say.
. "$(dirname "$0")/setup.sh"
make_work_directory
start_stpd one - "loop${queues:-}"
await_stpd one
export STP_LINK=stpd:$work/one.sock

start "$work/kv.log" "$bin/kv_store" serve :3000
expect wait_for 20 contains "$work/kv.log" serving
expect "$bin/kv_store" set :3000 color green
expect "$bin/kv_store" set :3000 size "$(printf 'x%.0s' $(seq 150))"
expect "$bin/kv_store" set :3000 color blue
expect [ "$("$bin/kv_store" get :3000 color)" = blue ]
expect [ "$("$bin/kv_store" get :3000 size | wc -c)" -eq 151 ]
"$bin/kv_store" get :3000 weight && fail "found what nobody has set"
for n in 1 2 3 4; do
  "$bin/kv_store" set :3000 "key $n" "value $n" &
  setters[n]=$!
done
for n in 1 2 3 4; do expect wait "${setters[n]}"; done
for n in 1 2 3 4; do expect [ "$("$bin/kv_store" get :3000 "key $n")" = "value $n" ]; done
# A client in Python finds what one in C++ has set, and the reverse.
if [ -e "$build/python/stp/__init__.py" ]; then
  export PYTHONPATH=$build/python PYTHONDONTWRITEBYTECODE=1
  client=("$python" "$(dirname "$0")/../../tools/examples/kv_client.py")
  expect [ "$("${client[@]}" get :3000 color)" = blue ]
  expect "${client[@]}" set :3000 color grün
  expect "${client[@]}" set :3000 snake "$(printf 'z%.0s' $(seq 191))"
  expect [ "$("$bin/kv_store" get :3000 color)" = grün ]
  expect [ "$("$bin/kv_store" get :3000 snake | wc -c)" -eq 192 ]
  "${client[@]}" get :3000 weight && fail "found what nobody has set"
  "${client[@]}" set :3000 color "$(printf 'z%.0s' $(seq 192))" 2>"$work/long.log" && fail "a value that has no room is set"
  expect says "$work/long.log" 'kv_client: a key has 1 to 55 bytes, a value at most 191'
  # Clients beyond those that the server has places for are refused, and it goes on.
  expect "$python" - <<'END'
import stp

with stp.Domain() as domain:
    peers = []
    try:
        while len(peers) < 1100:
            peers.append(domain.connect(":3000", timeout=60))
    except stp.ConnectionRefused:
        assert len(peers) > 1000
    else:
        raise SystemExit("nobody is refused")
END
  expect [ "$("$bin/kv_store" get :3000 color)" = grün ]
fi

# One service by two programs: each serves the clients of both.
long=$(printf 'y%.0s' $(seq 30000))
for name in epoll_server coroutine_server; do
  start "$work/$name.log" "$bin/$name" serve :3001
  server=$!
  expect wait_for 20 contains "$work/$name.log" serving
  for text in hello "$long" again; do
    expect [ "$("$bin/epoll_server" ask :3001 "$text")" = "$text" ]
  done
  expect [ "$("$bin/coroutine_server" ask :3001 "$long")" = "$long" ]
  kill -TERM "$server"
  expect wait "$server"
  "$bin/$name" ask :3001 nobody 2>"$work/nobody.log" && fail "nobody is there"
  expect says "$work/nobody.log" "$name: connecting"
  expect says "$work/nobody.log" ": Connection refused"
done
passed
