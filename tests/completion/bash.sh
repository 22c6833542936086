#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# usage: bash.sh ROOT BINARIES
# Bash completes every long option of a program's --help, subcommands, and the values of options
# where the possible ones are known.
set -u
cd "$1" || exit 1
binaries=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
. tools/completion/stp.bash
wrong=0
breaks=$' \t\n"\'><=;|&(:'

# complete_line LINE: puts into COMPREPLY what the Tab key offers at the end of LINE. Other programs than ours are not
# found meanwhile.
complete_line() {
  # shellcheck disable=SC2034 # read by what bash calls
  local PATH=$binaries COMP_LINE=$1 COMP_POINT=${#1} COMP_WORDBREAKS=$breaks
  _stp "${1%% *}" "" "" 2>>"$work/said"
}
offers() { # LINE WORD...
  local line=$1 word offered
  shift
  complete_line "$line"
  printf -v offered '%s\n' "${COMPREPLY[@]}"
  for word; do
    [[ $'\n'$offered == *$'\n'"$word"$'\n'* ]] || { echo "'$line' is not completed by $word"; wrong=1; }
  done
}
long_options() { grep -oE '^ +(-[a-zA-Z0-9],)?--[a-z0-9-]+' | grep -oE -- '--.*'; }

programs=()
for page in docs/man/*.[18].scd; do
  name=${page##*/}
  name=${name%.[18].scd} file=$2/$name
  [ -x "$file" ] || continue
  programs+=("$name")
  complete -p "$name" >/dev/null || wrong=1
  help=$("$file" --help)
  # shellcheck disable=SC2046
  offers "$name --" $(long_options <<<"$help")
  mapfile -t subcommands < <(sed -nE '/^Subcommands:/,/^$/s/^  ([a-z-]+).*/\1/p' <<<"$help")
  [ ${#subcommands[@]} -eq 0 ] || offers "$name " "${subcommands[@]}"
  for subcommand in "${subcommands[@]}"; do
    # shellcheck disable=SC2046
    offers "$name $subcommand --" $("$file" "$subcommand" --help | long_options)
  done
done
[ ${#programs[@]} -ge 3 ] || { echo "only ${programs[*]} found"; wrong=1; }

offers "stpd --link " loop iface: memif: stpd: vdev: pci:
offers "stpd --link iface:" lo
offers "stpd --link udp:lo,po" lo,port=
offers "stpd --link udp:lo,port=9001,m" 9001,mtu=
offers "stpd --link ip:lo,m" lo,mtu=
offers "stpd --poll " busy adaptive
offers "stpd --poll=a" adaptive
offers "stpd --config tests/comp" tests/completion
offers "stpd --user ro" root
offers "stp-recv --out tests/comp" tests/completion
offers "stp-send READ" README.md
offers "stp-recv --listen :3000 --on" --once
offers "stpctl trace " start stop status
host=$(sed -nE 's/#.*//; s/^[0-9a-f.:]+[[:space:]]+([^[:space:]]+).*/\1/p' /etc/hosts | head -n 1)
if [ -n "$host" ]; then
  offers "stpctl ping ${host%?}" "$host:"
  offers "stp-send READ" README.md
  offers "stp-send README.md ${host%?}" "$host:"
  offers "stp-perf latency " "$host:"
fi
offers "stpctl trace start --out READ" README.md
offers "stpctl links --js" --json
offers "stpctl stats rx_f" rx_frames
offers "stpctl stats --all bad_key rx_" rx_frames rx_bytes
offers "stp-replay check READ" README.md
offers "stpctl --socket READ" README.md
for line in "stpctl --socket " "stpctl links --socket " "stpd --link iface:lo --cpus "; do
  complete_line "$line"
  [[ " ${COMPREPLY[*]} " != *\ @(PATH|NAME|LIST)\ * ]] || { echo "'$line' is completed by what stands for a value"; wrong=1; }
done

# Quotes and backslashes are no part of words, and what stands in them separates none.
: >"$work/two words"
: >"$work/=a"
offers "stp-send $work/two\\ w" "$work/two words"
offers "stp-send '$work/two w" "$work/two words"
offers "stp-send \"$work/two w" "$work/two words"
offers "stp-send $work/'two w" "two words"
offers "stp-send '$work'/two" "$work/two words"
offers "stp-send --files-from=$work/tw" "$work/two words"
offers "stp-send $work/=" a
offers "stpctl --socket 'a links b' tra" trace
offers "stpd --poll 'a" adaptive
offers "stpd --link 'iface:l" iface:lo
offers "stpd \"--poll\" a" adaptive
offers "stpd --user ro\\" root
breaks=' '
offers "stpd --poll=a" --poll=adaptive
offers "stpd --link iface:l" iface:lo
complete_line "stpctl links --"
again=$(printf '%s\n' "${COMPREPLY[@]}" | sort | uniq -d)
[ -z "$again" ] || { echo "offered twice: $again"; wrong=1; }
[ ! -s "$work/said" ] || { cat "$work/said"; echo "completion has started another program, or failed"; wrong=1; }

complete_line "stp-send --quiet --nothing"
[ ${#COMPREPLY[@]} -eq 0 ] || { echo "something that is not there is offered"; wrong=1; }
exit $wrong
