#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The installed units: systemd-analyze reports little exposure, and stpd serves a link and carries a
# file under their restrictions.
. "$(dirname "$0")/setup.sh"
make_work_directory
here=$(dirname "$(realpath "$0")")
root=$here/../..
quietly() { "$@" >"$work/said" 2>&1 || { cat "$work/said" >&2; return 1; }; }
command -v systemd-analyze >/dev/null || skip "no systemd-analyze here"
for unit in stpd stp-recv; do
  sed -e "s#@SBINDIR@#$bin#; s#@BINDIR@#$bin#" "$root/tools/$unit/$unit.service.in" \
    >"$work/$unit.service"
  quietly systemd-analyze verify --man=no "$work/$unit.service" || fail "$unit.service is not valid"
  # In tenths: at most 2.4.
  quietly systemd-analyze security --offline=true --threshold=24 "$work/$unit.service" ||
    fail "$unit.service leaves too much open: systemd-analyze security --offline=true"
done

# With the drop-in for links over UDP it leaves no more open.
mkdir -p "$work/udp/stpd.service.d"
cp "$work/stpd.service" "$work/udp"
cp "$root/tools/stpd/udp.conf" "$work/udp/stpd.service.d"
quietly systemd-analyze verify --man=no "$work/udp/stpd.service" || fail "udp.conf is not valid"
quietly systemd-analyze security --offline=true --threshold=24 "$work/udp/stpd.service" ||
  fail "udp.conf leaves too much open"

# Whoever mounts the directory of the socket still has it after a restart; a link is waited for without end.
expect grep -qx RuntimeDirectoryPreserve=yes "$work/stpd.service"
expect grep -qx StartLimitIntervalSec=0 "$work/stpd.service"

needs_namespaces
for needed in setpriv "$python"; do command -v "$needed" >/dev/null || skip "no $needed here"; done
setpriv --reuid=65534 --clear-groups test -x "$bin/stpd" || skip "others may not run $bin/stpd"
export ASAN_OPTIONS=detect_leaks=0 # which takes ptrace
links_say() { # SIDE STATE TROUBLE
  "$bin/stpctl" --socket "$work/$1.sock" links >"$work/links" 2>&1
  grep -qF -- " $2 " "$work/links" && grep -qF -- "$3" "$work/links"
}
make_namespace side_a
make_namespace side_b
chmod 0755 "$work"
under_unit=("$python" "$here/under_unit.py" "$work/stpd.service")
for side in a b; do
  holder=side_$side
  mkdir -m 0755 "$work/run_$side"
  chown 65534 "$work/run_$side"
  printf 'socket-mode = 666\n[link.stpd]\nlink = "iface:stp0"\nsocket = "%s"\n' \
    "$work/run_$side/stpd.sock" >"$work/$side.conf"
  chmod 0644 "$work/$side.conf"
  # The interface of a comes after its stpd, and that of b is down when its stpd starts.
  if [ $side = b ]; then
    join_by_wire "$side_a" "$side_b" 1500
    within "$side_b" ip link set stp0 down
  fi
  start "$work/$side.log" nsenter -t "${!holder}" -n "${under_unit[@]}" \
    "$bin/stpd" --config "$work/$side.conf"
  wait_for 20 grep -qE '^stpd: ready|^SKIPPED' "$work/$side.log" || fail "stpd does not start"
  ln -s "run_$side/stpd.sock" "$work/$side.sock"
  if [ $side = a ] && ! grep -q '^SKIPPED' "$work/a.log"; then
    wait_for 20 links_say a gone 'there is no interface stp0' || fail "stpctl links does not tell what is missing"
  fi
done
if why=$(grep -h '^SKIPPED' "$work"/[ab].log); then skip "${why#SKIPPED: }"; fi
wait_for 20 links_say b down 'ip link set stp0 up' || fail "stpctl links does not tell that it is down"
within "$side_b" ip link set stp0 up
for side in a b; do
  wait_for 20 line_of "$work/$side.log" "stpd: link iface:stp0: device stp0" || {
    cat "$work/$side.log" >&2
    fail "stpd does not open its link when the interface is there"
  }
done
daemon=$(pgrep -f "^$bin/stpd --config $work/a.conf")
expect [ "$(awk '/^NoNewPrivs/ { print $2 }' "/proc/$daemon/status")" = 1 ]
expect [ "$(awk '/^Seccomp:/ { print $2 }' "/proc/$daemon/status")" = 2 ]
expect [ "$(awk '/^Uid/ { print $2 }' "/proc/$daemon/status")" = 65534 ]
expect [ "$(awk '/^CapEff/ { print $2 }' "/proc/$daemon/status")" = 0000000000000000 ]

# Over UDP it has no capability that it could drop.
mkdir -m 0755 "$work/run_u"
chown 65534 "$work/run_u"
start "$work/u.log" nsenter -t "$side_a" -n "$python" "$here/under_unit.py" \
  "$work/stpd.service:$root/tools/stpd/udp.conf" "$bin/stpd" --link udp: --socket "$work/run_u/stpd.sock"
wait_for 20 grep -qE '^stpd: ready' "$work/u.log" || fail "stpd does not start without capabilities"
daemon=$(pgrep -f "^$bin/stpd --link udp: --socket $work/run_u")
expect [ "$(awk '/^CapBnd/ { print $2 }' "/proc/$daemon/status")" = 0000000000000000 ]
expect says "$work/u.log" 'link udp:: device'

random_file "$work/file" 3000000
start_receiver receiver b "$work/out" 3000
await_receiver receiver
expect send_from a 60 --quiet "$work/file" 10.9.0.2:3000
expect same "$work/file" "$work/out/file"
passed
