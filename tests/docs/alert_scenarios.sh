#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# usage: alert_scenarios.sh BUILD
# What real stpd's export while something is wrong raises the alert that is for it, and no other; and none on an ordinary
# day. Each scrape stands for a minute of Prometheus, which promtool evaluates. That of old numbers is raised by what a
# real node exporter says of a file.
. "$(dirname "$0")/../end_to_end/setup.sh"
root=$(realpath "$(dirname "$0")/../..")
command -v promtool >/dev/null || skip "promtool is missing (Debian: prometheus); tools/test --long installs it"
[ -e "$build/python/stp" ] || skip "this build has no package for Python, which the programs use"
needs_namespaces
make_work_directory
export PYTHONPATH=$build/python PYTHONDONTWRITEBYTECODE=1
make_namespace side_a
make_namespace side_b
join_by_wire "$side_a" "$side_b" 1500
start_stpd b "$side_b" iface:stp0 --total-regions 200
stpd_b=$!
start_stpd a "$side_a" iface:stp0
stpd_a=$!
start_stpd small - loop --max-clients 4
# The frames that it makes come from a station that nobody knows.
cat >"$work/frames.py" <<'PYTHON'
import socket, struct

A, B, STRANGER = "020000000a01", "020000000a02", "020000000a77"
link = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
link.bind(("stp0", 0))

def frame(op, to=A, port=9000, key=7):
    head = bytes.fromhex(to + STRANGER) + struct.pack("!H", 0x8181)
    link.send(head + struct.pack("!HHHHIHHIIIIII", op << 11, 0, port, 1, key, 0, 0, 0, 0, 0, 0, 0, 0))
PYTHON
for side in a b small; do await_stpd $side; done
cp "$root/docs/dashboards/stpd.rules.yml" "$work/rules.yml"

scrapes=12
# minutes PHASE [COMMAND...]: scrapes; between them COMMAND happens.
minutes() {
  local i phase=$1
  shift
  for ((i = 0; i < scrapes; ++i)); do
    [ $i -eq 0 ] || "${@:-true}" || fail "$phase: failed: $*"
    "$bin/stpctl" --socket "$work/a.sock" --socket "$work/b.sock" --socket "$work/small.sock" stats --prometheus \
      >"$work/$phase.$(printf %02d $i).prom" || fail "no numbers"
  done
}
# raises PHASE [ALERT SIDE]...: these fire after the last minute, and nothing else does, pending ones apart. SIDE -: the
# numbers are not of a stpd.
raises() {
  "$python" - "$work" "$@" >"$work/said" 2>&1 <<'PYTHON' || { cat "$work/said" >&2; fail "$1: not these: ${*:2}"; }
import collections, glob, subprocess, sys

work, phase, *expected = sys.argv[1:]
series = collections.defaultdict(list)
scrapes = sorted(glob.glob(f"{work}/{phase}.*.prom"))
for path in scrapes:
    for line in open(path, encoding="utf-8"):
        if not line.startswith("#"):
            name, value = line.rsplit(" ", 1)
            series[name].append(value.strip())
last = len(scrapes) - 1
text = ["rule_files: [rules.yml]", "evaluation_interval: 1m", "tests:", "  - interval: 1m", "    input_series:"]
for name, values in series.items():
    text += [f"      - series: '{name}'", f"        values: '{' '.join(values)}'"]
text += ["    promql_expr_test:", f'      - expr: count by (alertname, socket) (ALERTS{{alertstate="firing"}})',
         f"        eval_time: {last}m", "        exp_samples:" + ("" if expected else " []")]
for alert, side in zip(expected[::2], expected[1::2]):
    socket = f',socket="{work}/{side}.sock"' if side != "-" else ""
    text += [f"""          - labels: '{{alertname="{alert}"{socket}}}'""", "            value: 1"]
with open(f"{work}/{phase}.yml", "w", encoding="utf-8") as file:
    print("\n".join(text), file=file)
sys.exit(subprocess.run(["promtool", "test", "rules", f"{work}/{phase}.yml"]).returncode)
PYTHON
}
# is_up SIDE 0|1
is_up() { "$bin/stpctl" --socket "$work/$1.sock" stats --prometheus | grep -q "^stp_link_up{.*} $2$"; }
cable() { # out|in
  local up=1 word=up
  [ "$1" = in ] || { up=0 word=down; }
  within "$side_b" ip link set stp0 $word
  wait_for 20 is_up a $up && wait_for 20 is_up b $up
}

random_file "$work/file" 2M
start_receiver receiver b "$work/out" 3000
await_receiver receiver
carry() { rm -f "$work/out/file" && send_from a 60 "$work/file" 10.9.0.2:3000 >"$work/sent" 2>&1; }
minutes ordinary carry
raises ordinary

cable out
minutes out
raises out StpLinkDown a StpLinkDown b
cable in
minutes mended
raises mended
wobble() { [ $((++wobbles)) -gt 4 ] || { cable out && cable in; }; }
wobbles=0
minutes wobbling wobble
raises wobbling StpLinkFlaps a StpLinkFlaps b

# frames TEXT: the lines of Python make frames, on B's end of the wire.
frames() { within "$side_b" env PYTHONPATH="$work" "$python" -c "from frames import *
$1"; }
# Requests for the state of Ports that nobody has: 15 a second of Prometheus.
flood() { frames 'for port in range(900): frame(0x1C, port=9000 + port)'; }
minutes flooded flood
raises flooded StpDrops a

within "$side_a" ip link set stp0 mtu 1400
has_state() { "$bin/stpctl" --socket "$work/a.sock" stats --prometheus | grep -q "state=\"$1\"} 1$"; }
expect wait_for 20 has_state 'mtu mismatch'
minutes narrow
raises narrow StpLinkImpaired a
within "$side_a" ip link set stp0 mtu 1500
expect wait_for 20 has_state up

# A program has more than 180 of the 200 regions that there are: two for each of its own.
start "$work/regions.log" "$python" -c '
import stp, sys, time
domain = stp.Domain(sys.argv[1])
memory = bytearray(1 << 20)
regions = [domain.region(memoryview(memory)[i << 12:(i + 1) << 12]) for i in range(92)]
print("has them", flush=True)
time.sleep(3600)' "stpd:$work/b.sock"
holder=$!
expect wait_for 20 contains "$work/regions.log" 'has them'
minutes greedy
raises greedy StpBudgetNearItsEnd b
stop "$holder"

# Once, three minutes before the last scrape: five programs, and places for four.
has_refused() {
  "$bin/stpctl" --socket "$work/small.sock" stats --prometheus | grep -q '^stp_clients_refused_total{.*} [1-9]'
}
crowd() {
  local port programs=()
  [ $((++turn)) -eq 8 ] || return 0
  for port in 1 2 3 4 5; do
    STP_LINK=stpd:$work/small.sock start "$work/crowd$port.log" "$bin/level0_server" ":400$port"
    programs+=($!)
  done
  wait_for 20 has_refused || { cat "$work"/crowd*.log >&2; return 1; }
  stop "${programs[@]}"
}
turn=0
minutes crowded crowd
raises crowded StpProgramsRefused small
minutes after
raises after

# stpd gets no processor while more frames come than its ring holds. They are for another station.
starve() {
  kill -STOP "$(session_of "$stpd_a")" && frames 'for _ in range(10_000): frame(0x1C, to=STRANGER)'
  kill -CONT "$(session_of "$stpd_a")"
}
minutes starved starve
raises starved StpFramesLost a

# Wrong Keys for the endpoint of a program without connections, which prints its Port and Key.
mkfifo "$work/silence"
exec {silence}<>"$work/silence"
# shellcheck disable=SC2016
STP_LINK=stpd:$work/a.sock start "$work/endpoint.log" bash -c 'exec "$0" 10.9.0.2 <"$1"' "$bin/peer_to_peer" "$work/silence"
guessed=$!
port_of_endpoint() { port=$(sed -nE 's/^([0-9]+) [0-9]+ [0-9]+$/\1/p' "$work/endpoint.log") && [ -n "$port" ]; }
expect wait_for 20 port_of_endpoint
guess() { [ $((++turn)) -ne 8 ] || frames "for _ in range(40): frame(0x1C, port=$port, key=0)"; }
turn=0
minutes guessed guess
raises guessed StpKeysGuessed a
stop "$guessed"

# connect SIDE TIMES PEER SECONDS: a program connects so often at once, and gives each one up after that time.
connect() {
  "$python" -c '
import contextlib, stp, sys
times, peer, seconds = int(sys.argv[2]), sys.argv[3], float(sys.argv[4])
with stp.Domain(sys.argv[1]) as domain:
    dials = [domain._native.connect(peer, 60_000_000, b"") for _ in range(times)]
    for dial in dials:
        with contextlib.suppress(stp.Error):
            dial.wait(int(seconds * 1e6))' "stpd:$work/$1.sock" "${@:2}"
}
# A station that is not there.
minutes repeated connect a 60 '[02:00:00:00:0a:99]:3000' 0.02
raises repeated StpRetries a

# A program of level 0 listens, and accepts nobody: 32 wait, and four more each minute get no answer.
STP_LINK=stpd:$work/b.sock start "$work/listener.log" "$python" -c '
import ctypes, sys, time
st, endpoint = ctypes.CDLL(sys.argv[1]), ctypes.c_void_p()
if st.st_create(b":3100", ctypes.byref(endpoint)) == 0 and st.st_listen(endpoint) == 0:
    print("listens", flush=True)
    time.sleep(3600)' "$build/lib/libstp.so"
listener=$!
expect wait_for 20 contains "$work/listener.log" listens
connect a 32 10.9.0.2:3100 0.02
minutes refused connect a 4 10.9.0.2:3100 0.02
raises refused StpConnectionsRefused b
stop "$listener"

# Twelve connections whose peer falls silent for longer than the 4.5 s of rule 5.23.
start "$work/accepts.log" "$python" -c '
import stp, sys, time
domain = stp.Domain(sys.argv[1])
with domain.listen(":3200") as listener:
    print("listens", flush=True)
    connections = [listener.accept() for _ in range(12)]
time.sleep(3600)' "stpd:$work/b.sock"
accepts=$!
expect wait_for 20 contains "$work/accepts.log" listens
start "$work/connects.log" "$python" -c '
import stp, sys, time
domain = stp.Domain(sys.argv[1])
connections = [domain.connect("10.9.0.2:3200") for _ in range(12)]
print("has them", flush=True)
time.sleep(3600)' "stpd:$work/a.sock"
connects=$!
expect wait_for 20 contains "$work/connects.log" 'has them'
has_failed() {
  "$bin/stpctl" --socket "$work/a.sock" stats --prometheus | grep -q '^stp_vc_failed_total{.*} \(1[2-9]\|[2-9][0-9]\)'
}
silence_of_b() {
  [ $((++turn)) -eq 8 ] || return 0
  kill -STOP "$(session_of "$stpd_b")"
  wait_for 30 has_failed || return 1
  kill -CONT "$(session_of "$stpd_b")"
}
turn=0
minutes silent silence_of_b
raises silent StpConnectionsFail a
stop "$connects" "$accepts"

# A program that asks again and again, and reads no reply. What stpctl asks is a request.
careless() {
  [ $((++turn)) -eq 8 ] || return 0
  "$python" -c '
import os, socket, subprocess, sys
stpctl, work = sys.argv[1:]
with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
    listener.bind(work + "/asked.sock")
    listener.listen()
    asking = subprocess.Popen([stpctl, "--socket", work + "/asked.sock", "stats"], stderr=subprocess.DEVNULL)
    with listener.accept()[0] as asked:
        request = asked.recv(1 << 16)
asking.wait()
with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as stpd:
    stpd.connect(work + "/small.sock")
    try:
        for _ in range(1_000_000):
            stpd.send(request)
    except OSError:
        sys.exit(0)
sys.exit("it was not disconnected")' "$bin/stpctl" "$work"
}
turn=0
minutes careless careless
raises careless StpProgramsSlow small

# The file of a node exporter that has not been written again. Prometheus's clock begins at 0 in the test.
if command -v prometheus-node-exporter >/dev/null; then
  mkdir "$work/text"
  tell() { "$bin/stpctl" --socket "$work/a.sock" stats --prometheus >"$work/text/stp.prom"; }
  within "$side_a" ip link set lo up
  start "$work/exporter.log" nsenter -t "$side_a" -n prometheus-node-exporter --web.listen-address=127.0.0.1:9100 \
    --collector.disable-defaults --collector.textfile --collector.textfile.directory="$work/text"
  for phase in fresh old; do
    tell
    touch -d "@$([ $phase = fresh ] && echo 600 || echo 60)" "$work/text/stp.prom"
    exported() {
      within "$side_a" "$python" -c '
import sys, urllib.request
for line in urllib.request.urlopen("http://127.0.0.1:9100/metrics").read().decode().splitlines():
    if line.startswith("node_textfile_mtime_seconds"):
        print(line)' >"$work/exported" 2>/dev/null && [ -s "$work/exported" ]
    }
    wait_for 20 exported || { cat "$work/exporter.log" >&2; fail "no node exporter"; }
    for ((i = 0; i < scrapes; ++i)); do cp "$work/exported" "$work/$phase.$(printf %02d $i).prom"; done
  done
  raises fresh
  raises old StpNoNews -
fi
passed
