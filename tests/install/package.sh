#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# usage: package.sh BUILD ROOT CC
# The Debian packages that packages.sh has built name their dependencies, and the programs run. What only
# builders of programs need is in stp-dev, and what people read in stp-doc. As root, the test installs the packages by dpkg, uses and
# removes them, in a namespace, so that this machine does not change.
# shellcheck source=setup.sh
. "$(dirname "$0")/setup.sh"
make_work_directory
made=$build/tests/install/packages
[ -d "$made" ] || { echo "SKIPPED: no packages have been built"; exit 77; }
package=$(echo "$made"/stp_*.deb)
development=$(echo "$made"/stp-dev_*.deb)
documents=$(echo "$made"/stp-doc_*.deb)
expect test -e "$package" -a -e "$development" -a -e "$documents"
version=$(dpkg-deb --field "$package" Version)
expect test "$(dpkg-deb --field "$development" Depends)" = "stp (= $version)"
expect test -z "$(dpkg-deb --info "$development" postinst 2>/dev/null)"
control() { dpkg-deb --field "$package" "$1"; }
expect test "$(control Package)" = stp
expect grep -qw libc6 <<<"$(control Depends)"
expect grep -qw librte-meta-net <<<"$(control Depends)"
# shlibs names the libraries that programs are linked with, by what they call themselves.
links_of_libraries() { dpkg-deb --fsys-tarfile "$package" | tar -t | sed -nE 's|.*/([^/]+)\.so\.([0-9]+)$|\1 \2|p'; }
expect diff <(links_of_libraries | sed "s/$/ stp (= $version)/" | sort -u) <(dpkg-deb --info "$package" shlibs | sort)
expect grep -qx 'activate-noawait ldconfig' <(dpkg-deb --info "$package" triggers)

packages=("$package" "$development" "$documents")
provider=$(echo "$made"/libfabric-provider-stp_*.deb)
if [ -e "$build/lib/libfabric/libstp-fi.so" ]; then
  expect test -e "$provider"
  expect grep -q 'libfabric/libstp-fi.so$' <(dpkg-deb --fsys-tarfile "$provider" | tar -t)
  expect grep -qF "stp (= $version)" <(dpkg-deb --field "$provider" Depends)
  expect grep -qw libfabric1 <(dpkg-deb --field "$provider" Depends)
  expect grep -q 'man7/fi_stp[.]7[.]gz$' <(dpkg-deb --fsys-tarfile "$provider" | tar -t)
  ! dpkg-deb --fsys-tarfile "$development" | tar -t | grep -q fi_stp || fail "fi_stp(7) is in stp-dev, too"
  packages+=("$provider")
fi
python=$(echo "$made"/python3-stp_*.deb)
if [ -e "$build/python/stp" ]; then
  expect test -e "$python"
  expect grep -q 'dist-packages/stp/_stp[.].*[.]so$' <(dpkg-deb --fsys-tarfile "$python" | tar -t)
  expect grep -q 'dist-packages/stp/py.typed$' <(dpkg-deb --fsys-tarfile "$python" | tar -t)
  expect grep -qF "stp (= $version)" <(dpkg-deb --field "$python" Depends)
  expect grep -qw 'python3 (<< 3[.][0-9]*)' <(dpkg-deb --field "$python" Depends)
  # Links to the sources would lead nowhere.
  expect test -z "$(dpkg-deb --fsys-tarfile "$python" | tar -tv | grep ' -> ')"
  packages+=("$python")
fi
# lintian takes longer than all the rest.
if [ -n "${STP_LONG-}" ] && command -v lintian >/dev/null; then
  expect lintian --allow-root --fail-on error,warning "${packages[@]}"
fi

# No file is in two packages.
names_in() { dpkg-deb --fsys-tarfile "$1" | tar -t | grep -v '/$' | sort; }
names_in "$package" >"$work/names"
names_in "$development" >"$work/names-dev"
names_in "$documents" >"$work/names-doc"
expect test -z "$(sort "$work/names" "$work/names-dev" "$work/names-doc" | uniq -d)"
expect test -z "$(grep -E '[.](md|svg|pcapng)$' "$work/names")"
expect grep -q 'usr/include/stp/st.h$' "$work/names-dev"
for part in usr/include/ '\.so$' '/pkgconfig/' '/cmake/' '/man3/' 'examples/.*\.c$' 'examples/.*\.rs$'; do
  expect grep -qE "$part" "$work/names-dev"
  ! grep -E "$part" "$work/names" || fail "that belongs into stp-dev"
done

tree=$work/tree
dpkg-deb --extract "$package" "$tree"
dpkg-deb --extract "$development" "$tree"
dpkg-deb --extract "$documents" "$tree"
expect test -e "$tree/usr/share/doc/stp-dev/copyright" -a -e "$tree/usr/share/doc/stp/copyright"
no_file_of_state_threads "$tree"
programs_and_pages "$tree/usr"
unit=$tree/usr/lib/systemd/system/stpd.service
expect grep -q '^ExecStart=/usr/sbin/stpd ' "$unit"
expect grep -q '^ExecStart=/usr/bin/stp-recv ' "$tree/usr/lib/systemd/system/stp-recv.service"
expect test -e "$tree/usr/share/doc/stp/examples/stpd.conf" -a \
  -e "$tree/usr/share/doc/stp/examples/stpd.service.d/udp.conf"
# The users of the units, which are there before the units start.
for name in stpd stp-recv; do
  expect grep -qx "User=$name" "$tree/usr/lib/systemd/system/$name.service"
  expect grep -q "^u $name " "$tree/usr/lib/sysusers.d/stp.conf"
done
library=$(dirname "$(find "$tree" -name 'libstp.so.0')")
for file in "$tree"/usr/bin/* "$tree"/usr/sbin/*; do
  LD_LIBRARY_PATH=$library quietly "$file" --help
  expect grep -qF " $version" <(LD_LIBRARY_PATH=$library "$file" --version)
done

if ! unshare --mount true 2>/dev/null; then
  echo "PASSED, without installing: that takes root"
  exit 0
fi
unshare --mount bash "$(dirname "$0")/installed.sh" "$build" "$root" "$package" "$3" "$development"
