# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# Private network namespaces. A process of start() holds each of them open. They have no name, so they
# and their interfaces end with the script. Needs root, or `unshare -rn`.
# Sourced after common.sh.

can_make_namespaces() { unshare -n true 2>/dev/null; }

# make_namespace VARIABLE: puts into it the pid that holds the namespace.
make_namespace() {
  local -n holder=$1
  start "$work/namespaces.log" unshare -n sleep 3600
  # shellcheck disable=SC2034 # a reference
  holder=$!
  wait_for 5 in_own_namespace $! || fail "cannot make a network namespace"
  within $! ip link set lo up
}

in_own_namespace() {
  local of_holder
  of_holder=$(readlink "/proc/$1/ns/net") && [ "$of_holder" != "$(readlink /proc/self/ns/net)" ]
}

# within HOLDER COMMAND...
within() {
  local holder=$1
  shift
  nsenter -t "$holder" -n "$@"
}

# set_up_interface HOLDER NAME MTU [ADDRESS]
set_up_interface() {
  # No router solicitations between the frames that are counted.
  within "$1" sysctl -qw "net.ipv6.conf.$2.disable_ipv6=1" 2>/dev/null
  within "$1" ip link set "$2" mtu "$3" &&
    { [ -z "${4-}" ] || within "$1" ip address add "$4" dev "$2"; } && within "$1" ip link set "$2" up
}

# join_by_wire HOLDER-A HOLDER-B MTU: interfaces stp0 at 10.9.0.1 and 10.9.0.2. As those of NICs,
# their MAC addresses are the same each time.
join_by_wire() {
  within "$1" ip link add stp0 address 02:00:00:00:0a:01 type veth \
    peer name stp0 address 02:00:00:00:0a:02 netns "$2" &&
    set_up_interface "$1" stp0 "$3" 10.9.0.1/24 && set_up_interface "$2" stp0 "$3" 10.9.0.2/24 ||
    fail "cannot join two namespaces by a veth pair"
}

# join_by_lossy_bridge HOLDER-A HOLDER-B HOLDER-BRIDGE MTU PERCENT: as above, through a bridge that
# drops frames of both directions at random.
join_by_lossy_bridge() {
  local side port
  within "$3" ip link add bridge0 type bridge && set_up_interface "$3" bridge0 "$4"
  for side in 1 2; do
    port=port$side
    within "${!side}" ip link add stp0 type veth peer name "$port" netns "$3" &&
      set_up_interface "${!side}" stp0 "$4" "10.9.0.$side/24" &&
      within "$3" ip link set "$port" master bridge0 && set_up_interface "$3" "$port" "$4" &&
      within "$3" nft -f - <<NFT || return 1
add table netdev loss$side
add chain netdev loss$side drops { type filter hook ingress device $port priority 0; }
add rule netdev loss$side drops numgen random mod 100 < $5 counter drop
NFT
  done
}

# harm_by_bridge HOLDER-BRIDGE LOST DOUBLED: from now on it drops and duplicates that many percent of the frames. It
# counts both anew.
harm_by_bridge() {
  local side
  for side in 1 2; do
    within "$1" nft -f - <<NFT || return 1
flush chain netdev loss$side drops
add rule netdev loss$side drops numgen random mod 100 < $2 counter drop
add rule netdev loss$side drops numgen random mod 100 < $3 counter dup to "port$((3 - side))"
NFT
  done
}

# Counts the frames that the bridge has dropped or duplicated.
dropped_by_bridge() { counted_by_bridge "$1" drop; }
doubled_by_bridge() { counted_by_bridge "$1" dup; }
counted_by_bridge() { # HOLDER-BRIDGE VERDICT
  within "$1" nft list ruleset | sed -n "s/.*counter packets \([0-9]*\).* $2.*/\1/p" |
    awk '{ sum += $1 } END { print sum + 0 }'
}
