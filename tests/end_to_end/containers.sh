#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# usage: containers.sh BUILD-DIRECTORY
# stpd as a container has it, where no file can be written but in two places: each kind of link with exactly the
# capabilities that docs/operations.md names, as root and as another user; the health check of the Dockerfile; and
# SIGTERM ends it within a second.
. "$(dirname "$0")/setup.sh"
root=$(realpath "$(dirname "$0")/../..")
needs_namespaces
[ "$(id -u)" -eq 0 ] || skip "it takes root to be other users"
for needed in capsh "$python"; do command -v "$needed" >/dev/null || skip "no $needed here"; done
make_work_directory
chmod 0755 "$work"
make_namespace side_a
make_namespace side_b
join_by_wire "$side_a" "$side_b" 1500
cp "$bin/stpd" "$bin/stpctl" "$work" # where that user can reach them

# As in compose.yaml: what is not /run/stpd or /tmp cannot be written. A process holds the mounts.
cat >"$work/contained" <<'SH'
#!/usr/bin/env bash
set -eu
mount --make-rprivate /
mount -t tmpfs -o mode=0755 tmpfs /run
mkdir /run/stpd /run/programs
cp "${0%/*}"/{stpd,stpctl} /run/programs
mount -t tmpfs -o mode=0755 tmpfs /run/stpd
mount -t tmpfs tmpfs /tmp
while read -r _ _ _ _ at _; do
  case $at in /run/stpd | /tmp | /proc* | /sys* | /dev*) ;; *) mount -o remount,bind,ro "$at" 2>/dev/null || : ;; esac
done </proc/self/mountinfo
! touch /run/programs/new 2>/dev/null
echo contained
exec sleep 3600
SH
chmod 0755 "$work/contained"
start "$work/contained.log" nsenter -t "$side_a" -n unshare --mount "$work/contained"
container=$!
wait_for 10 contains "$work/contained.log" contained || fail "no file system that cannot be written"
inside() { nsenter -t "$container" -m -n "$@"; }

# begins NAME USER CAPABILITIES LINK: as that user, with at most these: for root as `docker run --user 0 --cap-drop ALL
# --cap-add ...` has it, for others with ambient ones.
all=$(capsh --print | sed -n 's/^Bounding set =//p')
begins() {
  local name=$1 user=$2 own=$3 link=$4 dropped=,$all, one words
  for one in ${own//,/ }; do dropped=${dropped//,$one,/,}; done
  dropped=${dropped#,}
  words=(--no-new-privs --drop="${dropped%,}")
  if [ "$user" != 0 ]; then
    words+=(--keep=1 ${own:+--inh="$own"} --groups="$user" --gid="$user" --uid="$user" ${own:+--addamb="$own"})
  fi
  put_aside "$work/$name.log"
  inside chown "$user" /run/stpd
  # shellcheck disable=SC2016
  start "$work/$name.log" nsenter -t "$container" -m -n capsh "${words[@]}" -- -c 'exec /run/programs/stpd --link "$1"' - "$link"
}
# serves NAME USER CAPABILITIES LINK [COMMAND]: its health check says so, COMMAND succeeds, another user than root has no
# capability left, and SIGTERM ends it within a second.
mapfile -t health < <("$python" -c '
import json, re, sys
words = re.search(r"(?m)^HEALTHCHECK .*?CMD (\[.*\])$", open(sys.argv[1], encoding="utf-8").read())[1]
print(*json.loads(words), sep="\n")' "$root/Dockerfile")
[ "${health[0]}" = /usr/bin/stpctl ] || fail "the health check of the Dockerfile is '${health[*]}'"
is_healthy() {
  inside setpriv --reuid=65534 --regid=65534 --clear-groups --bounding-set=-all --inh-caps=-all \
    /run/programs/stpctl "${health[@]:1}" >"$work/health" 2>&1
}
serves() {
  local daemon begun status
  begins "${@:1:4}"
  daemon=$!
  await_stpd "$1"
  expect is_healthy
  expect "${5:-true}"
  [ "$2" = 0 ] || expect [ "$(awk '/^Cap(Eff|Prm)/ && $2 !~ /^0+$/' "/proc/$daemon/status")" = "" ]
  begun=${EPOCHREALTIME/./}
  kill -TERM "$daemon"
  wait "$daemon"
  status=$?
  expect [ $status -eq 0 ]
  expect [ "$((${EPOCHREALTIME/./} - begun))" -lt 1000000 ]
}
# refuses NAME USER CAPABILITIES LINK TEXT
refuses() {
  begins "$1" "$2" "$3" "$4"
  local session=$!
  wait_for 20 contains "$work/$1.log" "$5" || { cat "$work/$1.log" >&2; fail "$1: it does not refuse"; }
  wait "$session" && fail "$1: it ends in good order"
}
promiscuous() { [[ $(within "$side_a" ip -d link show stp0) == *" promiscuity 1 "* ]]; }
ordinary() { ! promiscuous; }

other=02:00:00:00:0a:77 # not that of the interface
expect [ "$(inside cat /proc/self/mounts | awk '$2 == "/" { print $4 }' | cut -d, -f1)" = ro ]
is_healthy && fail "it is healthy without a stpd"
serves udp 65534 '' udp:
serves memif 65534 '' memif:/tmp/memif.sock,role=server
# What it may, but does not need, it gives up.
serves iface 65534 cap_net_raw,cap_net_admin "iface:stp0,mac=$other" promiscuous
expect ordinary
serves root 0 cap_net_raw "iface:stp0,mac=$other" promiscuous
refuses without 65534 "${all/cap_net_raw,/}" iface:stp0 'lacks CAP_NET_RAW'
refuses waiting 65534 "${all/cap_net_raw,/}" iface:stp9 '; and it cannot be waited for: this user lacks CAP_NET_RAW: run as root'
passed
