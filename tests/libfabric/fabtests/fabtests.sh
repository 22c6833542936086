#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# usage: fabtests.sh BUILD-DIRECTORY [ARCHIVE-OR-DIRECTORY|newer]
# libfabric's own tests (fabtests-*.tar.xz of the folder that STP_PEERS names, or what is given), by their own script,
# from one network namespace to another, for FI_EP_MSG and FI_EP_RDM of stp, and for stp;ofi_rxm: the sets unit and
# functional. With STP_LONG also the sets short and standard, and FI_EP_MSG and stp;ofi_rxm once more through a stpd on
# each side, without standard. "newer": libfabric-*.tar.xz of that folder has a newer libfabric and its tests. Both are
# built, and the sets unit and functional run with them: so programs of a newer libfabric find the provider as it is, with
# the older one's headers.
# *.exclude name what is not run, and why; newer.exclude what is not of the newer one, besides. All else has to pass: "not
# supported" counts as a failure.
here=$(realpath "$(dirname "$0")")
. "$here/../../end_to_end/setup.sh"
. "$here/../../lib/consumers.sh"
given=${2-} pattern="fabtests-*.tar.*" newer=
if [ "$given" = newer ]; then newer=yes given='' pattern="libfabric-*.tar.*" && needs_long; fi
[ -n "$given" ] || needs_peers
[ -e "$build/lib/libfabric/libstp-fi.so" ] || skip "the provider was not built: libfabric-dev is missing"
needs_no_sanitizer
needs_namespaces
needs gcc make autoconf automake libtoolize python3
keep_built
[ -n "$given" ] || given=$(source_of "$pattern") || { echo "$given" && exit 77; }
make_work_directory

# build_library FOLDER: libfabric to $programs. Of its providers it has those that are tested beside stp: tcp and ofi_rxm.
build_library() {
  local each without=()
  for each in "$1"/prov/*/configure.m4 "$1"/prov/hook/*/configure.m4; do
    each=$(basename "$(dirname "$each")")
    [[ " tcp rxm util coll hook " == *" $each "* ]] || without+=("--enable-$each=no")
  done
  say "building $(basename "$given")"
  (cd "$1" && ./autogen.sh && ./configure --prefix="$programs" "${without[@]}" CFLAGS="-O1 -w" &&
    make -j2 install) >"$work/build.log" 2>&1 ||
    { tail -n 30 "$work/build.log" >&2 && fail "libfabric cannot be built"; }
}

# build_fabtests: to $programs/bin, once for each source.
build_fabtests() {
  local tree=$work/tree library=/usr folder
  if [ -d "$given" ]; then
    cp -r "$given" "$tree" || fail "cannot copy $given"
  else
    mkdir "$tree" && tar xf "$given" -C "$tree" || fail "cannot unpack $given"
  fi
  folder=$(dirname "$(find "$tree" -maxdepth 2 -name autogen.sh)")
  if [ -n "$newer" ]; then build_library "$folder" && library=$programs folder=$folder/fabtests; fi
  cd "$folder" || fail "$given has no autogen.sh"
  say "building fabtests"
  { ./autogen.sh && ./configure --prefix="$programs" --with-libfabric="$library" CFLAGS="-O1 -w" &&
    make -j2 install; } >"$work/build.log" 2>&1 ||
    { tail -n 30 "$work/build.log" >&2 && fail "fabtests cannot be built"; }
  cd - >/dev/null || exit 1
}
programs=$(realpath -m "$kept/$(basename "$given" | sed 's/\.tar.*//')")
[ -x "$programs/bin/runfabtests.sh" ] || build_fabtests
if [ -n "$newer" ]; then export PATH=$programs/bin:$PATH LD_LIBRARY_PATH=$programs/lib; fi

make_namespace side_a
make_namespace side_b
# shellcheck disable=SC2154 # made above
join_by_wire "$side_a" "$side_b" 9000

# Their script starts both ends by ssh. The namespaces are reached by descriptors, since it runs where no process of
# others is seen: it kills all that are called fi_*.
mkdir "$work/path" "$work/run"
cat >"$work/path/ssh" <<'SSH'
#!/bin/bash
while [[ $1 == -* ]]; do
  if [[ $1 == -o ]]; then shift; fi
  shift
done
case $1 in 10.9.0.1) side=8 ;; 10.9.0.2) side=9 ;; *) exit 255 ;; esac
shift
STP_LINK=$(cat "$(dirname "$0")/link.$side")
export STP_LINK
exec nsenter --net=/proc/self/fd/$side bash -c "$*"
SSH
chmod +x "$work/path/ssh"
exec 8<"/proc/$side_a/ns/net" 9<"/proc/$side_b/ns/net"
fi_path=$(realpath "$build/lib/libfabric")
export PATH=$work/path:$PATH FI_PROVIDER_PATH=$fi_path IPATH_NO_BACKTRACE=1
links() { # OF-SERVER OF-CLIENT
  echo "$1" >"$work/path/link.8"
  echo "$2" >"$work/path/link.9"
}

sets=unit,functional
[ -z "${STP_LONG-}" ] || [ -n "$newer" ] || sets+=,short,standard

# run PROVIDER EXCLUDES LEAST: so many tests pass at least, and none fails.
run() {
  local log=$work/${2%.exclude}.log passed
  cat "$here/$2" ${newer:+"$here/newer.exclude"} >"$work/$2"
  start "$log" env -C "$work/run" timeout -k 5 5000 unshare --pid --fork --kill-child --mount-proc \
    bash "$programs/bin/runfabtests.sh" -v -S -t "$sets" -p "$programs/bin" -T 300 -f "$work/$2" \
    "$1" 10.9.0.1 10.9.0.2
  wait $! || { grep -A 60 'result: Fail' "$log" >&2; fail "fabtests fail for $1"; }
  passed=$(sed -n 's/^# Total Pass *//p' "$log")
  say "$1: $passed of fabtests ($sets) pass"
  expect [ "${passed:-0}" -ge "$3" ]
}

# A program of the newer libfabric finds the provider, its own endpoints and those of ofi_rxm.
find_provider() {
  local each
  STP_LINK=iface:stp0 within "$side_a" fi_info -p stp >"$work/info.log" || { cat "$work/info.log" >&2 && fail fi_info; }
  for each in FI_EP_MSG FI_EP_RDM "provider: stp;ofi_rxm"; do expect says "$work/info.log" "$each"; done
  expect says <(fi_info --version) "libfabric: $(basename "$programs" | sed 's/.*-//')"
}
[ -z "$newer" ] || find_provider

links iface:stp0 iface:stp0
run "stp" stp.exclude 15
# libfabric would choose ofi_rxm for FI_EP_RDM.
FI_PROVIDER="^ofi_rxm" run "stp" stp_rdm.exclude 24
run "stp;ofi_rxm" stp_ofi_rxm.exclude 26
[ -n "${STP_LONG-}" ] && [ -z "$newer" ] || passed
start_pair_in "$side_a" "$side_b"
links "stpd:$work/a.sock" "stpd:$work/b.sock"
sets=unit,functional,short
run "stp" stp.exclude 15
run "stp;ofi_rxm" stp_ofi_rxm.exclude 26
passed
