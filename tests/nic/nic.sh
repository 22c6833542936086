#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# nic.sh BUILD [--long] uio|vfio [pull:]MODEL...: stpd on PCI NICs under DPDK. A guest has two NICs of
# each model, joined by a wire, and runs inside.sh. With pull:, which may be given once, they are
# behind ports at which they can be plugged. --long: only where STP_LONG is set, and with MTU 9000.
# Two models take about 70 s of processor time.
set -u
here=$(dirname "$(realpath "$0")")
build=$(realpath "$1") program=nic
# shellcheck source=../../tools/lib/common.sh
. "$here/../../tools/lib/common.sh"
# shellcheck source=guest.sh
. "$here/guest.sh"
shift

skip() {
  echo "SKIPPED: $*"
  exit 77
}
long=
if [ "$1" = --long ]; then
  [ -n "${STP_LONG-}" ] || skip "takes minutes: tools/test --long"
  long=yes
  shift
fi
access=$1
shift

[ "$(uname -m)" = x86_64 ] || skip "the guest and this machine are not of the same kind"
for needed in qemu-system-x86_64:qemu-system-x86 busybox:busybox-static cpio:cpio modprobe:kmod; do
  command -v "${needed%:*}" >/dev/null || skip "no ${needed%:*} here: apt-get install ${needed#*:}"
done
ldd "$(command -v busybox)" >/dev/null 2>&1 && skip "busybox needs libraries: apt-get install busybox-static"
find_kernel "$build" || skip "no kernel for a guest here, with 9p, uio and vfio: tools/test gets one"

# Slots 3 and up of the guest's bus: two for each model, at one hub.
nics=() pairs=() hub=0
options_of() { case $access,$1 in vfio,virtio-*) echo ,iommu_platform=on,disable-legacy=on ;; esac; }
add_nic() { # MODEL SLOT
  nics+=(-netdev "hubport,id=port$2,hubid=$hub"
    -device "$1$(options_of "$1"),netdev=port$2,addr=$(printf %x "$2"),mac=02:00:00:00:00:$(printf %02x "$2")")
}
# The firmware numbers the buses behind the two ports 1 and 2.
add_plugged() { # MODEL
  local each plug
  for each in 1 2; do
    plug="$1$(options_of "$1"),netdev=plug$each,bus=port$each,mac=02:00:00:00:01:0$each"
    if [ "$each" = 1 ]; then
      plug+=,id=pulled
      echo "$plug" >"$work/plug"
    fi
    nics+=(-device "pcie-root-port,id=port$each,chassis=$each,slot=$each,addr=1$each"
      -netdev "hubport,id=plug$each,hubid=100" -device "$plug")
  done
  pairs+=("pull:$1,0000:01:00.0,0000:02:00.0")
}
make_work_directory
for model in "$@"; do
  case $model in pull:*)
    add_plugged "${model#pull:}"
    continue
    ;;
  esac
  slot=$((3 + 2 * hub))
  add_nic "$model" $slot
  add_nic "$model" $((slot + 1))
  pairs+=("$(printf '%s,0000:00:%02x.0,0000:00:%02x.0' "$model" $slot $((slot + 1)))")
  hub=$((hub + 1))
done

case $access in
  uio) memory=1024 parameters=hugepages=300 ;;
  vfio)
    # Without hugepages: an IOMMU needs none.
    memory=1024 parameters="intel_iommu=on iommu=pt"
    nics+=(-device intel-iommu,intremap=on,caching-mode=on)
    ;;
esac
make_first_root /bin/bash "$here/inside.sh" "$build" "$access" "${long:-no}" "${pairs[@]}"
say "kernel $version"
run_guest 1700 "$memory" "$parameters" "${nics[@]}" || fail "not all that was asked of the NICs is so"
