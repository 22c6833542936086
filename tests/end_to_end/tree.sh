#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# stp-send -r: a tree arrives whole. After SIGKILL on either side, the transfer is resumed, not begun
# anew. Files that exist already are recognized by size and time, or by content.
. "$(dirname "$0")/setup.sh"
make_work_directory
link_kind=memif
start_pair
tree=$work/tree
mkdir -p "$tree/sub/empty" "$tree/read-only"
for i in $(seq 1 40); do random_file "$tree/sub/f$i" $((i * 1000)); done
megabytes=64
[ -z "${STP_LONG-}" ] || megabytes=300
random_file "$tree/large" "${megabytes}M"
ln -s ../large "$tree/sub/link"
ln -s nowhere "$tree/dangling"
random_file "$tree/read-only/file" 10
chmod 0500 "$tree/read-only"
chmod 0640 "$tree/sub/f3"
touch -d '2001-02-03 04:05:06.789' "$tree/sub/f1" "$tree/sub" "$tree/sub/empty"

# listing DIRECTORY: everything that a copy must have in common with its original.
listing() { (cd "$1" && find . -printf '%p %y %m %T@ %s %l\n' | sed -E '/ d /s/ [0-9]+ $//' | sort); }
part_size() { find "$work/out" -name '.stp-recv.*' -printf '%s\n' | sort -n | tail -n 1; }
has_part() { [ "$(part_size || echo 0)" -gt 1000000 ] 2>/dev/null; }

start_receiver receiver b "$work/out" 3000
receiver=$!
await_receiver receiver

say "the sender is killed half way"
start "$work/broken.log" "$bin/stp-send" --link "stpd:$work/a.sock" --bwlimit 32M -r "$tree" 10.9.0.2:3000
sender=$!
expect wait_for 30 has_part
kill_at_once "$sender"
expect wait_for 10 grep -q "large: " "$work/receiver.log"
before=$(part_size)
say "$before bytes of the large file are there"

say "sent again, it goes on"
expect send_from a 120 -r "$tree" 10.9.0.2:3000 >"$work/sent"
expect [ "$(listing "$tree")" = "$(listing "$work/out/tree")" ]
expect diff -r --no-dereference "$tree" "$work/out/tree"
bytes=$(sed -nE 's/.* ([0-9]+) bytes in .*/\1/p' "$work/sent")
expect [ "$bytes" -le $((megabytes * 1048576 - before + 900000)) ]

say "sent once more, nothing travels"
expect send_from a 120 -r "$tree" 10.9.0.2:3000 >"$work/sent"
expect grep -qF "42 files (42 unchanged)" "$work/sent"
expect grep -qF " 0 bytes in " "$work/sent"

say "with --checksum a change is found, whatever its size and time say"
cp -p "$tree/sub/f9" "$work/f9"
printf x | dd of="$tree/sub/f9" bs=1 seek=4000 conv=notrunc status=none
touch -r "$work/f9" "$tree/sub/f9"
expect send_from a 120 --checksum -r "$tree" 10.9.0.2:3000 >"$work/sent"
expect grep -qF "42 files (41 unchanged)" "$work/sent"
expect same "$tree/sub/f9" "$work/out/tree/sub/f9"

say "what is excluded stays"
mkdir "$work/part"
cp -r "$tree/sub" "$work/part/sub"
expect send_from a 120 -r --exclude 'f1*' --exclude empty/ "$work/part" 10.9.0.2:3000 >"$work/sent"
expect [ ! -e "$work/out/part/sub/f1" ]
expect [ ! -e "$work/out/part/sub/f12" ]
expect [ ! -e "$work/out/part/sub/empty" ]
expect same "$tree/sub/f2" "$work/out/part/sub/f2"
passed
