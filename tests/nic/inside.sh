#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# inside.sh BUILD uio|vfio LONG [pull:]MODEL,ADDRESS,ADDRESS...: runs in the guest. With pull: the first
# NIC is taken away while it is used, and put back. Steps have no time limits, because an emulated
# machine may be thirty times slower than another. A wait ends when the awaited output comes or its
# program ends. Only the guest as a whole has a time limit.
set -u
# shellcheck disable=SC2034 # used by common.sh
build=$1 access=$2 long=$3 program=nic
bin=$build/bin
tools=$(dirname "$0")/../../tools
# shellcheck source=../../tools/lib/common.sh
. "$tools/lib/common.sh"
# shellcheck source=../../tools/lib/daemons.sh
. "$tools/lib/daemons.sh"
shift 3
make_work_directory
case $access in uio) driver=uio_pci_generic ;; vfio) driver=vfio-pci ;; esac

note() { printf '[%s s] %s\n' "$(cut -d' ' -f1 /proc/uptime)" "$*"; }
expect() {
  "$@" || {
    tail -n 20 "$work"/*.log
    fail "not true: $*"
  }
}
# await PID LOG PATTERN: waits until the program has printed PATTERN or has ended.
await() {
  until grep -q -- "$3" "$2"; do
    kill -0 "$1" 2>/dev/null || {
      grep -q -- "$3" "$2" && return
      cat "$2"
      fail "ended without saying '$3'"
    }
    sleep 0.1
  done
}
counter() { "$bin/stpctl" --socket "$work/$1.sock" stats --all | awk -v name="$2" '$1 == name { print $2 }'; }

# DPDK would load all installed drivers, about a hundred, over a slow file system. Here it gets those
# of these NICs only. They keep their names, because DPDK accepts no others.
keep_few_drivers() {
  local all each
  all=$(echo /usr/lib/*/dpdk/pmds-*)
  mkdir /run/drivers
  for each in bus_pci bus_vdev mempool_ring mempool_stack net_e1000 net_virtio net_vmxnet3; do
    cp -a "$all/librte_$each.so"* /run/drivers/
  done
  mount --bind /run/drivers "$all"
}

driver_of() { basename "$(readlink "/sys/bus/pci/devices/$1/driver")"; }
bind_to_driver() { # ADDRESS
  local device=/sys/bus/pci/devices/$1
  echo "$driver" >"$device/driver_override"
  if [ -e "$device/driver" ]; then echo "$1" >"$device/driver/unbind"; fi
  echo "$1" >/sys/bus/pci/drivers_probe
  expect [ "$(driver_of "$1")" = "$driver" ]
}

# refuses LINK WORDS [PREFIX...]: stpd does not open LINK, and its message contains WORDS.
refuses() {
  local link=$1 words=$2
  shift 2
  "$@" "$bin/stpd" --link "$link" --socket "$work/refused.sock" >"$work/refused.log" 2>&1 && return 1
  note "refused: $(grep -F -m1 "$link" "$work/refused.log")"
  grep -qF -- "$words" "$work/refused.log"
}

begin() { # OPTIONS-OF-LINKS
  start_stpd a - "pci:$nic_a,address=10.9.0.1/24$1"
  stpd_a=$!
  start_stpd b - "pci:$nic_b,address=10.9.0.2/24$1"
  stpd_b=$!
  await $stpd_a "$work/a.log" '^stpd: ready'
  await $stpd_b "$work/b.log" '^stpd: ready'
}
finish() {
  local each
  kill -TERM $stpd_a $stpd_b
  for each in $stpd_a $stpd_b; do expect wait $each; done
}
# In both directions, so that each NIC has sent and received full frames.
carry() { # FROM TO ADDRESS
  rm -rf "$work/out"
  start_receiver receiver "$2" "$work/out" 3000 --once
  local receiver=$!
  await $receiver "$work/receiver.log" '^listening on'
  expect "$bin/stp-send" -q --link "stpd:$work/$1.sock" "$work/file" "$3:3000"
  expect wait $receiver
  expect cmp "$work/file" "$work/out/file"
}
# Each way takes ten seconds: the short form goes there without VLAN and back with one.
exchange() { # WHAT
  [ "$long" != yes ] && [ "$1" = "VLAN 7" ] || carry a b 10.9.0.2
  [ "$long" != yes ] && [ "$1" = "MTU 1500" ] || carry b a 10.9.0.1
  # A full frame is received in one buffer. (If the machine stood still, it may have dropped some.)
  for side in a b; do expect [ "$(counter "$side" rx_chained)" = 0 ]; done
  note "carried: $1"
}

# What else this way to access a NIC refuses or needs.
without_hugepages() {
  local pages
  pages=$(cat /proc/sys/vm/nr_hugepages)
  echo 0 >/proc/sys/vm/nr_hugepages
  expect refuses "pci:$nic_a" hugepages
  echo "$pages" >/proc/sys/vm/nr_hugepages
}
without_root() {
  local group
  group=/dev/vfio/$(basename "$(readlink "/sys/bus/pci/devices/$nic_a/iommu_group")")
  local nobody=(setpriv --reuid=65534 --regid=65534 --clear-groups env "XDG_RUNTIME_DIR=$work/nobody")
  local little=(prlimit --memlock=8388608)
  install -d -m 700 -o 65534 "$work/nobody"
  chmod 711 "$work"
  expect refuses "pci:$nic_a" "may not open $group" "${nobody[@]}"
  chown 65534 "$group"
  expect refuses "pci:$nic_a" "RLIMIT_MEMLOCK is 8192 KiB" "${little[@]}" "${nobody[@]}"
  # What the error says is enough.
  local enough
  enough=$(sed -n 's/.*memory of frames, \([0-9]*\) MiB.*/\1/p' "$work/refused.log")
  start "$work/nobody.log" prlimit --memlock=$((enough << 20)) "${nobody[@]}" \
    "$bin/stpd" --link "pci:$nic_a" --socket "$work/nobody/stpd.sock"
  local daemon=$!
  await $daemon "$work/nobody.log" '^stpd: ready'
  kill -TERM $daemon
  expect wait $daemon
  rm -r "$work/nobody" "$work/nobody.log"
  chown 0 "$group"
  note "served by a user without rights"
}

check_model() { # MODEL ADDRESS ADDRESS
  nic_a=$2 nic_b=$3
  note "==== $1 under $driver"
  if [ -e "/sys/bus/pci/devices/$nic_a/driver" ]; then
    expect refuses "pci:$nic_a" "the kernel driver $(driver_of "$nic_a") holds $nic_a"
  else
    expect refuses "pci:$nic_a" "no driver holds $nic_a"
  fi
  bind_to_driver "$nic_a"
  bind_to_driver "$nic_b"
  case $access in uio) without_hugepages ;; vfio) without_root ;; esac
  begin ""
  "$bin/stpctl" --socket "$work/a.sock" --socket "$work/b.sock" links
  exchange "MTU 1500"
  case $access in
    uio) expect refuses "pci:$nic_a" "has an owner: stpd, pid $stpd_a" ;;
    vfio)
      expect refuses "pci:$nic_a" "another program"
      note "pinned: $(awk '/^VmLck/ { print $2 / 1024 }' "/proc/$stpd_a/status") MiB"
      expect [ "$(awk '/^VmLck/ { print $2 }' "/proc/$stpd_a/status")" -le 81920 ]
      ;;
  esac
  finish
  begin ",vlan=7"
  exchange "VLAN 7"
  finish
  if [ "$long" = yes ] && [ "$1" != vmxnet3 ]; then
    begin ",mtu=9000"
    exchange "MTU 9000"
    finish
  fi
}

# ---- a NIC that is pulled, and put back

# in_state SIDE STATE
in_state() {
  "$bin/stpctl" --socket "$work/$1.sock" stats --prometheus 2>/dev/null |
    grep -q "^stp_link_state{.*state=\"$2\"} 1$"
}
# await_true PID COMMAND...: not longer than the program lives.
await_true() {
  local pid=$1
  shift
  until "$@"; do
    [ -d "/proc/$pid/fd" ] && kill -0 "$pid" 2>/dev/null || {
      tail -n 20 "$work"/*.log
      fail "ended without: $*"
    }
    sleep 0.2
  done
}
is_removed() { [ ! -e "/sys/bus/pci/devices/$nic_a" ]; }
# What QEMU has not let go of yet it does not take again.
is_back() {
  is_removed || return 0
  echo @plug
  sleep 2
  ! is_removed
}
bytes_arrive() { [ -n "$(find "$work/out" -type f -size +0)" ]; }
ticks() { awk '{ print $14 + $15 }' "/proc/$1/stat"; }
# Less than a tenth of a core in one of these seconds: who waits for the NIC does so in each of them.
costs_little() { # PID
  local before
  for _ in {1..60}; do
    before=$(ticks "$1")
    sleep 1
    [ $(($(ticks "$1") - before)) -ge $(($(getconf CLK_TCK) / 10)) ] || return 0
  done
  return 1
}

pull() { # MODEL ADDRESS ADDRESS
  nic_a=$2 nic_b=$3
  note "==== $1 under $driver: pulled and put back"
  bind_to_driver "$nic_a"
  bind_to_driver "$nic_b"
  begin ""
  carry a b 10.9.0.2
  rm -rf "$work/out"
  start_receiver receiver b "$work/out" 3000
  local receiver=$! sender
  await $receiver "$work/receiver.log" '^listening on'
  "$bin/stp-send" -q --bwlimit 1M --name zeros --link "stpd:$work/a.sock" - 10.9.0.2:3000 \
    </dev/zero >"$work/sender.log" 2>&1 &
  sender=$!
  await_true $sender bytes_arrive

  note "under way"
  echo @pull
  await_true $stpd_a in_state a gone
  await_true $stpd_a is_removed
  note "the kernel has removed it"
  wait $sender && fail "a transfer over a NIC that is gone succeeds"
  note "the sender: $(cat "$work/sender.log")"
  expect grep -q "device $nic_a has been removed" "$work/sender.log"
  expect costs_little $stpd_a
  expect [ "$(grep -c ': gone: ' "$work/a.log")" -eq 1 ]
  "$bin/stpctl" --socket "$work/a.sock" links

  await_true $stpd_a is_back
  note "it is back"
  bind_to_driver "$nic_a"
  await_true $stpd_a in_state a up
  kill $receiver
  wait $receiver
  carry a b 10.9.0.2
  note "carried again"
  finish
}

keep_few_drivers
head -c 1M /dev/urandom >"$work/file"
for each in "$@"; do
  IFS=, read -r model first second <<<"$each"
  case $model in
    pull:*) pull "${model#pull:}" "$first" "$second" ;;
    *) check_model "$model" "$first" "$second" ;;
  esac
done
note PASSED
exec true # ends without the clean-up of common.sh, which takes a minute here: the machine ends anyway
