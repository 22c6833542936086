#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Programs say why they fail, on both sides if both know, and exit with the matching status.
. "$(dirname "$0")/setup.sh"
make_work_directory
link_kind=memif
start_pair
mkdir "$work/out"
random_file "$work/file" 1M
random_file "$work/fresh" 1K

# refused_with TEXT ARGUMENT...
refused_with() {
  local text=$1
  shift
  ! send_from a 30 "$@" >"$work/said" 2>&1 && says "$work/said" "$text"
}

expect refused_with "refused the connection: nobody listens" "$work/file" 10.9.0.2:3999
expect refused_with "does not answer" --connect-timeout 3 "$work/file" '[02:00:00:00:00:77]:3000'
expect refused_with "is not a destination: 'nonsense' does not have the form host:port (10.9.0.2:3000, or :3000 of this host)" \
  "$work/file" nonsense
"$bin/stp-send" --link iface:nowhere "$work/file" nonsense 2>"$work/said"
expect [ $? -eq 2 ]
expect says "$work/said" "is not a destination: 'nonsense' does not have the form host:port"
"$bin/stp-send" --link iface:nowhere "$work/file" 10.9.0.2:abc 2>"$work/said"
expect [ $? -eq 2 ]
expect says "$work/said" "is not a destination: no service is called 'abc'"
"$bin/stp-send" --link iface:nowhere "$work/file" 10.9.0.2:3000/9000 2>"$work/said"
expect says "$work/said" "HOST/UDPPORT:PORT"
"$bin/stp-send" --help | grep -q '^Usage: .* FILE\.\.\. HOST:PORT$' || fail "the usage of stp-send lacks HOST:PORT"
expect refused_with "is not a destination: '10.9.0.2:0': port '0' is not in 1.." "$work/file" 10.9.0.2:0

# What is wrong with the command line: the program, and the wrong option before whatever else.
expect refused_with "stp-send: there is no option --bwlimt" --bwlimt 3 "$work/file"
for wrong in "stp-send --bwlimt 3 x y:1" "stp-send x" "stp-send --bwlimit no x y:1" "stp-recv --out" \
  "stp-recv --out - --allow-delete" "stpd --no-such-option" "stpctl no-such-command" "stp-perf --no-such-option" \
  "stp-replay no-such-command" "stp-sim --no-such-option" \
  "stpd --link bogus:x" "stp-send --link bogus:x $work/file a:1" "stp-recv --link bogus:x --listen :1 --out $work" \
  "stp-perf --link bogus:x latency" "stpctl ping --link bogus:x a:1" "stpd --link loop --cpus 9999" \
  "stp-perf --link loop --cpu 9999 latency" "stpd --link loop --pcap-frames 3" "stpd --link loop --socket=" \
  "stpd --link loop --listen all:0" "stpd --link loop --max-clients 0" "stpctl --socket $work/none devices" \
  "stp-send --name ../x $work/file a:1"; do
  # shellcheck disable=SC2086
  "$bin/"$wrong >"$work/said" 2>&1
  [ $? -eq 2 ] || fail "another status than 2 of: $wrong"
done
for tool in "stp-send --bwlimit" "stpd --link" "stpctl --socket" "stp-perf --link"; do
  # shellcheck disable=SC2086
  ! "$bin/"$tool >"$work/said" 2>&1 || fail "no error of $tool"
  expect says "$work/said" "${tool/ /: }: the value is missing: '${tool% *} --help' shows"
done
! "$bin/stpd" --link loop --listen all:0 --listen user:no-such-user:1 2>"$work/said" || fail "no error of two rules"
expect line_of "$work/said" "stpd: --listen 'all:0': "
expect line_of "$work/said" "stpd: --listen 'user:no-such-user:1': there is no user"
! "$bin/stpctl" $'\033[31m' 2>"$work/said" || fail "a command of control characters"
expect says "$work/said" "stpctl: there is no command '?[31m'"
expect refused_with "stp-send: FILE... HOST:PORT is needed, and there is only $work/file" "$work/file"
# Contradictions, and options that would have no effect: before the link is looked for.
# refused_at_once TEXT ARGUMENT...
refused_at_once() { refused_with "stp-send: $1" "${@:2}" && ! contains "$work/said" "link stpd:"; }
for option in --hard-links --delete "--exclude a.o" "--include a.c" "--exclude-from $work/none"; do
  # shellcheck disable=SC2086
  expect refused_at_once "${option%% *} is for directories: it needs -r" $option "$work/file" 10.9.0.2:3000
done
expect refused_at_once "--name is for one FILE, and here are 2" --name x "$work/file" "$work/fresh" 10.9.0.2:3000
expect refused_at_once "an --include without a later --exclude" -r --exclude '*' --include a "$work" 10.9.0.2:3000
expect refused_at_once "--verbose and --quiet" -v -q "$work/file" 10.9.0.2:3000
expect refused_at_once "standard input is read only once" -r --exclude-from - "$work" - 10.9.0.2:3000 <"$work/fresh"
expect refused_at_once "--into: the value is empty" --into "" "$work/file" 10.9.0.2:3000
for rate in 0 0x0 x; do
  expect refused_at_once "--bwlimit: \"$rate\" is not a rate; write a number per second of bytes, as 4096, 0x1000" \
    --bwlimit "$rate" "$work/file" 10.9.0.2:3000
done
expect refused_with "nobody listens" --bwlimit 0x100000 "$work/file" 10.9.0.2:3999
expect refused_at_once "--chmod: \"q\" is no change" --chmod q "$work/file" 10.9.0.2:3000
expect refused_at_once "--files-from $work/none: cannot read it" -r --files-from "$work/none" "$work" 10.9.0.2:3000
expect refused_at_once "$work/file and $work/file would both arrive as file" "$work/file" "$work/file" 10.9.0.2:3000
# receiver_refuses TEXT ARGUMENT...
receiver_refuses() {
  ! timeout 20 "$bin/stp-recv" --link "stpd:$work/b.sock" --listen :3999 "${@:2}" >"$work/said" 2>&1 &&
    says "$work/said" "stp-recv: $1" && ! contains "$work/said" "link stpd:"
}
expect receiver_refuses "--allow-delete is for a directory" --out - --allow-delete
expect receiver_refuses "--per-peer has no effect with --once" --out - --per-peer 3
expect receiver_refuses "--per-peer has no effect with --once" --out "$work/out" --once --per-peer 3
# An address that is none stays so, however long one tries.
expect refused_with "is not a destination" --retry 600 "$work/file" nonsense
! timeout 20 "$bin/stp-recv" --link "stpd:$work/b.sock" --listen nonsense --out "$work/out" --retry 600 \
  >"$work/said" 2>&1 || fail "stp-recv listens on nonsense"
expect says "$work/said" "is not an address to listen on"
# Where no link is named, whoever waits does so for the stpd of this host, which may not have begun yet.
start "$work/waiting_sender.log" env -u STP_LINK "$bin/stp-send" --retry 600 "$work/file" 10.9.0.2:3000
start "$work/waiting_receiver.log" env -u STP_LINK "$bin/stp-recv" --retry 600 --listen :3999 --out "$work/out"
expect wait_for 10 contains "$work/waiting_sender.log" "trying again for 600 s (--retry)"
expect wait_for 10 contains "$work/waiting_receiver.log" "waiting for it"
stop "${started[@]: -2}"
# Nobody listens there, and nobody is asked if nothing is left to send.
mkfifo "$work/fifo"
"$python" -c 'import socket, sys; socket.socket(socket.AF_UNIX).bind(sys.argv[1])' "$work/socket"
for case in "nowhere: cannot read it: No such file" "fifo: is no regular file" "socket: is no regular file" \
  "out: is a directory; send it and all that it holds with -r"; do
  expect refused_with "$work/$case" "$work/${case%%:*}" 10.9.0.2:3999
  ! contains "$work/said" refused || fail "a receiver was asked though there is nothing to send"
done
# What is wrong with some files is told before a receiver is asked for the others.
expect refused_with "nobody listens" "$work/file" "$work/nowhere" "$work/fifo" 10.9.0.2:3999
expect [ "$(grep -oE 'No such file|no regular file|refused' "$work/said" | xargs)" = "No such file no regular file refused" ]
! "$bin/stp-recv" --out "$work/out" --lsten :3000 2>"$work/said" || fail "stp-recv takes any option"
expect says "$work/said" "stp-recv: there is no option --lsten"

start_receiver receiver b "$work/out" 3000
receiver=$!
await_receiver receiver
mkdir "$work/empty"
# With nothing to send, it disconnects while the two sides still set up the managed connection. Its
# end must not wait for that, in whichever order things happen.
for _ in $(seq "$([ -n "${STP_LONG-}" ] && echo 50 || echo 15)"); do
  expect send_from a 30 -q -r "$work/empty/." 10.9.0.2:3000
done
expect is_empty_directory "$work/out"

# A name that libst does not take is a wrong command line, too, and so is an address to listen on.
for name in 10.9.0.2:abc fe80::1:3000 10.9.0.2/99999:3000; do
  send_from a 30 "$work/file" "$name" >"$work/said" 2>&1
  expect [ $? -eq 2 ]
  expect says "$work/said" "\"$name\" is not a destination: "
done
timeout 20 "$bin/stp-recv" --link "stpd:$work/b.sock" --listen :abc --out "$work/out" >"$work/said" 2>&1
expect [ $? -eq 2 ]
expect says "$work/said" '":abc" is not an address to listen on: '

timeout 20 "$bin/stp-recv" --link "stpd:$work/b.sock" --listen '[02:00:00:00:00:77]:3999' --out "$work/out" >"$work/said" 2>&1
expect [ $? -eq 1 ]
expect says "$work/said" "write :PORT, or name the link of that address"

# A bad file among good ones does not stop the good ones.
expect refused_with "No such file" "$work/nowhere" "$work/file" 10.9.0.2:3000
expect same "$work/file" "$work/out/file"

# Output that cannot be written is an error, and the file arrives all the same.
rm "$work/out/file"
! send_from a 30 "$work/file" 10.9.0.2:3000 >/dev/full 2>"$work/said" || fail "no output was an error"
expect says "$work/said" "cannot write to standard output: No space left on device"
expect same "$work/file" "$work/out/file"
for name in stp-send stp-recv; do
  ! "$bin/$name" --help >/dev/full 2>"$work/said" || fail "$name --help"
  expect says "$work/said" "$name: cannot write to standard output"
  "$bin/$name" --help | tr -s ' \n' ' ' >"$work/said"
  expect says "$work/said" "memif:PATH or vdev:DEVICE, with options after commas: mtu="
done
! "$bin/stp-send" --link loop "$work/file" 10.9.0.2:3000 2>"$work/said" || fail "a file is sent on loop"
expect says "$work/said" "name one with --link or STP_LINK (iface:NAME, udp:, stpd:PATH), or start stpd"

# Without standard input there is nothing to read, and at once.
! timeout 30 "$bin/stp-send" --link "stpd:$work/a.sock" - 10.9.0.2:3000 <&- 2>"$work/said" ||
  fail "standard input is closed"
expect says "$work/said" "standard input is closed: Bad file descriptor"
timeout 20 "$bin/stp-recv" --link "stpd:$work/b.sock" --listen :3002 --out - >&- 2>"$work/said"
expect [ $? -eq 1 ]
expect says "$work/said" "standard output is closed"

# Without any of the three a receiver's messages go nowhere, least of all into its socket.
mkdir -p "$work/mute/taken"
start /dev/null bash -c 'exec "$@" <&- >&- 2>&-' - "$bin/stp-recv" --link "stpd:$work/b.sock" \
  --listen :3003 --out "$work/mute"
mute=$!
expect wait_for 20 send_from a 30 -q "$work/file" 10.9.0.2:3003
cp "$work/file" "$work/taken"
expect refused_with "Is a directory" "$work/taken" 10.9.0.2:3003
expect send_from a 30 "$work/fresh" 10.9.0.2:3003
expect same "$work/fresh" "$work/mute/fresh"
stop "$mute"

# Errors of the receiver.
mkdir "$work/out/taken"
cp "$work/file" "$work/taken"
expect refused_with "Is a directory" "$work/taken" 10.9.0.2:3000
expect wait_for 20 contains "$work/receiver.log" "taken: it is not written: Is a directory"
truncate -s 1P "$work/huge" 2>/dev/null || truncate -s 8T "$work/huge"
expect refused_with "not enough space in the receiver's directory for its $(stat -c %s "$work/huge") bytes" "$work/huge" 10.9.0.2:3000
rm -r "$work/out"
expect refused_with "check its --out directory" "$work/file" 10.9.0.2:3000
stop "$receiver"

# Writing fails during the transfer.
random_file "$work/long" 100M
mkdir "$work/limited"
# 65,536 KiB: a longer file cannot be
start "$work/limited.log" bash -c 'ulimit -f 65536 && exec "$@"' - "$bin/stp-recv" --link "stpd:$work/b.sock" \
  --listen :3001 --out "$work/limited"
limited=$!
await_receiver limited
expect refused_with "File too large; its file system, or its limit (ulimit -f), permits no file of that length" \
  "$work/long" 10.9.0.2:3001
expect is_empty_directory "$work/limited"
stop "$limited"

timeout 20 "$bin/stp-recv" --link "stpd:$work/nobody.sock" --listen :1 --out "$work" \
  >"$work/said" 2>&1
expect [ $? -eq 1 ]
expect says "$work/said" "nobody.sock: no daemon answers there"

# Where no socket can be.
# no_socket_at PATH TEXT
no_socket_at() { ! timeout 20 "$bin/stpd" --link loop --socket "$1" >"$work/said" 2>&1 && says "$work/said" "socket $1: $2"; }
ln -s nowhere "$work/dangling"
expect no_socket_at "$work/dangling" "a symbolic link that leads nowhere is there: remove it"
expect no_socket_at /proc/x.sock "no socket can be made in /proc (No such file or directory): name one elsewhere"
expect no_socket_at "$work/a/b/x.sock" "there is no directory $work/a: make it"
! timeout 20 "$bin/stpd" --link loop --socket "$work/x.sock" --pcap "$work/a/b" 2>"$work/said" || fail "a trace nowhere"
expect says "$work/said" "--pcap $work/a/b: No such file or directory: name a file elsewhere"
for tool in stp-send stp-recv stp-perf; do
  expect contains <("$bin/$tool" --version) "$tool "
done

# Where no thread is to be had. Root has no such limit, so another user runs them, who runs nothing else.
# of_few_threads MOST ARGUMENT...: a program that may have so many threads
of_few_threads() {
  timeout 20 setpriv --reuid 64321 --regid 64321 --clear-groups bash -c 'ulimit -u "$0" && exec "$@"' "$@" \
    >"$work/said" 2>&1
}
for most in 1 2; do
  ! of_few_threads "$most" "$bin/stp-send" --link udp:127.0.0.1,port=9731 "$bin/stp-send" 127.0.0.2:3000 ||
    fail "stp-send sends with $most threads"
  expect says "$work/said" "no thread can be started: raise ulimit -u, TasksMax or the pids limit"
  ! of_few_threads "$most" "$bin/stp-recv" --link udp:127.0.0.1,port=9731 --listen :1 --out - ||
    fail "stp-recv listens with $most threads"
  expect says "$work/said" "no thread can be started: raise ulimit -u, TasksMax or the pids limit"
done
expect of_few_threads 1 "$bin/stp-sim" --jobs 2 --seeds 1..2
expect says "$work/said" "1 of 2 --jobs: no thread can be started"

# A refusal of the daemon is printed in its words.
start "$work/strict.log" "$bin/stpd" --link loop --socket "$work/strict.sock" --max-endpoints 1 \
  --listen all:4000
strict=$!
expect wait_for 10 contains "$work/strict.log" ready
timeout 20 "$bin/stp-recv" --link "stpd:$work/strict.sock" --listen :1 --out "$work" >"$work/said" 2>&1
expect [ $? -eq 1 ]
expect says "$work/said" "all that --max-endpoints 1 of stpd allows"
stop "$strict"
passed
