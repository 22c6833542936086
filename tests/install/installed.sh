#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# usage: installed.sh BUILD ROOT PACKAGE CC DEV-PACKAGE, in a mount namespace of its own, as root
# dpkg installs, upgrades and removes the packages over a copy-on-write view of this system.
# shellcheck source=setup.sh
. "$(dirname "$0")/setup.sh"
package=$(realpath "$3")
development=$(realpath "$5")
make_work_directory leave

leave() {
  stop "${started[@]}"
  umount -R /run /etc /var /usr "$work/layers" 2>/dev/null
  clean_up
}

# What is written below FOLDER disappears with the namespace.
cover() {
  mkdir -p "$work/layers/$1/upper" "$work/layers/$1/work" &&
    mount -t overlay -o "lowerdir=/$1,upperdir=$work/layers/$1/upper,workdir=$work/layers/$1/work" \
      overlay "/$1"
}
# An overlay on an overlay is not allowed everywhere: its upper layers lie in a file system of their own.
mkdir "$work/layers"
if ! { mount -t tmpfs tmpfs "$work/layers" && cover usr && cover var && cover etc &&
  mount -t tmpfs -o mode=0755 tmpfs /run; }; then
  echo "PASSED, without installing: no overlay file system here"
  exit 0
fi

rm -f /var/lib/man-db/auto-update # or each change of a package reads all manual pages again
# Not the copies of the lists of users, which the last change leaves.
files_of_system() {
  find /usr /etc /var/lib -xdev ! -path '/var/lib/dpkg*' ! -path '/etc/ld.so.cache' ! -path '/etc/*-' \
    ! -path /etc/.pwd.lock | LC_ALL=C sort
}
# The dissector lies where tshark looks for it.
dissector_of_package() {
  command -v tshark >/dev/null || return 0
  HOME=$work tshark -r "$root/captures/write.pcapng" -O stp-st >"$work/decoded" 2>&1
  expect grep -q '^    Operation: RTS' "$work/decoded"
}
is_installed() { [ "$(dpkg-query -W -f '${db:Status-Status}' stp 2>/dev/null)" = installed ]; }

quietly dpkg --purge stp-dev stp # one that this machine has
files_of_system >"$work/before"
quietly dpkg --install "$package"
expect is_installed
if command -v systemd-sysusers >/dev/null; then
  expect getent passwd stpd stp-recv >"$work/users"
  expect [ "$(wc -l <"$work/users")" = 2 ]
fi
expect test ! -e /usr/include/stp
dissector_of_package
quietly dpkg --install "$development"
quietly dpkg --install "$package" # an upgrade
for name in $(dpkg --listfiles stp | sed -nE 's|^/usr/s?bin/||p'); do quietly "$name" --help; done
expect grep -q '=> /[a-z/0-9_-]*/libstp.so.0' <(ldd "$(command -v stp-send)")
consumers /usr "$4"

# A file goes through the daemon, with all defaults, and the daemon ends.
start "$work/stpd.log" stpd --link loop
daemon=$!
expect wait_for 10 test -S /run/stpd/stpd.sock
expect grep -q loop <(stpctl links)
mkdir "$work/arrived"
start "$work/recv.log" stp-recv --listen :3000 --out "$work/arrived" --once
expect wait_for 10 contains "$work/recv.log" listening
quietly timeout 30 stp-send "$package" :3000
expect cmp "$package" "$work/arrived/$(basename "$package")"
stop "$daemon"
expect test ! -e /run/stpd/stpd.sock

quietly dpkg --remove stp-dev stp
quietly dpkg --purge stp-dev stp
expect test ! -e /usr/sbin/stpd
files_of_system | diff "$work/before" - || fail "the package leaves or takes files when it is removed"
echo "PASSED"
