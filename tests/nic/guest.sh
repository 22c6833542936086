# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# A virtual machine that runs one script, with the root of this machine, which it can only read.
# Sourced after common.sh.
PATH=$PATH:/usr/sbin:/sbin # where modprobe is

# find_kernel BUILD: sets $kernel, $modules_root and $version: the kernel that tools/test has unpacked,
# or one that this machine boots.
find_kernel() {
  local root
  for root in "$1/guest-kernel" ""; do
    for kernel in "$root"/boot/vmlinuz-*; do
      version=${kernel##*/vmlinuz-} modules_root=${root:-/}
      [ -r "$kernel" ] && has_modules && return
    done
  done
  return 1
}

# For the root of this machine, then for NICs under DPDK.
guest_modules=(virtio_pci 9pnet_virtio 9p uio_pci_generic vfio_iommu_type1 vfio-pci)
module_files() {
  local each
  for each in "${guest_modules[@]}"; do
    modprobe -d "$modules_root" -S "$version" --show-depends "$each" || return
  done
}
has_modules() { module_files >/dev/null 2>&1; }

# make_first_root WORD...: the file system that a guest begins with, at $work/first_root. It runs the
# command of those words.
make_first_root() {
  local root=$work/root file here
  here=$(dirname "${BASH_SOURCE[0]}")
  mkdir -p "$root/bin" "$root/modules"
  cp "$(command -v busybox)" "$root/bin/busybox"
  install -m 755 "$here/init" "$root/init"
  printf '%s\n' "$@" >"$root/task"
  module_files | awk '$1 == "insmod" && !seen[$2]++ { print $2 }' | while read -r file; do
    cp "$file" "$root/modules/" && basename "$file"
  done >"$root/modules/order"
  (cd "$root" && find . | cpio --quiet -o -H newc) >"$work/first_root"
}

# run_guest SECONDS MEGABYTES KERNEL-PARAMETERS QEMU-ARGUMENT...: shows what the guest says; its last
# line is its exit status. On the line @pull QEMU unplugs the device "pulled", on @plug it plugs the
# one that $work/plug describes. The machine is emulated, not virtualized: it is the same everywhere. Its processor is the
# oldest that DPDK takes, because longer vectors take longer to emulate.
run_guest() {
  local seconds=$1 memory=$2 parameters=$3
  shift 3
  : >"$work/status"
  mkfifo "$work/monitor.in" "$work/monitor.out" || return
  timeout -k 5 "$seconds" qemu-system-x86_64 -nodefaults -no-user-config -display none -no-reboot \
    -machine q35 -accel tcg,thread=multi -cpu Nehalem -smp 2 -m "$memory" -serial stdio \
    -chardev pipe,id=monitor,path="$work/monitor" -mon chardev=monitor,mode=readline \
    -kernel "$kernel" -initrd "$work/first_root" \
    -append "console=ttyS0 quiet panic=-1 random.trust_cpu=1 mitigations=off $parameters" \
    -virtfs local,path=/,mount_tag=outside,security_model=none,readonly=on,multidevs=remap \
    "$@" </dev/null 2>&1 | while IFS= read -r line; do
    line=${line%$'\r'}
    case $line in
      *"is not connected to host network" | *"unknown command: cafe"*) ;; # QEMU of itself
      @pull) echo "device_del pulled" >"$work/monitor.in" ;;
      @plug) echo "device_add $(cat "$work/plug")" >"$work/monitor.in" ;;
      "@status "*) echo "${line#@status }" >"$work/status" ;;
      *) printf '%s\n' "$line" ;;
    esac
  done
  [ "$(cat "$work/status")" = 0 ]
}
