#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# usage: packages.sh BUILD ROOT
# Builds the Debian packages once, to BUILD/tests/install/packages, for install.package and docs.tutorial. They are
# compressed only for lintian, which asks for it, with tools/test --long.
# shellcheck source=setup.sh
. "$(dirname "$0")/setup.sh"
made=$build/tests/install/packages
rm -rf "$made"
command -v dpkg-shlibdeps >/dev/null || { echo "SKIPPED: no dpkg-dev here"; exit 77; }
make_work_directory
mkdir -p "$made"
compression=none
[ -z "${STP_LONG-}" ] || compression=gzip
(cd "$build" && quietly cpack -G DEB -B "$work/packages" -D CPACK_DEBIAN_COMPRESSION_TYPE=$compression) || exit 1
mv "$work"/packages/*.deb "$made"
echo PASSED
