# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# Completion for all programs. Reads options, their values and subcommands from --help, so that they
# are in one place. Needs only bash.

# _stp_option_names < HELP
_stp_option_names() {
  sed -nE 's/^ +((-[a-zA-Z0-9]),)?(--[a-z0-9-]+).*/\2\n\3/p' | sed '/^$/d'
}

# _stp_subcommands < HELP: names below "Subcommands:".
_stp_subcommands() {
  sed -nE '/^Subcommands:/,/^$/s/^  ([a-z][a-z-]*).*/\1/p'
}

# _stp_read_help PROGRAM WORD...: puts --help of the innermost subcommand among the words into `inner`,
# and --help of all levels into `help`, because their options may also follow the subcommand.
_stp_read_help() {
  local command=("$1") word
  inner=$("$1" --help 2>/dev/null)
  help=$inner
  for word in "${@:2}"; do
    if _stp_subcommands <<<"$inner" | grep -xF -- "$word" >/dev/null; then
      command+=("$word")
      inner=$("${command[@]}" --help 2>/dev/null)
      help+=$'\n'$inner
    fi
  done
}

# _stp_type OPTION < HELP: the type of the option's value, if it has one.
_stp_type() {
  sed -nE "s/^ +(-[a-zA-Z0-9],)?$1 ([^ ]+).*/\2/p" | grep -vE '^(Needs|Excludes):$'
}

# _stp_links CURRENT
_stp_links() {
  local interface
  case $1 in
    iface:* | udp:*) for interface in /sys/class/net/*; do echo "${1%%:*}:${interface##*/}"; done ;;
    stpd:* | memif:*) compgen -f -P "${1%%:*}:" -- "${1#*:}" ;;
    *) printf '%s\n' loop stpd: iface: udp: memif: vdev: pci: ;;
  esac
}

# _stp_values PROGRAM OPTION TYPE CURRENT: the values that may follow OPTION.
_stp_values() {
  case $2:$3 in
    --link:*) _stp_links "$4" ;;
    --profile:*) "$1" --list | awk '{ print $1 } END { print "all" }' ;;
    --user:* | --socket-owner:*) compgen -u ;;
    --*group:*) compgen -g ;;
    --socket:*) compgen -f -- "$4" ;;
    *\|*) tr '|' '\n' <<<"$3" | grep -v '[A-Z]' ;; # words in capitals stand for others
    *DIR*) compgen -d -- "$4" ;;
    *FILE* | *PATH* | *TEXT*) compgen -f -- "$4" ;;
  esac
}

_stp() {
  local program=$1 line=${COMP_LINE:0:COMP_POINT} words current previous type candidates word
  local inner help
  read -ra words <<<"$line"
  [[ $line != *[[:space:]] ]] || words+=("")
  current=${words[-1]}
  previous=${words[-2]}
  # --option=value
  if [[ $current == --*=* ]]; then previous=${current%%=*} current=${current#*=}; fi
  _stp_read_help "$program" "${words[@]:1:${#words[@]}-2}"
  type=
  if [[ $previous == -* ]]; then type=$(_stp_type "$previous" <<<"$help" | tail -n 1); fi

  if [ -n "$type" ]; then
    candidates=$(_stp_values "$program" "$previous" "$type" "$current")
  elif [[ $current == -* ]]; then
    candidates=$(_stp_option_names <<<"$help" | sort -u)
  else
    candidates=$(_stp_subcommands <<<"$inner")
    [ -n "$candidates" ] || candidates=$(compgen -f -- "$current")
  fi
  COMPREPLY=()
  while IFS= read -r word; do
    if [[ -n $word && $word == "$current"* ]]; then COMPREPLY+=("$word"); fi
  done <<<"$candidates"
  if [[ ${COMPREPLY[*]} == *: ]]; then compopt -o nospace 2>/dev/null; fi
  if [[ -e ${COMPREPLY[0]-} ]]; then compopt -o filenames 2>/dev/null; fi
  # Readline treats a colon as the beginning of a new word.
  if [[ $current == *:* && $COMP_WORDBREAKS == *:* ]]; then
    COMPREPLY=("${COMPREPLY[@]#"${current%:*}:"}")
  fi
}

complete -F _stp stpd stpctl stp-perf stp-recv stp-replay stp-send stp-sim
