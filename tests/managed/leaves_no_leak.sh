#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# usage: leaves_no_leak.sh CC PKGCONFIG_DIR SOURCE
# A program with LeakSanitizer, beside a library without it, ends in the middle of its work: no leak is found.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
PKG_CONFIG_PATH=$2
export PKG_CONFIG_PATH
echo 'int main(void) { return 0; }' >"$folder/empty.c"
if ! "$1" -fsanitize=address "$folder/empty.c" -o "$folder/empty" || ! "$folder/empty"; then
  echo "skipped: no program with AddressSanitizer can be built and run here"
  exit 77
fi
# shellcheck disable=SC2046
"$1" -fsanitize=address "$3" -o "$folder/program" $(pkg-config --cflags --libs libst)
ASAN_OPTIONS=detect_leaks=1 STP_LINK=loop "$folder/program"
