#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# usage: rust.sh ROOT BUILD
# The program in Rust that docs/languages.md speaks of is compiled by Debian's rustc, and runs. Its numbers of events and
# flags are those of the header.
set -uo pipefail
root=$(realpath "$1") build=$(realpath "$2")
fail() { echo "FAILED: $*" && exit 1; }
rustc=/usr/bin/rustc
[ -x "$rustc" ] || {
  echo "SKIPPED: rustc is missing (Debian: rustc); tools/test --long installs it"
  exit 77
}
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
"$rustc" -O -D warnings "$root/tools/examples/message.rs" -L "$build/lib" || fail "it does not compile"
said=$(STP_LINK=loop LD_LIBRARY_PATH=$build/lib timeout 60 ./message) || fail "it ended with $?"
[ "$said" = "received with tag 7: Hello from Rust" ] || fail "it said: $said"
# NAME NUMBER of each enumerator of C, as its compiler counts.
cat >numbers.c <<'C'
#include <stdio.h>
#include <stp/managed.h>
int main(void) { printf("REQUEST %d\nRECEIVE %d\nLOCAL_WRITE %d\n", STM_REQUEST, STM_RECEIVE, STM_LOCAL_WRITE); }
C
"${CC:-cc}" -I "$root/libst/include" numbers.c -o numbers || fail "numbers.c does not compile"
diff <(sed -nE 's/^const ([A-Z_]+): [a-z_0-9]+ = ([0-9]+);.*/\1 \2/p' "$root/tools/examples/message.rs") <(./numbers) ||
  fail "its numbers are not those of <stp/managed.h>"
