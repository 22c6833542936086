#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# usage: alert_scenarios.sh BUILD
# What real stpd's export while something is wrong raises the alert that is for it, and no other; and none on an ordinary
# day. Each scrape stands for a minute of Prometheus, which promtool evaluates. The alerts for lost frames, guessed Keys,
# refused connections, slow programs, retries, broken connections and old numbers are tried with given numbers alone
# (docs.alerts).
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
start_stpd a "$side_a" iface:stp0
start_stpd small - loop --max-clients 4
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
# raises PHASE [ALERT SIDE]...: these fire after the last minute, and nothing else does, pending ones apart.
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
    text += [f"""          - labels: '{{alertname="{alert}",socket="{work}/{side}.sock"}}'""", "            value: 1"]
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

# Requests for the state of Ports that nobody has, from a station that nobody knows: 15 a second of Prometheus.
flood() {
  within "$side_b" "$python" -c '
import socket, struct
head = bytes.fromhex("020000000a01" "020000000a77") + struct.pack("!H", 0x8181)
link = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
link.bind(("stp0", 0))
for port in range(900):
    link.send(head + struct.pack("!HHHHIHHIIIIII", 0x1C << 11, 0, 9000 + port, 1, 7, 0, 0, 0, 0, 0, 0, 0, 0))'
}
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
passed
