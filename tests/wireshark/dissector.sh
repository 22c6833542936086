#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# usage: dissector.sh ROOT [--accept]
# Compares what tshark prints for some of captures/ with tools/wireshark/stp-st.lua to expected/.
# --accept writes the output to expected/.
set -u
root=$1
accept=${2-}
here=$root/tests/wireshark
command -v tshark >/dev/null || { echo "no tshark: apt-get install --no-install-recommends tshark"; exit 77; }
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
export LC_ALL=C TZ=UTC HOME=$work XDG_CONFIG_HOME=$work
result=0

shark() { tshark -X "lua_script:$root/tools/wireshark/stp-st.lua" "$@" 2>"$work/errors"; }

columns=(-T fields -E header=y)
for name in _ws.col.Protocol _ws.col.Info stp-st.request_in stp-st.response_in stp-st.response_time stp-st.grant_in \
  stp-st.repeat_of stp-st.block_stus stp-st.block_bytes stp-st.block_complete stp-st.cksum_status stp-st.error \
  _ws.expert.message; do
  columns+=(-e "$name")
done

# Two passes, as in the window of Wireshark: the dissector knows later frames, too.
for trace in write write-stu-lost write-append put get fetch-repeated read connect-refused checksums \
  disconnect-crossed managed-messages broken-illegal-flags broken-bad-checksum broken-no-grant broken-ca-unasked; do
  shark -2 -r "$root/captures/$trace.pcapng" "${columns[@]}" >"$work/$trace.txt"
  [ "$accept" = --accept ] && cp "$work/$trace.txt" "$here/expected/"
  diff -u "$here/expected/$trace.txt" "$work/$trace.txt" || result=1
  ! grep -i 'lua' "$work/errors" || result=1
done

# expect COUNT FILE FILTER
expect() {
  local found
  found=$(shark -r "$root/captures/$2" -Y "$3" -T fields -e frame.number | wc -l)
  [ "$found" -eq "$1" ] || { echo "$3 selects $found frames of $2, not $1"; result=1; }
}
expect 3 write-blocks.pcapng 'stp-st.op == "CTS"'
expect 1 write-short.pcapng 'llc && stp-st.stu_length == 3'
expect 2 vlan.pcapng 'vlan.id == 7 && stp-st.op == "CTS" || stp-st.op == "RSR"'
expect 1 write-append.pcapng 'stp-st.append'
expect 1 write-managed.pcapng 'stp-st.option && stp-st.t_len == 1000'
expect 3 fetch-repeated.pcapng 'stp-st.function == "Fetch_Increment"'
expect 1 broken-exponents.pcapng 'stp-st.error contains "Bufsize"'
expect 1 broken-zero-length.pcapng 'stp-st.error contains "T_len 0"'
expect 2 managed-messages.pcapng 'stp-st.managed.hello == "request" || stp-st.managed.hello == "accept"'
expect 1 managed-messages.pcapng 'stp-st.managed.message == 3 && stp-st.managed.length == 101'
expect 2 managed-messages.pcapng 'stp-st.managed.message == 5'
expect 1 managed-messages.pcapng 'stp-st.managed.taken == 3 && stp-st.op == "NOP"'
expect 2 managed-messages.pcapng 'stp-st.managed.region == "ring"'
expect 1 managed-slots.pcapng 'stp-st.managed.slots == 8'
expect 1 managed-region.pcapng 'stp-st.managed.address == "0x7000" && stp-st.managed.access == 28'
expect 1 managed-no-receive.pcapng 'stp-st.managed.ended == "no receive"'
expect 4 managed-blocks.pcapng 'stp-st.managed.tag == 7 || stp-st.managed.message == 2'
expect 0 write-managed.pcapng 'stp-st.managed.message || stp-st.managed.tag'
expect 0 write.pcapng 'stp-st.error || _ws.lua.error || bpdu'

# The dissector has its own name, also in options: Wireshark's stp is the spanning tree protocol.
details=$(shark -r "$root/captures/write.pcapng" -O stp-st)
grep -q '^    Operation: RTS' <<<"$details" || { echo "-O stp-st shows no details"; result=1; }
details=$(shark -r "$root/captures/write.pcapng" -O stp)
! grep -q 'Operation: RTS' <<<"$details" || { echo "-O stp shows details of another protocol"; result=1; }
# If it is also loaded from the user's folder, nothing appears twice and there is no error.
mkdir -p "$work/.local/lib/wireshark/plugins"
cp "$root/tools/wireshark/stp-st.lua" "$work/.local/lib/wireshark/plugins/"
for load in -n "-Xlua_script:$root/tools/wireshark/stp-st.lua"; do
  tshark "$load" -r "$root/captures/write.pcapng" -Y 'stp-st.op == "CTS"' >"$work/found" 2>"$work/errors"
  [ "$(wc -l <"$work/found")" -eq 1 ] && ! grep -i lua "$work/errors" ||
    { echo "not found in the user's plug-ins ($load)"; result=1; }
done
exit $result
