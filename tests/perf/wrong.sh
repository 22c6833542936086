#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# stp-perf refuses what it cannot measure, with a helpful message.
. "$(dirname "$0")/setup.sh"

# refuses STATUS WORDS OPTION...
refuses() {
  local status=$1 words=$2 said
  shift 2
  said=$("$bin/stp-perf" "$@" 2>&1)
  [ $? -eq "$status" ] || fail "stp-perf $*: not exit status $status: $said"
  [[ $said == *$words* ]] || fail "stp-perf $*: does not say '$words': $said"
}

refuses 2 "there is no operation 'send'; there are put get write read fetch level0" --link loop latency --op send
refuses 2 "a put causes no event at the peer" --link loop latency --sleep
refuses 2 "--size 4: write 8 or more" --link loop latency --size 4
refuses 2 "--size 4: write 8 or more" --link loop latency --size 0x4
refuses 2 "--size 2147483648: write 1G or less" --link loop latency --size 2G
refuses 2 "--size 16: write 8, or leave the option out" --link loop rate --op fetch --size 16
refuses 2 "bandwidth does not measure fetch: write rate --op fetch" --link loop bandwidth --op fetch
refuses 2 "--size 0: write 1 or more" --link loop rate --size 0
refuses 2 "--size 0: write 1 or more" memcpy --size 0
refuses 2 "--connections: -1 is too small: write 1 to 60000" --link loop rate --connections -1
refuses 2 "--size: '0x4g' is no size" --link loop latency --size 0x4g
refuses 2 "--window: 5000 is too large: write 1 to 4096" --link loop rate --window 5000
refuses 2 "--window 1025: write 1 to 1024 for level0" --link loop rate --op level0 --window 1025
refuses 2 "--connections 2: with --sleep, level0 has one connection only" --link loop rate --op level0 --sleep --connections 2
refuses 2 "--seconds is an option of 'stp-perf latency': it stands behind that" --link loop --seconds 0.1 latency
refuses 2 "--link: it is given 2 times, and takes one value" --link loop --link loop latency
refuses 2 "raw needs a --link" raw
refuses 2 "a command is missing; there are server latency" --link loop
refuses 2 "there is no command 'latncy'; there are server latency" --link loop latncy
refuses 2 "--cpu: 'x' is no whole number" --link loop --cpu x latency
refuses 2 "--size: 'abc' is no size: write bytes, as 4096, 0x1000, 64K, 1M or 2G" --link loop latency --size abc
refuses 2 "--link: the value is empty: write one, or leave the option out" --link= latency
refuses 2 "--seconds: the value is empty: write a number, or leave the option out" --link loop latency --seconds ""
refuses 2 "--size: the value is empty: write a size, or leave the option out" --link loop latency --size ""
refuses 2 "--seconds: 0 is too small: write 0.001 to 86400" --link loop latency --seconds 0
refuses 2 "--buffer: 25 is too large: write 12 to 24" --link loop --buffer 25 latency
refuses 2 "--working-set 0 holds no copy: write --size (8) or more" memcpy --working-set 0
refuses 2 "--working-set 4096 holds no copy: write --size (65536) or more" memcpy --size 64K --working-set 4K
refuses 1 "sends no bare frames" --link loop raw
refuses 1 "use iperf3 and sockperf" --link udp: raw
start "$work/stpd" "$bin/stpd" --link udp:127.0.0.1,port=0 --socket "$work/stpd.sock"
stpd=$!
wait_for 60 grep -q ready "$work/stpd"
refuses 1 "use iperf3 and sockperf" --link "stpd:$work/stpd.sock" raw
start "$work/recv" "$bin/stp-recv" --link udp:127.0.7.14 --listen :3000 --out "$work"
recv=$!
wait_for 60 grep -q listening "$work/recv"
refuses 1 "127.0.7.14/8181) is an stp-recv: name the port of an stp-perf server" --link "stpd:$work/stpd.sock" \
  latency 127.0.7.14/8181:3000
stop "$recv" "$stpd"
start "$work/loop" "$bin/stpd" --link loop --socket "$work/stpd.sock"
stpd=$!
wait_for 60 grep -q ready "$work/loop"
refuses 1 "raw needs iface:, memif:, pci: or vdev:; on the way of an ip: link, use iperf3 and sockperf" --link "stpd:$work/stpd.sock" raw
stop "$stpd"
refuses 2 "--cpu 9999: this process cannot run on that CPU" --link loop --cpu 9999 latency
STP_LINK='' refuses 2 "nonsense" --link nonsense latency
refuses 1 ":3999 refused the connection: nobody listens on that port; start stp-perf server there" \
  --link udp:127.0.0.1,port=0 latency :3999
refuses 1 "connecting to no-such-host.invalid:3000: no host is called 'no-such-host.invalid'" \
  --link udp:127.0.0.1,port=0 latency no-such-host.invalid:3000

for name in 10.9.0.2:abc fe80::1:3000 10.9.0.2/99999:3000; do
  refuses 2 "connecting to $name: " --link udp:127.0.0.1,port=0 latency "$name"
done
# Before a link is looked for.
nowhere=stpd:$work/none.sock
refuses 2 "listening on :abc: no service is called 'abc'" --link "$nowhere" server --port :abc
refuses 2 "connecting to 10.9.0.2:abc: no service is called 'abc'" --link "$nowhere" latency 10.9.0.2:abc
STP_LINK=nonsense refuses 2 "nonsense" latency
# Level 0 takes the port behind that of the server, which has to be a number then.
start "$work/server.log" "$bin/stp-perf" --link udp:127.0.7.13 server --port :4294967295
server=$!
wait_for 20 contains "$work/server.log" listening || fail "stp-perf does not listen on the last port"
refuses 2 "level0 also uses the port behind '4294967295': let the server listen on a number, 1 to 4294967294" \
  --link udp:127.0.7.13,port=0 latency --op level0 127.0.7.13/8181:4294967295
stop "$server"

# A reason is told once.
said=$("$bin/stp-perf" --link "stpd:$work/none.sock" latency :3000 2>&1)
[[ $said == *"no daemon answers there: No such file or directory; start stpd, or name its socket in the link (stpd:PATH)" ]] ||
  fail "a missing daemon is reported as: $said"
