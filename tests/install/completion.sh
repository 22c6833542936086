#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# usage: completion.sh BUILD ROOT
# What a shell offers after a few letters. zsh runs in a terminal of its own.
set -u
build=$1 root=$2
export PATH=$build/bin:$PATH

fail() {
  echo "$*" >&2
  exit 1
}

in_bash() {
  bash --norc -c '
    . "$1/tools/completion/stp.bash"
    COMP_LINE=$2 COMP_POINT=${#2} COMP_WORDBREAKS=" "
    _stp "${2%% *}"
    printf "%s\n" "${COMPREPLY[@]}"' - "$root" "$1" 2>/dev/null
}

# Prints the command line after a tab.
in_zsh() {
  zsh -f -c '
    zmodload zsh/zpty
    zpty -b shell zsh -f -i
    hear() { local part all=; while zpty -r -t shell part; do all+=$part; done; print -r -- "$all" }
    await() {
      local heard= turns=200
      until [[ $heard == *$1* ]] || (( turns-- == 0 )); do sleep 0.05; heard+=$(hear); done
      print -r -- "$heard"
    }
    zpty -w shell "PS1=; fpath=($1/tools/completion \$fpath); autoload -Uz compinit; compinit -u -D
      PATH=$PATH; print -r -- is\${:-}ready"
    await isready >/dev/null
    zpty -w -n shell "$2"$'"'\\t'"'
    await "$3"' - "$root" "$1" "$2" | tr -d '\r\a'
}

# offers LINE COMPLETED
offers() {
  in_bash "$1" | grep -qxF -- "${2##* }" || fail "bash does not make '$2' of '$1': $(in_bash "$1")"
  if command -v zsh >/dev/null; then
    in_zsh "$1" "$2" | grep -qF -- "$2" || fail "zsh does not make '$2' of '$1': $(in_zsh "$1" "$2")"
  fi
}

offers 'stpctl conn' 'stpctl connections'
offers 'stpd --po' 'stpd --poll'
offers 'stpd --poll b' 'stpd --poll busy'
offers 'stpctl trace sto' 'stpctl trace stop'
offers 'stp-send --link i' 'stp-send --link iface:'
command -v zsh >/dev/null || { echo "SKIPPED: bash only, as the package zsh is not installed" && exit 77; }
echo PASSED
