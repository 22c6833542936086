#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# usage: prefix.sh BUILD ROOT CC
# After `cmake --install --prefix` to any directory, the programs run from there without further
# settings, and programs of others find library and headers there.
# shellcheck source=setup.sh
. "$(dirname "$0")/setup.sh"
make_work_directory
prefix=$work/opt
quietly cmake --install "$build" --prefix "$prefix"

no_file_of_state_threads "$work"
programs_and_pages "$prefix"
for file in "$prefix"/bin/* "$prefix"/sbin/*; do
  quietly "$file" --help
  expect grep -qE ' [0-9]+\.[0-9]+\.[0-9]+' <("$file" --version)
done
if grep -rlF -e "$build" -e "$root" "$prefix/lib" "$prefix/share" --include=*.pc --include=*.cmake \
  --include=*.service; then
  fail "a file that is installed names the directory it was built in"
fi
consumers "$prefix" "$3" all
xargs -d '\n' rm -f <"$build/install_manifest.txt" # as README.md says
expect [ -z "$(find "$prefix" ! -type d)" ]
echo "PASSED"
