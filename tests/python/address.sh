#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# usage: address.sh BUILD ROOT CXX PYTHON
# fuzz.py with an extension that AddressSanitizer watches, and with Python's memory from malloc, which it watches too: it
# finds nothing. In a second extension a buffer is let go too early: it finds that.
set -euo pipefail
build=$(realpath "$1") root=$(realpath "$2") compiler=$3 python=$4
fail() { echo "FAILED: $*"; exit 1; }
if [[ $("$compiler" --version) = *clang* ]]; then
  runtime=$("$compiler" -print-file-name=libclang_rt.asan-x86_64.so) shared=-shared-libsan
else
  runtime=$("$compiler" -print-file-name=libasan.so) shared=
fi
# Python has no libstdc++, whose exceptions the runtime looks for when it begins.
preload="$runtime $("$compiler" -print-file-name=libstdc++.so.6)"
[ -e "$runtime" ] || { echo "SKIPPED: the compiler has no shared runtime of AddressSanitizer"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp -r "$root/libst/python" "$work/python"
include=$("$python" -c 'import sysconfig; print(sysconfig.get_path("include"), sysconfig.get_config_var("EXT_SUFFIX"))')
read -r include suffix <<<"$include"
# compile NAME...: sources of the extension, as they are in the copy.
compile() {
  local name
  for name; do
    # shellcheck disable=SC2086
    "$compiler" -std=c++20 -O1 -g1 -fPIC -fvisibility=hidden -fsanitize=address -fno-omit-frame-pointer -iquote "$root" -I "$root/libst/include" \
      -isystem "$include" -c "$work/python/$name.cpp" -o "$work/$name.o" || fail "$name.cpp does not compile"
  done
  mkdir -p "$work/package/stp"
  cp "$root"/libst/python/stp/*.py "$work/package/stp"
  # shellcheck disable=SC2086
  "$compiler" -shared -fsanitize=address $shared "$work"/*.o -L "$build/lib" -lstp -o "$work/package/stp/_stp$suffix"
}
# fuzz SEEDS FIRST
fuzz() {
  LD_PRELOAD=$preload LD_LIBRARY_PATH=$build/lib PYTHONPATH=$work/package PYTHONMALLOC=malloc PYTHONDONTWRITEBYTECODE=1 \
    ASAN_OPTIONS=detect_leaks=0:abort_on_error=0 "$python" -W ignore::ResourceWarning "$root/tests/python/fuzz.py" "$@" \
    >"$work/said" 2>&1
}

names=()
for file in "$work"/python/*.cpp; do names+=("$(basename "$file" .cpp)"); done
compile "${names[@]}"
fuzz "${STP_FUZZ_SEEDS:-60}" 0 || { tail -n 80 "$work/said"; fail "seed $(sed -n 's/^seed //p' "$work/said" | tail -n 1)"; }
echo "$(grep -c '^seed ' "$work/said") seeds without a fault"

sed -i 's/^  if (copies_back_ && status_ == 0) std::memcpy(buffer_.data(), at, length);$/  char* const to = buffer_.data();\n  buffer_.release();\n  if (copies_back_ \&\& status_ == 0) std::memcpy(to, at, length);/' \
  "$work/python/operation.cpp"
grep -q 'char\* const to' "$work/python/operation.cpp" || fail "operation.cpp has no place for the fault"
compile operation
fuzz 20 0 && fail "it does not see that a buffer is written after it was let go"
grep -q 'ERROR: AddressSanitizer: heap-use-after-free' "$work/said" || { tail -n 40 "$work/said"; fail "another fault"; }
echo "and a fault that was made on purpose: seed $(sed -n 's/^seed //p' "$work/said" | tail -n 1)"
