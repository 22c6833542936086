#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# usage: configure.sh BUILD ROOT
# No command that configures a build directory prevents a later one: tools/demo and the documented
# commands, with and without -G, and a package that is installed in between. In a copy of the sources.
# shellcheck source=setup.sh
. "$(dirname "$0")/setup.sh"
# shellcheck source=../../tools/lib/build.sh
. "$root/tools/lib/build.sh"
make_work_directory
command -v ninja >/dev/null || { echo "SKIPPED: no ninja here"; exit 77; }
mkdir "$work/copy"
tar -C "$root" --exclude='./build*' --exclude=./.git -cf - . | tar -C "$work/copy" -xf - || fail "no copy"
cd "$work/copy" || exit 1

# has TARGET: whether the build directory has that target now.
has() { grep -qE "^(\.\.\. )?$1(:|$| )" <(cmake --build build --target help 2>/dev/null); }
has_not() { ! has "$1"; }

# As tools/demo does, on a machine without libdapl-dev.
quietly configure release -DSTP_TESTS=OFF -DDAT2_INCLUDE_DIR= -DDAT2_LIBRARY=
expect has stpd
expect has_not dat
expect test ! -e build/tests/CTestTestfile.cmake

# As README.md says. The package has been installed meanwhile: CMake searches for it again.
quietly cmake --preset release -U 'DAT2_*'
expect test -e build/tests/CTestTestfile.cmake
if [ -e /usr/include/dat2/udat.h ]; then expect has dat; fi
# Each of these takes seconds: --long.
if [ -n "${STP_LONG-}" ] && [ -e /usr/include/dat2/udat.h ]; then
  quietly cmake --preset release -G Ninja -DSTP_UDAPL=OFF
  expect has_not dat
  quietly cmake --preset release
  expect has dat
fi

# The user has chosen make: the scripts keep using it.
[ -n "${STP_LONG-}" ] || { echo PASSED; exit 0; }
rm -r build
quietly cmake --preset release -G "Unix Makefiles" -DSTP_MAN=OFF -DSTP_TESTS=OFF
quietly configure release -DSTP_TESTS=OFF
expect grep -qx 'CMAKE_GENERATOR:INTERNAL=Unix Makefiles' build/CMakeCache.txt
expect has man
! cmake --preset release -G "Unix Makefiles" -DSTP_UDAPL=perhaps >"$work/said" 2>&1 || fail "perhaps is accepted"
expect grep -q 'STP_UDAPL is ON, OFF or AUTO' "$work/said"
echo PASSED
