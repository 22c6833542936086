#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# usage: sanitized_programs.sh CC PKGCONFIG_DIR LEAVES_OPEN.C MANY_THREADS.C
# Programs with a sanitizer use a library without it. One that ends in the middle of its work has no leak. Where
# threads hand memory to each other through the library, there is no race; one of the program's own is found.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cc=$1 leaves_open=$3 many_threads=$4
PKG_CONFIG_PATH=$2
STP_LINK=loop
TSAN_OPTIONS=ignore_noninstrumented_modules=1 # as docs/managed.md says
export PKG_CONFIG_PATH STP_LINK TSAN_OPTIONS

compiled() { # SANITIZER SOURCE
  # shellcheck disable=SC2046
  "$cc" -fsanitize="$1" -g "$2" -o "$folder/program" $(pkg-config --cflags --libs libst)
}
can() { # SANITIZER
  echo 'int main(void) { return 0; }' >"$folder/empty.c"
  "$cc" -fsanitize="$1" "$folder/empty.c" -o "$folder/empty" && "$folder/empty"
}

done=0
if can address; then
  compiled address "$leaves_open"
  ASAN_OPTIONS=detect_leaks=1 "$folder/program"
  done=$((done + 1))
fi
if can thread; then
  compiled thread "$many_threads"
  "$folder/program"
  if "$folder/program" race 2>"$folder/said"; then
    echo "a race of the program's own is not found"
    exit 1
  fi
  grep -q "global 'counted'" "$folder/said"
  done=$((done + 1))
fi
[ "$done" = 2 ] || {
  echo "skipped in part: here no program can be built and run with AddressSanitizer, or with ThreadSanitizer"
  exit 77
}
