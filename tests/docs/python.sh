#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# usage: python.sh ROOT BUILD
# README's first programs answer each other by the commands that it shows; the programs and commands of docs/python.md
# that follow a line <!-- run --> succeed; its table has each exception.
set -uo pipefail
root=$(realpath "$1") build=$(realpath "$2")
program=python
# shellcheck source=../../tools/lib/common.sh
. "$root/tools/lib/common.sh"
# Ports of its own, where that is allowed.
if [ -z "${STP_OWN_PORTS-}" ] && unshare --net true 2>/dev/null; then
  STP_OWN_PORTS=1 exec unshare --net bash "$0" "$root" "$build"
fi
[ -z "${STP_OWN_PORTS-}" ] || ip link set lo up
make_work_directory
# Debian's Python, as in the build; from a folder that has what the commands name.
mkdir "$work/bin" "$work/root"
ln -s /usr/bin/python3 "$work/bin/"
[ -x "$work/bin/python3" ] || rm "$work/bin/python3"
ln -s "$root"/* "$work/root/"
ln -sfn "$build" "$work/root/build"
export PATH="$work/bin:$PATH" PYTHONDONTWRITEBYTECODE=1
cd "$work/root" || exit 1

mapfile -t commands < <(grep -E '^STP_LINK=.*tools/examples/hello_' README.md)
[ ${#commands[@]} -eq 2 ] || fail "README.md shows ${#commands[@]} commands"
start "$work/receive.log" bash -c "${commands[0]}"
receiver=$!
wait_for 60 contains "$work/receive.log" listening || { cat "$work/receive.log"; fail "${commands[0]}"; }
timeout 60 bash -c "${commands[1]}" >"$work/send.log" 2>&1 || { cat "$work/send.log"; fail "${commands[1]}"; }
wait "$receiver" || { cat "$work/receive.log"; fail "the receiver has failed"; }
contains "$work/send.log" "I have read it" || fail "no answer"
contains "$work/receive.log" "Hello from the other program" || fail "no message"

mkdir "$work/blocks"
awk -v folder="$work/blocks/" '
  $0 == "<!-- run -->" { marked = 1; next }
  marked && /^```(sh|python)$/ { file = folder sprintf("%02d.", ++count) substr($0, 4); marked = 0; next }
  /^```$/ { file = ""; next }
  file != "" { print >file }' docs/python.md
set -- "$work"/blocks/*
[ $# -ge 4 ] || fail "only $# programs found in docs/python.md"
for block; do
  case $block in
    *.sh) timeout 60 bash -e "$block" ;;
    *.python) PYTHONPATH=build/python timeout 60 python3 "$block" ;;
  esac >"$work/log" 2>&1 || { cat "$block" "$work/log"; fail "docs/python.md: this does not work"; }
done

diff <(grep -oE '^\| `stp\.[A-Za-z]+`' docs/python.md | sed 's/.*stp\.//; s/`//' | sort) \
  <(sed -nE 's/^class ([A-Za-z]+)\(.*/\1/p' libst/python/stp/_errors.py | grep -vx Error | sort) ||
  fail "docs/python.md lists other exceptions than there are"
echo "PASSED: $# programs"
