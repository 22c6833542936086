#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# usage: pip.sh BUILD ROOT
# `pip install .` puts the package for Python into a fresh virtual environment, without a network: against the library of
# this build, as docs/python.md says. It works there, and is gone after `pip uninstall`. tools/test --long runs it, because
# compilers do.
# shellcheck source=setup.sh
. "$(dirname "$0")/setup.sh"
# What a source distribution has, and that nothing which the sources include is missing there. Always.
cd "$root" || exit 1
# shellcheck disable=SC2207  # the patterns of MANIFEST.in
distributed=($(sed -n 's/^include //p' MANIFEST.in))
for header in $(sed -n 's/^#include "\(.*\)"$/\1/p' libst/python/*.cpp "${distributed[@]}" | sort -u); do
  case " ${distributed[*]} " in
    *" $header "*) ;;
    *) fail "MANIFEST.in lacks $header, which libst/python includes" ;;
  esac
done
[ -n "${STP_LONG-}" ] || { echo "SKIPPED: tools/test --long runs it"; exit 77; }
[ -e "$build/python/stp" ] || { echo "SKIPPED: this build has no package for Python"; exit 77; }
for module in ensurepip pip setuptools wheel; do
  "$python" -c "import $module" 2>/dev/null ||
    { echo "SKIPPED: no $module here; tools/test --long installs it"; exit 77; }
done
make_work_directory
# Only what git has: a build folder of an earlier try says nothing.
mkdir "$work/sources" "$work/elsewhere"
(cd "$root" && cp -a pyproject.toml setup.py MANIFEST.in LICENSE README.md libst docs "$work/sources" &&
  cp -a --parents "${distributed[@]}" "$work/sources")
cd "$work/sources" || exit 1
quietly "$python" -m venv --system-site-packages "$work/venv"
clean=(env -i HOME="$work" PATH="$work/venv/bin:/usr/bin:/bin" PIP_NO_INDEX=1 PIP_DISABLE_PIP_VERSION_CHECK=1)

! "${clean[@]}" PKG_CONFIG_LIBDIR=/nowhere pip install --no-build-isolation . >"$work/said" 2>&1 ||
  fail "it is installed without libst"
expect grep -q 'libst is missing: install the Debian package stp-dev' "$work/said"
quietly "${clean[@]}" PKG_CONFIG_PATH="$build/lib/pkgconfig" pip install --no-build-isolation .

cd "$work/elsewhere" || exit 1
quietly "${clean[@]}" python -c '
import sys, stp, stp.aio
assert stp.__file__.startswith(sys.argv[1]), stp.__file__
with stp.Domain("loop") as domain:
    assert domain.link().state == "up"' "$work/venv/"
quietly "${clean[@]}" python -m stp --link loop info
expect grep -qx 'state up' "$work/said"
expect test "$("${clean[@]}" pip show stp 2>/dev/null | sed -n 's/^Version: //p')" = \
  "$(sed -nE 's/^project\(stp VERSION ([0-9.]+).*/\1/p' "$root/CMakeLists.txt")"
for file in py.typed _stp.pyi; do expect test -e "$work"/venv/lib/python3*/site-packages/stp/"$file"; done
quietly "${clean[@]}" pip uninstall --yes stp
expect test -z "$(find "$work/venv" -path '*site-packages/stp*')"
echo PASSED
