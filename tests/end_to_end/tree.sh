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
expect wait_for 10 contains "$work/receiver.log" "large: "
before=$(part_size)
say "$before bytes of the large file are there"

say "sent again, it goes on"
expect send_from a 120 -r "$tree" 10.9.0.2:3000 >"$work/sent"
expect [ "$(listing "$tree")" = "$(listing "$work/out/tree")" ]
expect diff -r --no-dereference "$tree" "$work/out/tree"
bytes=$(sed -nE 's/.* ([0-9]+) bytes in .*/\1/p' "$work/sent")
expect [ "$bytes" -le $((megabytes * 1048576 - before + 900000)) ]
expect grep -qE '; [0-9]+ bytes more were there already' "$work/sent"

say "sent once more, nothing travels"
expect send_from a 120 -r "$tree" 10.9.0.2:3000 >"$work/sent"
expect grep -qF "42 files (42 unchanged)" "$work/sent"
expect grep -qF " 0 bytes in " "$work/sent"

say "with --checksum a change is found, whatever its size and time say"
cp -p "$tree/sub/f9" "$work/f9"
printf "not at random" | dd of="$tree/sub/f9" bs=1 seek=4000 conv=notrunc status=none
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
say "the first rule that matches decides, also one of a file"
printf '%s\n' '# rules' '+ f2' '- f*' >"$work/rules"
expect send_from a 120 -v -r --include f3 --exclude-from "$work/rules" --include 'f*' --exclude none --into some/place \
  --chmod D750,Fu=rw,Fgo= "$work/part" 10.9.0.2:3000 >"$work/sent"
expect [ "$(cd "$work/out/some/place" && find . | sort | xargs)" = \
  ". ./part ./part/sub ./part/sub/empty ./part/sub/f2 ./part/sub/f3 ./part/sub/link" ]
expect same "$tree/sub/f2" "$work/out/some/place/part/sub/f2"
expect [ "$(stat -c %a "$work"/out/some "$work"/out/some/place/part/sub{,/f2} | xargs)" = "755 750 600" ]
expect grep -qxF "$work/part/sub/f2: 2000 bytes" "$work/sent"

say "a symbolic link that leads nowhere is sent as what it is"
ln -s nowhere "$work/lonely"
expect send_from a 120 -r "$work/lonely" 10.9.0.2:3000
expect [ "$(readlink "$work/out/lonely")" = nowhere ]

say "of a list what it names arrives, with the directories on the way"
find "$work/part" -name 'f1[0-2]' -printf '%P\0' >"$work/list"
expect send_from a 120 --files-from "$work/list" --name listed "$work/part" 10.9.0.2:3000
expect [ "$(cd "$work/out/listed" && find . | sort | xargs)" = ". ./sub ./sub/f10 ./sub/f11 ./sub/f12" ]
say "with --dry-run nothing is sent, and the sum is that of the real one"
cp -r "$tree/sub" "$work/dry"
expect send_from a 120 -n -r "$work/dry" 10.9.0.2:3000 >"$work/sent"
expect [ ! -e "$work/out/dry" ]
expect grep -qxF "would send $work/dry/f2: 2000 bytes" "$work/sent"
expect grep -qxF "would make $work/dry/empty" "$work/sent"
expect grep -qE "^would send $work/dry: 40 files \(0 unchanged\), 3 directories and symbolic links, 820000 bytes$" "$work/sent"
expect send_from a 120 -q -r "$work/dry" 10.9.0.2:3000
echo more >>"$work/dry/f7"
for how in --retry=1 --checksum; do
  expect send_from a 120 -n "$how" -r "$work/dry" 10.9.0.2:3000 >"$work/sent"
  expect grep -qxF "would send $work/dry/f7: 7005 bytes" "$work/sent"
  expect grep -qE "^would send $work/dry: 40 files \(39 unchanged\), 0 directories and symbolic links, 7005 bytes$" "$work/sent"
done
expect [ "$(stat -c %s "$work/out/dry/f7")" = 7000 ]
say "what is not in the tree is deleted only where the receiver permits it"
rm -r "$work/dry/empty" "$work/dry/f3"
send_from a 120 --delete -r "$work/dry" 10.9.0.2:3000 2>"$work/said" && fail "it was not refused"
expect says "$work/said" "--allow-delete"
expect [ -e "$work/out/dry/f3" ]
start_receiver deleting b "$work/out" 3001 --allow-delete
deleting=$!
await_receiver deleting
expect send_from a 120 --delete -r "$work/dry" 10.9.0.2:3001 >"$work/sent"
expect [ "$(listing "$work/dry")" = "$(listing "$work/out/dry")" ]
expect grep -qxF "deleted dry/f3" "$work/sent"
say "names of one file are sent as such where that is asked for"
mkdir "$work/names"
random_file "$work/names/a" 300000
ln "$work/names/a" "$work/names/b"
expect send_from a 120 -n -r -H "$work/names" 10.9.0.2:3001 >"$work/sent"
expect grep -qxF "would link $work/names/b" "$work/sent"
expect send_from a 120 -r -H "$work/names" 10.9.0.2:3001 >"$work/sent"
expect grep -qE ": 1 files \(0 unchanged\), 1 hard links, 1 directories and symbolic links, 300000 bytes" "$work/sent"
expect [ "$work/out/names/a" -ef "$work/out/names/b" ]
stop "$deleting"
passed
