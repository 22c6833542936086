#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# usage: fish.sh ROOT BINARIES
# fish, where it is installed, completes the long options of every program.
set -u
cd "$1" || exit 1
command -v fish >/dev/null || { echo "SKIPPED: no fish here"; exit 77; }
PATH=$2:$PATH
HOME=$(mktemp -d)
export HOME PATH
trap 'rm -rf "$HOME"' EXIT
wrong=0

for name in stpd stp-send stp-recv; do
  offered=$(fish --no-config -c "source tools/completion/stp.fish; complete -C'$name --'" | cut -f1)
  for option in $("$name" --help | grep -oE '^ +(-[a-zA-Z0-9],)?--[a-z0-9-]+' | grep -oE -- '--.*'); do
    grep -qxF -- "$option" <<<"$offered" || { echo "$name: $option is not offered"; wrong=1; }
  done
done
# offers LINE WHAT...: they are offered for that command line.
offers() {
  local offered
  offered=$(fish --no-config -c "source tools/completion/stp.fish; complete -C'$1'" | cut -f1)
  for what in "${@:2}"; do
    grep -qxF -- "$what" <<<"$offered" || { echo "$1: $what is not offered, but: $offered"; wrong=1; return 1; }
  done
}
offers 'stpd --link ' loop udp: ip:
offers 'stpd --link udp:' udp:lo
offers 'stpd --link udp:eth0,' udp:eth0,port= udp:eth0,congestion=off
offers 'stpd --poll ' busy adaptive interrupt
offers 'stpd --log-format ' text timed json
offers 'stp-perf latency --op ' put level0
offers 'stpctl ping --l' --link
offers 'stpctl stats rx_' rx_frames
for line in 'stpctl links --l' 'stp-sim --l'; do
  ! (offers "$line" --link) >/dev/null || { echo "$line: --link is offered, which is refused"; wrong=1; }
done
# A line that somebody has pasted runs nothing.
fish --no-config -c "source tools/completion/stp.fish; complete -C\"stpd '--a/b/;e touch $HOME/ran #' \"" >/dev/null 2>&1
[ ! -e "$HOME/ran" ] || { echo "the word before the cursor was run"; wrong=1; }
host=$(sed -nE 's/#.*//; s/^[0-9a-f.:]+[[:space:]]+([^[:space:]]+).*/\1/p' /etc/hosts | head -n 1)
[ -z "$host" ] || offers "stpctl ping ${host%?}" "$host:"
exit $wrong
