#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# usage: pkg_config_test.sh CC PKGCONFIG_DIR SOURCE
# A program that is built with the flags from pkg-config runs without further settings.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
PKG_CONFIG_PATH=$2
export PKG_CONFIG_PATH
# shellcheck disable=SC2046
"$1" -std=c11 -Wall -Wextra -Wpedantic -Werror "$3" -o "$folder/program" \
  $(pkg-config --cflags --libs libst)
STP_LINK=loop "$folder/program"

# Of a prefix with a space in it.
sed 's,^\(libdir\|includedir\)=.*,\1=/a b/\1,' "$2/libst.pc" >"$folder/libst.pc"
PKG_CONFIG_PATH=$folder
eval "set -- $(pkg-config --cflags --libs libst)"
[ "$1" = "-I/a b/includedir" ]
[ "$2" = "-L/a b/libdir" ]
