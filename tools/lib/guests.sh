# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# Installs what the virtual machines of tests/nic need. Where that is not possible, those tests are
# skipped with a reason. Sourced after build.sh.

guest_packages=(qemu-system-x86 busybox-static cpio kmod)
# Files of a kernel package: the kernel and its modules for the host's file system and for NICs under
# DPDK.
guest_files=('*/boot/vmlinuz-*' '*/modules.*' '*/kernel/drivers/uio/*' '*/kernel/drivers/vfio/*'
  '*/kernel/drivers/virtio/*' '*/kernel/fs/9p/*' '*/kernel/fs/netfs/*' '*/kernel/fs/fscache/*'
  '*/kernel/net/9p/*' '*/kernel/virt/lib/*')

# prepare_guests BUILD: installs the packages and unpacks a kernel to BUILD/guest-kernel. Does not
# change how this machine boots.
prepare_guests() {
  local missing
  [ "$(uname -m)" = x86_64 ] && command -v dpkg-query >/dev/null || return 0
  mapfile -t missing < <(packages=("${guest_packages[@]}") && missing_packages)
  if [ ${#missing[@]} -gt 0 ]; then
    say "installing with apt: ${missing[*]}"
    as_root_if_possible apt_install "${missing[@]}" ||
      { say "without ${missing[*]} no NICs are tried in virtual machines"; return 0; }
  fi
  [ -e "$1/guest-kernel" ] || unpack_kernel "$1/guest-kernel" ||
    say "without a kernel to unpack, NICs are tried with the one that this machine boots, or not at all"
}

# as_root_if_possible apt_install PACKAGE...
as_root_if_possible() {
  local prefix=()
  if [ "$(id -u)" -ne 0 ]; then
    may_sudo || return 1
    prefix=(sudo)
  fi
  "$1" "${prefix[@]}" -- "${@:2}"
}

kernel_package() {
  apt-cache depends linux-image-amd64 2>/dev/null | awk '/Depends: linux-image-/ { print $2; exit }'
}

unpack_kernel() { # DIRECTORY
  local package part=$1.part PATH=$PATH:/usr/sbin:/sbin
  package=$(kernel_package)
  [ -n "$package" ] || return 1
  say "unpacking a kernel for virtual machines: $package"
  rm -rf "$part" && mkdir -p "$part" || return 1
  (cd "$part" && timeout 600 apt-get -qq -oAcquire::Retries=3 download "$package") >&2 &&
    dpkg --fsys-tarfile "$part"/*.deb | tar -x -C "$part" --wildcards "${guest_files[@]}" 2>/dev/null
  rm -f "$part"/*.deb
  if [ ! -e "$part/lib" ]; then ln -s usr/lib "$part/lib"; fi
  depmod -b "$part" "$(basename "$part"/boot/vmlinuz-* | sed 's/^vmlinuz-//')" && mv "$part" "$1"
}
