#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# usage: simulation.sh BINARIES SEEDS
# Runs of the simulation, whatever its links do to frames, break no rule: neither does the engine
# send what check finds fault with, nor check find fault with what is right. And where nothing goes
# wrong, a Node in the place of a host does what that host did (in runs where credit is not so scarce
# that the moments at which Nodes ask for it decide).
set -u
bin=$1
seeds=$2
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
result=0
for profile in clean loss burst duplicate reorder delay corrupt mixed partition reboot abrupt slow \
  small-buffers many-vcs level0; do
  for seed in $(seq "$seeds"); do
    "$bin/stp-sim" --seed "$seed" --profile "$profile" --pcapng "$work/run.pcapng" >/dev/null ||
      { echo "$profile $seed: the run itself failed"; result=1; }
    "$bin/stp-replay" check "$work/run.pcapng" >"$work/said" ||
      { echo "stp-sim --seed $seed --profile $profile:"; head -n 5 "$work/said"; result=1; }
    [ "$profile" = clean ] && [ "$seed" -le 3 ] || continue
    "$bin/stp-replay" play "$work/run.pcapng" --as 02:00:00:00:00:02 >"$work/said" ||
      { echo "stp-sim --seed $seed --profile $profile, played:"; head -n 8 "$work/said"; result=1; }
  done
done
exit $result
