#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# usage: exports_test.sh NM LIBRARY
# The library defines st_* under LIBST_0, and nothing else.
set -eu
symbols=$("$1" --dynamic --defined-only --with-symbol-versions "$2" | awk '{print $NF}')
strangers=$(printf '%s\n' "$symbols" | grep -v -e '^stm\?_[a-z_]*@@LIBST_0$' -e '^LIBST_0' || true)
if [ -n "$strangers" ]; then
  echo "exported beside the API:"
  echo "$strangers"
  exit 1
fi
printf '%s\n' "$symbols" | grep -q '^st_create@@LIBST_0$'
