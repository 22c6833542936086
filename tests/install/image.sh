#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# usage: image.sh BUILD ROOT
# The lines of the Dockerfile in bare Debian systems, which mmdebstrap makes: with the packages that its first stage
# installs the project can be configured, and the package of packages.sh is installed by its second stage, where stpd
# serves without rights, is healthy, and ends by SIGTERM. python3-stp is tried there, too. Compiling is left out: other
# tests do it. tools/test --long runs it, because it takes minutes and Debian's archive.
# shellcheck source=setup.sh
. "$(dirname "$0")/setup.sh"
skip() { echo "SKIPPED: $*"; exit 77; }
[ -n "${STP_LONG-}" ] || skip "tools/test --long runs it"
[ "$(id -u)" -eq 0 ] && unshare --mount --net true 2>/dev/null || skip "it takes root to make a system"
command -v mmdebstrap >/dev/null || skip "no mmdebstrap here; tools/test --long installs it"
made=$build/tests/install/packages
[ -d "$made" ] || skip "no packages have been built"
# Mounts end with this process.
[ -n "${STP_OWN_MOUNTS-}" ] || STP_OWN_MOUNTS=1 exec unshare --mount --pid --fork bash "$0" "$@"
mount --make-rprivate /
make_work_directory leave
# Nothing is mounted any more when the folder is removed.
leave() {
  stop "${started[@]}"
  umount --recursive --lazy "$work/system"
  clean_up
}
mkdir "$work/system"
mount -t tmpfs -o size=4g tmpfs "$work/system" || skip "no tmpfs here"
export DEBIAN_FRONTEND=noninteractive

# lines STAGE: what the RUN lines of that stage of the Dockerfile run, one command a line, for a shell.
lines() {
  sed -e '/^#/d' -e ':join' -e '/\\$/{N;s/\\\n//;b join' -e '}' "$root/Dockerfile" |
    awk -v stage="$1" '/^FROM /{ ++count } count == stage && sub(/^RUN /, "")'
}
in_system() { chroot "$work/system/$1" "${@:2}"; }
# A system with the sources of packages of this one; its index is that of this day.
bare() {
  mmdebstrap --quiet --variant=apt --include=ca-certificates bookworm "$work/system/$1" \
    /etc/apt/sources.list.d/debian.sources >"$work/said" 2>&1 ||
    mmdebstrap --quiet --variant=apt --include=ca-certificates bookworm "$work/system/$1" >"$work/said" 2>&1 ||
    { cat "$work/said" >&2; fail "mmdebstrap makes no system"; }
}
bare second
cp -a "$work/system/second" "$work/system/first"
for stage in first second; do
  cp /etc/resolv.conf "$work/system/$stage/etc/" 2>/dev/null
  mount -t proc proc "$work/system/$stage/proc" || fail "no /proc"
done

mapfile -t run < <(lines 1)
expect test "${#run[@]}" -eq 2
quietly in_system first sh -c "${run[0]}"
mkdir "$work/system/first/stp"
tar -C "$root" --exclude='./build*' --exclude=./.git -cf - . | tar -C "$work/system/first/stp" -xf - || fail "no copy"
expect grep -q '^cmake --preset package && cmake --build build-package && cd build-package && cpack$' <(echo "${run[1]}")
quietly in_system first sh -c "cd /stp && ${run[1]%%&&*}"
expect grep -q 'CPACK_COMPONENTS_ALL "runtime;dev;doc.*python"' "$work/system/first/stp/build-package/CPackConfig.cmake"

cp "$made"/stp_*.deb "$work/system/second/tmp/"
mapfile -t run < <(lines 2)
expect test "${#run[@]}" -eq 1
quietly in_system second sh -c "${run[0]}"
expect test "$(stat -c %u "$work/system/second/run/stpd")" = 65534

# As the image's user, without rights, on files that cannot be written.
mount --bind "$work/system/second" "$work/system/second" && mount -t proc proc "$work/system/second/proc" &&
  mount -t tmpfs -o uid=65534,gid=65534 tmpfs "$work/system/second/run/stpd" &&
  mount -t tmpfs tmpfs "$work/system/second/tmp" && mount -o remount,bind,ro "$work/system/second" || fail "no mounts"
as_image=(setpriv --reuid=65534 --regid=65534 --clear-groups --bounding-set=-all --inh-caps=-all)
# shellcheck disable=SC2016
start "$work/stpd.log" unshare --net sh -c 'ip link set lo up && exec chroot "$@"' - "$work/system/second" \
  "${as_image[@]}" /usr/sbin/stpd --link udp:127.0.0.1
daemon=$!
wait_for 20 contains "$work/stpd.log" 'stpd: ready' || { cat "$work/stpd.log"; fail "no stpd"; }
quietly in_system second "${as_image[@]}" /usr/bin/stpctl links
begun=${EPOCHREALTIME/./}
kill -TERM "$daemon"
expect wait "$daemon"
expect test "$((${EPOCHREALTIME/./} - begun))" -lt 1000000
! in_system second "${as_image[@]}" /usr/bin/stpctl links >/dev/null 2>&1 || fail "it is healthy without a stpd"

# The package for Python, with what it depends on and nothing else.
python=$(echo "$made"/python3-stp_*.deb)
[ -e "$python" ] || { echo "PASSED, without python3-stp"; exit 0; }
umount "$work/system/second/tmp" && mount -o remount,bind,rw "$work/system/second" || fail "no mounts"
cp "$made"/stp_*.deb "$python" "$work/system/second/tmp/"
quietly in_system second sh -c 'apt-get -qq update && apt-get -qq install -y --no-install-recommends /tmp/*.deb'
quietly in_system second python3 -m stp --link loop info
expect grep -qx 'state up' "$work/said"
quietly in_system second python3 -c 'import stp, stp.aio; help(stp)'
expect grep -q 'Scheduled Transfers from Python' "$work/said"
for program in hello_receive hello_send; do cp "$root/tools/examples/$program.py" "$work/system/second/root/"; done
# shellcheck disable=SC2016
quietly unshare --net chroot "$work/system/second" bash -c '
  cd /root
  export STP_LINK=stpd:/run/stpd/stpd.sock
  stpd --link loop & daemon=$!
  for ((i = 0; i < 200; ++i)); do stpctl links >/dev/null 2>&1 && break; sleep 0.05; done
  python3 hello_receive.py >/tmp/received & receiver=$!
  for ((i = 0; i < 200; ++i)); do grep -q listening /tmp/received && break; sleep 0.05; done
  python3 hello_send.py :3000 >/tmp/sent && wait "$receiver" && grep -qx "I have read it" /tmp/sent &&
    grep -qx "Hello from the other program" /tmp/received
  status=$?
  kill "$daemon" && wait "$daemon" && exit $status'
quietly in_system second dpkg --purge python3-stp stp
expect test ! -e "$work/system/second/usr/lib/python3/dist-packages/stp"
echo PASSED
