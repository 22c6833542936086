#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# usage: devices.sh BUILD-DIRECTORY
# stpctl devices, text and --json, on a machine that has: a daemon and the socket of one that was
# killed, interfaces that can be used and that cannot, a memif socket. Its network namespace, its
# /run and its /sys are this script's own.
. "$(dirname "$0")/setup.sh"
needs_namespaces
bin=$(realpath "$bin")
make_work_directory

start "$work/namespaces.log" unshare -mn --propagation private sleep 3600
machine=$!
wait_for 5 in_own_namespace "$machine" || fail "cannot make a network namespace"
inside() { nsenter -t "$machine" -m -n "$@"; }
inside mount -t sysfs none /sys 2>/dev/null || skip "sysfs may not be mounted here"
inside mount -t tmpfs none /run || fail "a tmpfs may not be mounted here"
inside mkdir /run/stpd
inside ip link set lo up
inside ip link add good type veth peer name other
inside ip link add unused type veth peer name dark
inside ip link set good mtu 9000 up
inside ip link set other up
inside ip link set dark up # its other end is down
inside ip link add narrow type veth peer name thin
inside ip link set narrow mtu 300 up

# serve NAME LINK: a daemon at /run/stpd/NAME.sock of that machine.
serve() {
  start "$work/$1.log" nsenter -t "$machine" -m -n "$bin/stpd" --link "$2" --socket "/run/stpd/$1.sock"
}
serve alive iface:other
await_stpd alive
serve killed loop
killed=$!
await_stpd killed
kill_at_once "$killed"
start "$work/memif.log" nsenter -t "$machine" -m -n "$bin/stpd" --socket /run/elsewhere.sock \
  --link memif:/run/memif-one.sock,role=server,mac=02:00:00:00:00:01
await_stpd memif

# devices NAME [PREFIX...] [OPTION...]: into $work/NAME; to its standard error goes nothing.
devices() {
  local name=$1
  shift
  inside "${prefix[@]}" "$bin/stpctl" devices "$@" >"$work/$name" 2>"$work/$name.err" ||
    fail "stpctl devices ends with $?: $(cat "$work/$name.err")"
  expect [ ! -s "$work/$name.err" ]
}
prefix=()
devices text
devices json --json
without_raw=(setpriv --inh-caps=-net_raw --bounding-set=-net_raw)
prefix=("${without_raw[@]}")
devices text_without_raw
devices json_without_raw --json

# Where /sys is that of another namespace, the kernel tells which interfaces this one has.
nsenter -t "$machine" -n "$bin/stpctl" devices >"$work/elsewhere"
expect [ "$(awk '/^iface:/ {print $1, $2}' "$work/elsewhere")" = "$(awk '/^iface:/ {print $1, $2}' "$work/text")" ]

# row NAME LINK USABLE NOTE: the columns of text, and the words of its note.
row() {
  awk -v link="$2" -v usable="$3" '$1 == link && $2 == usable' "$work/$1" | grep -qF -- "$4"
}
expect row text stpd:/run/stpd/alive.sock yes ''
expect row text stpd:/run/stpd/killed.sock no 'nobody serves this socket any more: start stpd again'
expect row text iface:good yes ''
expect row text iface:dark yes 'no carrier'
expect row text iface:unused no 'it is down: ip link set unused up'
expect row text iface:narrow no 'its MTU is below 360: ip link set narrow mtu 1500'
expect row text iface:other no "stpd, pid $(pgrep -f "^$bin/stpd --link iface:other ") owns it: reach its link"
expect row text iface:lo no 'for one process use loop'
expect row text memif:/run/memif-one.sock,role=client yes 'serves one client'
expect row text udp: yes 'udp:ADDRESS is one of them'
expect row text loop yes 'for one process alone'
expect row text_without_raw iface:good no 'this user lacks CAP_NET_RAW'
expect row text_without_raw udp: yes ''
expect row text_without_raw stpd:/run/stpd/alive.sock yes ''
expect [ "$(head -n 1 "$work/text" | tr -s ' ')" = 'LINK USABLE STATE DRIVER MTU MBIT/S NOTE' ]
expect [ "$(awk '$1 == "iface:good" { print $3, $5, $6 }' "$work/text")" = 'up 9000 10000' ]

# A link string that is said to be usable is one.
serve taken_up iface:good
await_stpd taken_up

# What programs read: names, types and values, and the same rows as those of the text.
command -v "$python" >/dev/null || skip "no python3 here to read JSON with"
cat >"$work/schema.py" <<'PYTHON'
import json, sys

TEXTS = {"link", "kind", "name", "note", "state", "driver"}
NUMBERS = {"mtu", "mbit_per_s"}


def check(holds, what):
    if not holds:
        sys.exit(f"not so: {what}")


def read(path):
    with open(path) as file:
        lines = file.read().splitlines()
    check(len(lines) == 1, "one line")
    found = json.loads(lines[0])
    check(set(found) == {"links", "hugepages"}, found.keys())
    for link in found["links"]:
        check(set(link) == TEXTS | NUMBERS | {"usable"}, link)
        check(all(type(link[name]) is str for name in TEXTS), link)
        check(all(link[name] is None or type(link[name]) is int for name in NUMBERS), link)
        check(type(link["usable"]) is bool, link)
        check(link["usable"] or link["note"] != "", link)
        check(link["kind"] in ("daemon", "interface", "pci", "memif", "udp", "loop"), link)
    for pages in found["hugepages"]:
        check(set(pages) == {"kilobytes", "total", "free"}, pages)
        check(all(type(number) is int for number in pages.values()), pages)
    return {link["link"]: link for link in found["links"]}


text, links, others = sys.argv[1], read(sys.argv[2]), read(sys.argv[3])
good = links["iface:good"]
check(good["kind"] == "interface" and good["name"] == "good", good)
check((good["usable"], good["mtu"], good["mbit_per_s"]) == (True, 9000, 10000), good)
check(good["state"] == "up", good)
daemon = links["stpd:/run/stpd/alive.sock"]
check((daemon["kind"], daemon["name"]) == ("daemon", "/run/stpd/alive.sock"), daemon)
check((daemon["usable"], daemon["mtu"], daemon["mbit_per_s"]) == (True, None, None), daemon)
check(not links["stpd:/run/stpd/killed.sock"]["usable"], "a killed daemon")
check(links["memif:/run/memif-one.sock,role=client"]["kind"] == "memif", "memif")
check(links["loop"]["kind"] == "loop", "loop")
check(not others["iface:good"]["usable"], "without CAP_NET_RAW")
with open(text) as file:
    rows = [line.split() for line in file][1:]
rows = [row for row in rows if row[0] != "hugepages"]
check([row[0] for row in rows] == list(links), "the same links in the same order")
for row in rows:
    link = links[row[0]]
    check(row[1] == ("yes" if link["usable"] else "no"), row)
    check(" ".join(row[6:]) == " ".join(link["note"].split()), row)
PYTHON
expect "$python" "$work/schema.py" "$work/text" "$work/json" "$work/json_without_raw"

# Exit codes.
fails_with() { # CODE WORDS ARGUMENT...
  local wanted=$1 words=$2 code=0
  shift 2
  inside "$bin/stpctl" "$@" >"$work/said" 2>&1 || code=$?
  [ "$code" -eq "$wanted" ] && says "$work/said" "$words"
}
expect fails_with 2 nonsense devices --nonsense
expect fails_with 2 more devices more
expect inside sh -c "! '$bin/stpctl' devices >/dev/full 2>'$work/full'"
expect says "$work/full" 'No space left'

# The same machine, where no daemon has left a socket.
inside mount -t tmpfs none /run
prefix=()
devices empty --json
expect "$python" -c 'import json, sys
links = json.load(open(sys.argv[1]))["links"]
sys.exit(any(link["kind"] == "daemon" for link in links))' "$work/empty"
# Hugepages that seem to be free, and of which stpd gets none.
if [ "$(cat /sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages)" = 0 ]; then
  inside mount -t tmpfs none /sys/kernel/mm/hugepages
  inside mkdir /sys/kernel/mm/hugepages/hugepages-2048kB
  for count in nr:512 free:512 resv:0; do
    inside sh -c "echo ${count#*:} >/sys/kernel/mm/hugepages/hugepages-2048kB/${count%:*}_hugepages"
  done
  serve huge iface:dark
  await_stpd huge
  expect says "$work/huge.log" 'hugepages of 2048 KiB are free, but this process gets none (Cannot allocate memory)'
fi
passed
