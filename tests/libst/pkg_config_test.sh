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
