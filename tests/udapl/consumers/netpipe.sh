#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# usage: netpipe.sh BUILD-DIRECTORY
# NetPIPE 3.7.2 (netpipe_3.7.2.orig.tar.gz of Debian) with its module for uDAPL 1.2: its six modes and
# its integrity check, over memif without stpd, and over veth through two stpds.
. "$(dirname "$0")/setup.sh"
needs gcc make
archive=$(source_of "netpipe_3.7.2.orig.tar.gz" netpipe) || { echo "$archive" && exit 77; }
needs_namespaces
make_work_directory
lay_out_dat

# The IA's name is compiled in.
if [ ! -x "$kept/NPudapl" ]; then
  tar xzf "$archive" -C "$work" || fail "cannot unpack $archive"
  make -C "$work/NetPIPE-3.7.2" udapl CFLAGS="-O1 -w -fcommon -std=gnu89 -I src" \
    UDAPL_INC="$dat/include" UDAPL_LIB="$dat/lib" >"$work/make.log" 2>&1 ||
    { cat "$work/make.log" >&2 && fail "NetPIPE cannot be built"; }
  cp "$work/NetPIPE-3.7.2/NPudapl" "$kept/"
fi

make_namespace side_a
make_namespace side_b
# NetPIPE reaches its server by TCP, too.
# shellcheck disable=SC2154 # made above
join_by_wire "$side_a" "$side_b" 9000
tcp_is_open() { within "$side_b" ss -ltnH "sport = :5002" | grep -q .; }
tcp_is_free() { ! within "$side_b" ss -tanH "sport = :5002" | grep -q .; }

# NetPIPE connects once, without waiting for its server's service point (4003, NON_PEER_REJECTED) or, on a busy
# machine, for a memif that has just been opened (4008, UNREACHABLE). Then it never ends: both begin again.
too_early() { grep -q "unexpected event: 400[38]" "$1"; }
settled() { ! kill -0 "$1" 2>/dev/null || too_early "$2"; } # CLIENT LOG

# pipe NAME ARGUMENT...: both sides, each in a folder of its own, where it writes its log.
pipe() {
  local name=$1 server client tries=40
  shift
  mkdir -p "$work/a" "$work/b"
  while :; do
    rm -f "$work/$name".[ab].log
    wait_for 90 tcp_is_free
    start "$work/$name.b.log" nsenter -t "$side_b" -n env -C "$work/b" "DAT_OVERRIDE=$work/b.conf" \
      timeout 600 "$kept/NPudapl" "$@"
    server=$!
    expect wait_for 60 tcp_is_open
    start "$work/$name.a.log" nsenter -t "$side_a" -n env -C "$work/a" "DAT_OVERRIDE=$work/a.conf" \
      timeout 600 "$kept/NPudapl" -h 10.9.0.2 "$@"
    client=$!
    wait_for 600 settled "$client" "$work/$name.a.log"
    too_early "$work/$name.a.log" || break
    [ $((--tries)) -gt 0 ] || fail "$name: its server is never there in time"
    say "$name: too early; once more"
    stop "$client" && stop "$server"
  done
  expect wait "$client"
  expect wait "$server"
}

# A fixed number of messages for each size: NetPIPE would choose it by the machine's speed.
all_modes() { # LINK
  local mode
  for mode in "send_recv local_poll" "send_recv dq_poll" "send_recv evd_wait" "send_recv cno_wait" \
    "rdma_write local_poll" "rdma_write evd_wait"; do
    set -- "$1" $mode
    pipe "$1-$2-$3" -t "$2" -c "$3" -p 0 -n 10 -u 1000000
    expect says "$work/$1-$2-$3.a.log" "Mbps"
    # It checks what arrives and prints each failure.
    pipe "$1-$2-$3-check" -t "$2" -c "$3" -p 0 -n 5 -u 300000 -i
    expect says "$work/$1-$2-$3-check.a.log" "Integrity"
    if grep -hiE "integrity check failed|error" "$work/$1-$2-$3"*.log >&2; then fail "$1 $2 $3"; fi
    say "$1 $2 $3: $(grep -m 1 -o '[0-9.]* usec' "$work/$1-$2-$3.a.log")"
  done
}

memif="memif:$work/memif.sock,mtu=9000"
dat_conf b OpenIB-cma-name "$memif,role=server,mac=02:00:00:00:09:02,address=10.9.0.2/24"
dat_conf a OpenIB-cma-name "$memif,role=client,mac=02:00:00:00:09:01,address=10.9.0.1/24"
all_modes memif
start_pair_in "$side_a" "$side_b"
dat_conf b OpenIB-cma-name "stpd:$work/b.sock"
dat_conf a OpenIB-cma-name "stpd:$work/a.sock"
all_modes veth
expect_few_repeats "a b" 1000
passed
