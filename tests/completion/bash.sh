#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# usage: bash.sh ROOT BINARIES
# Bash completes every long option of a program's --help, subcommands, and the values of options
# where the possible ones are known.
set -u
cd "$1" || exit 1
PATH=$2:$PATH
. tools/completion/stp.bash
wrong=0

# completed LINE: what the Tab key offers at the end of LINE.
completed() {
  # shellcheck disable=SC2034 # read by what bash calls
  COMP_LINE=$1 COMP_POINT=${#1} COMP_WORDBREAKS=$' \t\n"\'><=;|&(:'
  _stp "${1%% *}" "" ""
  printf '%s\n' "${COMPREPLY[@]}"
}
offers() { # LINE WORD...
  local line=$1 word
  shift
  for word; do
    completed "$line" | grep -qxF -- "$word" || { echo "'$line' is not completed by $word"; wrong=1; }
  done
}
long_options() { grep -oE '^ +(-[a-zA-Z0-9],)?--[a-z0-9-]+' | grep -oE -- '--.*'; }

programs=()
for page in docs/man/*.[18].scd; do
  name=$(basename "${page%.[18].scd}") file=$2/$(basename "${page%.[18].scd}")
  [ -x "$file" ] || continue
  programs+=("$name")
  complete -p "$name" >/dev/null || wrong=1
  # shellcheck disable=SC2046
  offers "$name --" $("$file" --help | long_options)
  for subcommand in $("$file" --help | sed -nE '/^Subcommands:/,/^$/s/^  ([a-z-]+).*/\1/p'); do
    offers "$name " "$subcommand"
    # shellcheck disable=SC2046
    offers "$name $subcommand --" $("$file" "$subcommand" --help | long_options)
  done
done
[ ${#programs[@]} -ge 3 ] || { echo "only ${programs[*]} found"; wrong=1; }

offers "stpd --link " loop iface: memif: stpd: vdev: pci:
offers "stpd --link iface:" lo
offers "stpd --poll " busy adaptive
offers "stpd --poll=a" adaptive
offers "stpd --config tests/comp" tests/completion
offers "stpd --user ro" root
offers "stp-recv --out tests/comp" tests/completion
offers "stp-send READ" README.md
offers "stp-recv --listen :3000 --on" --once
offers "stpctl trace " start stop status
offers "stpctl trace start --out READ" README.md
offers "stpctl links --js" --json
offers "stp-replay check READ" README.md
[ -z "$(completed "stp-send --quiet --nothing")" ] || { echo "something that is not there is offered"; wrong=1; }
exit $wrong
