#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# usage: simulation.sh BINARIES SEEDS. With STP_LONG four times as many seeds.
# Runs of the simulation break no rule, whatever its links do to frames: the engine sends nothing wrong,
# and `stp-replay check` reports nothing that is right. A Node that takes the place of a host, and gets
# the frames that reached that host, does what the host did, even if others lie to it.
set -u
bin=$1
seeds=$2
[ -z "${STP_LONG-}" ] || seeds=$((4 * seeds))
station=02:00:00:00:00:02
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
run=$work/run.pcapng
result=0

# complain TEXT: counts as a failure, and prints the output of the program.
complain() {
  echo "stp-sim --seed $seed --profile $profile $1"
  head -n 8 "$work/said"
  result=1
}

for profile in clean loss burst duplicate reorder delay corrupt mixed partition reboot abrupt slow \
  small-buffers many-vcs flood level0 connectionless; do
  known=()
  [ "$profile" = connectionless ] && known=(--endpoints)
  for seed in $(seq "$seeds"); do
    "$bin/stp-sim" --seed "$seed" --profile "$profile" --pcapng "$run" >"$work/said" ||
      complain "failed:"
    "$bin/stp-replay" check "${known[@]}" "$run" >"$work/said" || complain "(all frames), checked:"
    "$bin/stp-sim" --seed "$seed" --profile "$profile" --pcapng "$run" --pcapng-host 2 >"$work/said"
    # Damaged frames reach a host, and stp-replay finds them. 2: nobody has sent anything to that host.
    [ "$profile" = corrupt ] ||
      "$bin/stp-replay" check "${known[@]}" --at "$station" "$run" >"$work/said" 2>"$work/errors" ||
      { [ $? -eq 2 ] && grep -q 'no frame is in this capture' "$work/errors"; } ||
      complain "(at host 2), checked:"
    # Which requests of a flood a Node answers, and with which Ports and Keys, depends on its secret.
    [ "$profile" != flood ] || continue
    "$bin/stp-replay" play "$run" --as "$station" >"$work/said" 2>&1
    # 2: nobody has sent anything to that host.
    [ $? -ne 1 ] || complain "(at host 2), played:"
  done
done

# liar SEED: who of the hosts it is, as in "  lie   01>03 RTS ..."; nothing: that does not show.
liar() {
  "$bin/stp-sim" --seed "$1" --profile liar --verbose |
    sed -nE 's/.* lie +([0-9]{2})>.*/\1/p' | head -n 1
}
profile=liar
for seed in $(seq "$seeds"); do
  lying=$(liar "$seed")
  [ -n "$lying" ] || continue
  for host in 1 2 3; do
    [ "0$host" != "$lying" ] || continue
    "$bin/stp-sim" --seed "$seed" --profile liar --pcapng "$run" --pcapng-host "$host" >"$work/said"
    "$bin/stp-replay" play "$run" --as "02:00:00:00:00:0$host" >"$work/said" 2>&1
    [ $? -ne 1 ] || complain "(at host $host), played:"
  done
done
exit $result
