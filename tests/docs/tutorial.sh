#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# usage: tutorial.sh ROOT [BUILD]
# Runs all commands of docs/tutorial.md on two hosts, which are namespaces with a network, mounts and
# /run of their own, joined by a wire. The commands after a line
#   <!-- on: a|b|both[, without rights][, prints "TEXT" | , fails "TEXT" | , stays until "TEXT"] -->
# are run on that host. They have to succeed (and print TEXT), to fail and print TEXT, or to print TEXT
# and go on running in a terminal of their own. <!-- Ctrl-C on: a --> ends the last of those, and
# <!-- Ctrl-C on: both, "COMMAND" --> those whose commands have that in them.
# apt-get, cmake, cpack and scp are replaced by stand-ins; the packages are those of tests/install/packages.sh, or, if
# it has not run, what is built already.
set -uo pipefail
root=$(realpath "$1") build=$(realpath "${2:-$1/build}")
program=tutorial
page=$root/docs/tutorial.md
# shellcheck source=../../tools/lib/common.sh
. "$root/tools/lib/common.sh"
# shellcheck source=../../tools/lib/network.sh
. "$root/tools/lib/network.sh"
skip() { echo "SKIPPED: $*" && exit 77; }
[ "$(id -u)" -eq 0 ] && unshare --mount --net true 2>/dev/null || skip "it takes root to make two hosts"
command -v tshark >/dev/null || skip "no tshark here"
make_work_directory
mkdir "$work/blocks" "$work/bin" "$work/covered"
mkdir "$work/root"
for package in "$build"/tests/install/packages/{stp,stp-dev,python3-stp}_*.deb; do
  [ ! -e "$package" ] || dpkg-deb --extract "$package" "$work/root" || fail "cannot unpack $package"
done
install() { DESTDIR=$work/root cmake --install "$build" --prefix /usr "$@" >"$work/installed" 2>&1; }
[ -e "$work/root/usr" ] || { install && install --component python; } ||
  { tail -n 5 "$work/installed" && fail "cmake --install"; }

# The files of the packages appear below /usr of one host only. The file systems are read only.
install_packages() {
  mount -t overlay -o "lowerdir=$work/root/usr:/usr" overlay /usr
}
unshare --mount bash -c "$(declare -f install_packages); work=$work; install_packages" 2>/dev/null ||
  skip "no overlay file system here"

# Stand-ins. Packages that the page names have to be known to apt, if apt has its lists. It takes seconds to read them.
apt-cache pkgnames >"$work/known" 2>/dev/null
[ "$(wc -l <"$work/known")" -ge 10000 ] || rm "$work/known"
declare -f install_packages >"$work/install_packages"
cat >"$work/bin/apt-get" <<'SH'
#!/usr/bin/env bash
. "$WORK/install_packages"
work=$WORK
[ "$1" != update ] || exit 0
for name in "${@:2}"; do
  case $name in
    -*) ;;
    ./stp_*.deb) [ -e "$name" ] && install_packages || exit 1 ;;
    ./stp-dev_*.deb | ./python3-stp_*.deb) [ -e "$name" ] || exit 1 ;;
    *) [ ! -e "$WORK/known" ] || grep -qxF -- "$name" "$WORK/known" || { echo "no package $name"; exit 1; }
      echo "$name" >>"$WORK/packages" ;;
  esac
done
SH
printf '#!/bin/sh\nexec "$@"\n' >"$work/bin/sudo"
cat >"$work/bin/cmake" <<'SH'
#!/bin/sh
[ "$1" != --build ] || exec test -d "$2"
"$REAL_CMAKE" --list-presets | grep -qF "\"$2\"" && mkdir -p build-package
SH
printf '#!/bin/bash\ntouch {stp,stp-dev,python3-stp}_0.1.0_amd64.deb\n' >"$work/bin/cpack"
# shellcheck disable=SC2016
printf '#!/bin/sh\nfor file; do [ "$file" = 10.9.0.2: ] || cp "$file" "$WORK/b/"; done\n' >"$work/bin/scp"
[ ! -x /usr/bin/python3 ] || ln -s /usr/bin/python3 "$work/bin/" # the one that has Debian's packages
chmod +x "$work/bin/"*
export WORK=$work
REAL_CMAKE=$(command -v cmake)
export REAL_CMAKE

# host VARIABLE NAME: makes a host whose home is $work/NAME. VARIABLE gets the pid that keeps it.
host() {
  mkdir -p "$work/$2"
  start "$work/hosts.log" unshare --mount --net bash -c 'mount -t tmpfs -o mode=0755 tmpfs /run && touch "$0" && exec sleep 3600' \
    "$work/$2.is_there"
  printf -v "$1" %s $!
  wait_for 20 test -e "$work/$2.is_there" || { cat "$work/hosts.log" >&2; fail "cannot make a host"; }
  within "$!" ip link set lo up
}
host holder_a a
host holder_b b
within "$holder_a" ip link add eth0 address 02:00:00:00:0a:01 type veth \
  peer name eth0 address 02:00:00:00:0a:02 netns "$holder_b" || fail "cannot join two hosts by a wire"
for number in 1 2; do
  [ $number = 1 ] && holder=$holder_a || holder=$holder_b
  within "$holder" ip address add "10.9.0.$number/24" dev eth0 && within "$holder" ip link set eth0 up ||
    fail "cannot give two hosts addresses"
done
# What needs no rights is run by a user who has none, where this one may become another.
plain=(setpriv --bounding-set=-all --inh-caps=-all)
user=$(id -un)
if setpriv --reuid=65534 --clear-groups true 2>/dev/null; then
  plain=(setpriv --reuid=65534 --clear-groups)
  user=$(id -un 65534)
fi
mkdir "$work/a/stp"
ln -s "$root"/* "$work/a/stp/"
rm -f "$work/a/stp/"build*

# The page as files: NUMBER.HOST.MODE with the commands, NUMBER.text with what they say.
awk -v folder="$work/blocks/" '
  /^<!-- Ctrl-C on: / {
    host = $4
    sub(/,$/, "", host)
    name = folder sprintf("%02d", ++count)
    if (match($0, /".*"/)) print substr($0, RSTART + 1, RLENGTH - 2) >(name ".text")
    printf "" >(name "." host ".interrupt")
    next
  }
  /^<!-- on: / {
    text = mode = ""
    line = $0
    if (match(line, /".*"/)) text = substr(line, RSTART + 1, RLENGTH - 2)
    if (line ~ /, without rights/) print "" >(folder sprintf("%02d", count + 1) ".plain")
    mode = line ~ /, stays / ? "stays" : line ~ /, fails / ? "fails" : line ~ /, prints / ? "prints" : "runs"
    host = $3
    sub(/,$/, "", host)
    name = folder sprintf("%02d", ++count)
    print text >(name ".text")
    file = name "." host "." mode
    next
  }
  /^```sh$/ { inside = 1; if (file == "") { print "commands without a host" >(folder "wrong") } next }
  /^```$/ { inside = 0; file = ""; next }
  inside && file != "" { print >file }
' "$page"
[ ! -e "$work/blocks/wrong" ] || fail "$page: a block of commands has no host"
cd "$work/blocks" || exit 1
set -- [0-9][0-9].*.*
[ $# -ge 20 ] || fail "only $# blocks found in $page"

# Of what stays: by host, and by host and pid what was typed.
declare -A last typed
# type_on NAME HOLDER COMMAND...: runs COMMAND on that host, in its home.
type_on() {
  local name=$1 holder=$2
  shift 2
  nsenter -t "$holder" --mount --net env HOME="$work/$name" USER="$user" PATH="$work/bin:$PATH" "$@"
}

# interrupt NAME TEXT: Ctrl-C for what was typed with TEXT in it; without TEXT for what was typed last.
interrupt() {
  local key pid
  for key in "${!typed[@]}"; do
    pid=${key#* }
    [ "${key% *}" = "$1" ] || continue
    if [ -z "$2" ]; then [ "$pid" = "${last[$1]}" ]; else [[ ${typed[$key]} == *"$2"* ]]; fi || continue
    # shellcheck disable=SC2046
    kill -INT $(session_of "$pid") && wait_for 20 ended "$pid" && unset "typed[$key]" && return
    return 1
  done
  return 1
}

# run NUMBER NAME MODE FILE
run() {
  local number=$1 name=$2 mode=$3 file=$work/blocks/$4 holder=holder_$2 log text status
  holder=${!holder}
  log=$work/$number.$name.log
  text=$(cat "$work/blocks/$number.text" 2>/dev/null)
  local script="set -e; cd; $(cat "$file")" rights=()
  [ ! -e "$work/blocks/$number.plain" ] || rights=("${plain[@]}") script="set -e; cd /; $(cat "$file")"
  case $mode in
    interrupt) interrupt "$name" "$text" ;;
    stays)
      start "$log" nsenter -t "$holder" --mount --net env HOME="$work/$name" USER="$user" PATH="$work/bin:$PATH" \
        "${rights[@]}" bash -c "$script"
      last[$name]=$!
      typed[$name $!]=$script
      wait_for 60 contains "$log" "$text" ;;
    *)
      type_on "$name" "$holder" "${rights[@]}" timeout -k 5 120 bash -c "$script" >"$log" 2>&1 </dev/null
      status=$?
      if [ "$mode" = fails ]; then [ $status -ne 0 ]; else [ $status -eq 0 ]; fi &&
        { [ -z "$text" ] || grep -qF -- "$text" "$log"; } ;;
  esac || {
    cat "$log" >&2
    fail "on $name ($mode '$text'): $(cat "$file")"
  }
}
ended() { [ -z "$(session_of "$1")" ]; }

for file; do
  IFS=. read -r number hosts mode <<<"$file"
  [ "$hosts" != both ] || hosts="a b"
  for name in $hosts; do run "$number" "$name" "$mode" "$file"; done
done

# Other statements of the page.
for part in "$work"/a/part??; do
  [ "$(grep -c "^$(sha256sum <"$part" | cut -c1-64) .*${part##*/}" "$work"/*.a.log | awk -F: '{ n += $2 } END { print n }')" = 3 ] ||
    fail "the services and sha256sum do not say the same of $part"
done
cmp "$work/a/big" "$work/b/arrived/big" || fail "the file is another one"
wait_for 20 grep -qx 'Hello from A' "$work"/*.b.log || fail "the server has not printed the text"
operations=$(HOME=$work tshark -X "lua_script:$root/tools/wireshark/stp-st.lua" -r "$work/a/first.pcapng" -Y stp-st \
  -T fields -e stp-st.op 2>/dev/null | tr '\n' ' ')
[[ $operations =~ RC.*CA.*RTS.*CTS.*DATA.*RD.*DA ]] || fail "the trace shows: $operations"
# The page names the packages that tools/lib/build.sh installs, except those for tests and lld, which only
# links faster.
needed=$(sed -nE '/^packages=\(/,/\)/p' "$root/tools/lib/build.sh" | sed 's/packages=(//; s/)//')
for name in $needed; do
  case $name in libgtest-dev | lld | iproute2 | nftables | procps | util-linux) continue ;; esac
  grep -qxF -- "$name" "$work/packages" || fail "the page does not install $name"
done
echo "PASSED: $# blocks"
