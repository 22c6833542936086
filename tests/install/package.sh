#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# usage: package.sh BUILD ROOT CC
# The Debian package can be built, says what it needs, and its programs run. As root it is installed,
# used and removed by dpkg, in a namespace that leaves this machine as it is.
# shellcheck source=setup.sh
. "$(dirname "$0")/setup.sh"
make_work_directory
command -v dpkg-shlibdeps >/dev/null || { echo "SKIPPED: no dpkg-dev here"; exit 77; }

(cd "$build" && quietly cpack -G DEB -B "$work/packages") || exit 1
package=$(echo "$work"/packages/*.deb)
control() { dpkg-deb --field "$package" "$1"; }
expect test "$(control Package)" = stp
expect grep -qw libc6 <<<"$(control Depends)"
expect grep -qw librte-meta-net <<<"$(control Depends)"
expect grep -qx 'libstp 0 stp.*' <(dpkg-deb --info "$package" shlibs)
expect grep -qx 'activate-noawait ldconfig' <(dpkg-deb --info "$package" triggers)

if command -v lintian >/dev/null; then
  expect lintian --allow-root --fail-on error,warning "$package"
fi

tree=$work/tree
dpkg-deb --extract "$package" "$tree"
no_file_of_state_threads "$tree"
programs_and_pages "$tree/usr"
unit=$tree/usr/lib/systemd/system/stpd.service
expect grep -q '^ExecStart=/usr/sbin/stpd ' "$unit"
expect grep -q '^ExecStart=/usr/bin/stp-recv ' "$tree/usr/lib/systemd/system/stp-recv.service"
expect test -e "$tree/usr/share/doc/stp/examples/stpd.conf"
library=$(dirname "$(find "$tree" -name 'libstp.so.0')")
for file in "$tree"/usr/bin/* "$tree"/usr/sbin/*; do
  LD_LIBRARY_PATH=$library quietly "$file" --help
done

if ! unshare --mount true 2>/dev/null; then
  echo "PASSED, without installing: that takes root"
  exit 0
fi
unshare --mount bash "$(dirname "$0")/installed.sh" "$build" "$root" "$package" "$3"
