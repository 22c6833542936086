#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# usage: simulation.sh BINARIES SEEDS
# Runs of the simulation, whatever its links do to frames, break no rule: neither does the engine
# send what check finds fault with, nor check find fault with what is right. And a Node in the place of
# a host, given what reached that host, does what it did.
set -u
bin=$1
seeds=$2
station=02:00:00:00:00:02
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
run=$work/run.pcapng
result=0

# complain TEXT: with what stp-replay said.
complain() {
  echo "stp-sim --seed $seed --profile $profile $1"
  head -n 8 "$work/said"
  result=1
}

for profile in clean loss burst duplicate reorder delay corrupt mixed partition reboot abrupt slow \
  small-buffers many-vcs level0 connectionless; do
  known=()
  [ "$profile" = connectionless ] && known=(--endpoints)
  for seed in $(seq "$seeds"); do
    "$bin/stp-sim" --seed "$seed" --profile "$profile" --pcapng "$run" >"$work/said" ||
      complain "failed:"
    "$bin/stp-replay" check "${known[@]}" "$run" >"$work/said" || complain "(all frames), checked:"
    "$bin/stp-sim" --seed "$seed" --profile "$profile" --pcapng "$run" --pcapng-host 2 >"$work/said"
    # Damaged frames reach a host, and are found.
    [ "$profile" = corrupt ] ||
      "$bin/stp-replay" check "${known[@]}" --at "$station" "$run" >"$work/said" ||
      complain "(at host 2), checked:"
    "$bin/stp-replay" play "$run" --as "$station" >"$work/said" 2>&1
    # 2: nobody has spoken to that host.
    [ $? -ne 1 ] || complain "(at host 2), played:"
  done
done
exit $result
