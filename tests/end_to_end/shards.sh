#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Two stpd with shards and queues of their own between them: each frame comes to the shard of its
# Port. In the middle of a transfer one is killed, or stopped, and started again, with another number
# of shards where the link permits that.
. "$(dirname "$0")/setup.sh"
make_work_directory
size=16M
[ -z "${STP_LONG-}" ] || size=32M
random_file "$work/large" "$size"

counter() { "$bin/stpctl" --socket "$work/$1.sock" --json stats | grep -oE "\"$2\":[0-9]+" | head -n 1 | cut -d: -f2; }
# none SIDE COUNTER: it is 0, or not there.
none() {
  local value
  value=$(counter "$1" "$2")
  [ "${value:-0}" -eq 0 ] || { echo "$2 of $1 is $value" >&2; return 1; }
}
steered() { "$bin/stpctl" --socket "$work/$1.sock" links | grep -qF "steering: $2"; }
part_is_there() { [ -n "$(find "$work/out" -name '.stp-recv.*' -size +1M)" ]; }
# opened SIDE LINK
opened() {
  start_stpd "$1" - "$2"
  eval "stpd_$1=$!"
  await_stpd "$1"
}

# transfer LINK_OF_B LINK_OF_A SIGNAL SIDE LINK_AGAIN: the stpd of SIDE gets the SIGNAL in the middle.
transfer() {
  rm -rf "$work/out"
  opened b "$1"
  opened a "$2"
  start_receiver receiver b "$work/out" 3000
  receiver=$!
  await_receiver receiver
  start "$work/sender.log" "$bin/stp-send" --link "stpd:$work/a.sock" --retry 60 --bwlimit 8M \
    "$work/large" 10.9.0.2:3000
  sender=$!
  expect wait_for 60 part_is_there
  say "$4 goes by SIG$3"
  local stpd="stpd_$4"
  kill "-$3" "${!stpd}"
  wait "${!stpd}" 2>/dev/null
  opened "$4" "$5"
  wait "$sender"
  expect [ $? -eq 0 ]
  expect same "$work/large" "$work/out/large"
}
end() {
  for pid in "$receiver" "$stpd_a" "$stpd_b"; do stop "$pid"; done
}

say "memif: 2 shards and 3, then 4 and 3"
memif() { echo "memif:$work/memif.sock,role=$1,queues=$2,mac=02:00:00:00:09:0$3,address=10.9.0.$3/24"; }
transfer "$(memif server 2 2)" "$(memif client 3 1)" KILL b "$(memif server 4 2)"
for side in a b; do expect wait_for 20 steered "$side" "the peer picks the queue: 12 in, 12 out"; done
for side in a b; do expect none "$side" wrong_queue; done
end

say "vhost beside virtio-user: 2 queues"
vdev() { echo "vdev:$1,queues=2,shards=2,mac=02:00:00:00:09:0$2,address=10.9.0.$2/24"; }
front=$(vdev "net_virtio_user0,path=$work/vhost.sock" 1)
transfer "$(vdev "net_vhost0,iface=$work/vhost.sock" 2)" "$front" TERM a "$front"
expect steered a "the peer picks the queue: 2 receive queues"
for side in a b; do expect none "$side" shard_full; done
end
passed
