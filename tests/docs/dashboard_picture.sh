#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# usage: dashboard_picture.sh BUILD PICTURE
# Makes the picture of docs/operations.md: two minutes of two stpd's that carry files, with a cable that is out for a while
# and a flood of frames that make no sense, as a real Prometheus draws them. It takes prometheus and chromium (Debian),
# and two minutes. It is no test: nothing runs it but whoever wants a new picture.
. "$(dirname "$0")/../end_to_end/setup.sh"
picture=$(realpath -m "$2")
for needed in prometheus chromium; do command -v $needed >/dev/null || skip "no $needed here"; done
needs_namespaces
make_work_directory
make_namespace side_a
make_namespace side_b
join_by_wire "$side_a" "$side_b" 1500
start_stpd b "$side_b" iface:stp0
start_stpd a "$side_a" iface:stp0
for side in a b; do await_stpd $side; done
start_receiver receiver b "$work/out" 3000
await_receiver receiver
random_file "$work/file" 24M
within "$side_a" ip link set lo up

# What `stpctl stats --prometheus` says, for whoever asks.
start "$work/exporter.log" nsenter -t "$side_a" -n "$python" -c '
import http.server, subprocess, sys

class Numbers(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        text = subprocess.run(sys.argv[1:], capture_output=True).stdout
        self.send_response(200)
        self.send_header("Content-Type", "text/plain; version=0.0.4")
        self.end_headers()
        self.wfile.write(text)

http.server.HTTPServer(("127.0.0.1", 9101), Numbers).serve_forever()' \
  "$bin/stpctl" --socket "$work/a.sock" --socket "$work/b.sock" stats --prometheus
cat >"$work/prometheus.yml" <<YAML
global: {scrape_interval: 2s, evaluation_interval: 2s}
scrape_configs:
  - job_name: stpd
    static_configs: [{targets: ["127.0.0.1:9101"]}]
    metric_relabel_configs:
      - {source_labels: [socket], regex: ".*/(.).sock", target_label: host, replacement: "\$1"}
      - {regex: "socket|job|instance", action: labeldrop}
YAML
start "$work/prometheus.log" nsenter -t "$side_a" -n prometheus --config.file="$work/prometheus.yml" \
  --storage.tsdb.path="$work/data" --web.listen-address=127.0.0.1:9090
begun=$EPOCHSECONDS
until_second() { while [ $((EPOCHSECONDS - begun)) -lt "$1" ]; do sleep 0.2; done; }
carry() { rm -f "$work/out/file" && send_from a 60 --bwlimit "$1" "$work/file" 10.9.0.2:3000 >"$work/sent" 2>&1; }
until_second 15
carry 2M
(while [ -e "$work/out" ] && [ ! -e "$work/end" ]; do carry 1M || sleep 1; done) &
loop=$!
until_second 50
within "$side_b" ip link set stp0 down
until_second 62
within "$side_b" ip link set stp0 up
until_second 80
for _ in $(seq 15); do
  within "$side_b" "$python" -c '
import socket, struct
head = bytes.fromhex("020000000a01" "020000000a77") + struct.pack("!H", 0x8181)
link = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
link.bind(("stp0", 0))
for port in range(300):
    link.send(head + struct.pack("!HHHHIHHIIIIII", 0x1C << 11, 0, 9000 + port, 1, 7, 0, 0, 0, 0, 0, 0, 0, 0))'
  sleep 0.6
done
until_second 120
touch "$work/end"
graphs=(
  'stp_link_up'
  'rate(stp_rx_frames_total[20s])'
  'rate(stp_bad_port_total[20s])'
)
address="http://127.0.0.1:9090/classic/graph?"
for i in "${!graphs[@]}"; do
  query=$("$python" -c 'import sys, urllib.parse; print(urllib.parse.quote(sys.argv[1]))' "${graphs[i]}")
  address+="g$i.expr=$query&g$i.tab=0&g$i.range_input=2m&g$i.step_input=2&g$i.stacked=0&"
done
within "$side_a" chromium --headless --no-sandbox --disable-gpu --hide-scrollbars --user-data-dir="$work/chromium" \
  --virtual-time-budget=15000 --window-size=1000,2280 --screenshot="$picture" "$address" >"$work/chromium.log" 2>&1
[ -s "$picture" ] || { cat "$work/chromium.log" >&2; fail "no picture"; }
wait "$loop"
passed
