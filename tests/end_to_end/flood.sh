#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Somebody on the wire asks for connections as fast as a raw socket lets him, under addresses that
# nobody has: an honest sender beside him gets its files across all the same.
# protocol: 5.34
. "$(dirname "$0")/setup.sh"
needs_namespaces
make_work_directory
link_kind=veth
start_pair
start_receiver receiver b "$work/out" 3000
await_receiver receiver
random_file "$work/one" 64K
random_file "$work/two" 4M

cat >"$work/flood.py" <<'PY'
import random, signal, socket, struct, sys, time
dice = random.Random(1)
to = bytes.fromhex(sys.argv[1].replace(":", ""))
def request():
    source = b"\x02" + dice.randbytes(5)
    header = struct.pack(">HHHHIHHIIIIII", 0x0800, 64, 0, dice.randrange(1, 65536), 0, 0, 0, 12,
                         dice.randrange(1, 1 << 32), 10, 0, 3000, 0)
    return to + source + b"\x81\x81" + (header + bytes(6))
frames = [request() for _ in range(20000)]
raw = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
raw.bind(("stp0", 0))
pause = float(sys.argv[2])
going = True
def stop(*_):
    global going
    going = False
signal.signal(signal.SIGTERM, stop)
sent = 0
print("flooding", flush=True)
while going:
    for frame in frames:
        try:
            sent += raw.send(frame) > 0
        except OSError:
            pass
        if sent % 100 == 0:
            time.sleep(pause)
        if not going:
            break
print("sent", sent, flush=True)
PY
address=$(within "$side_b" ip -o link show stp0 | sed -n 's|.*link/ether \([^ ]*\).*|\1|p')
pause=0
# Under ThreadSanitizer stpd is some ten times slower: so is the flood, about 5,000 a second.
if ldd "$bin/stpd" | grep -q libtsan; then pause=0.02; fi
start "$work/flood.log" nsenter -t "$side_a" -n python3 "$work/flood.py" "$address" "$pause"
flood=$!
wait_for 30 grep -q flooding "$work/flood.log"
sleep 0.3 # whoever has few places has none left by now
for file in one two one; do
  rm -f "$work/out/$file"
  expect send_from a 60 "$work/$file" 10.9.0.2:3000
  expect same "$work/$file" "$work/out/$file"
done
kill "$flood"
wait_for 30 grep -q sent "$work/flood.log"

"$bin/stpctl" --socket "$work/b.sock" stats >"$work/stats"
# more_than NUMBER COUNTER
more_than() {
  local value
  value=$(awk -v name="$2" '$1 == name || $2 == name { for (i = 1; i <= NF; ++i) if ($i ~ /^[0-9]+$/) print $i }' \
    "$work/stats" | head -n 1)
  [ "${value:-0}" -gt "$1" ]
}
expect more_than 5000 rc_first
expect more_than 0 rc_proven
passed
