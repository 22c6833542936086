# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# Completion for all programs. Reads options, their values and subcommands from --help, so that they
# are in one place. Needs only bash.

# What these functions find goes into variables of _stp: a process for each of them would take longer than all the rest.

# _stp_option_names HELP: appends the options to `candidates`.
_stp_option_names() {
  local line
  while IFS= read -r line; do
    [[ $line =~ ^' '+((-[a-zA-Z0-9]),)?(--[a-z0-9-]+) ]] || continue
    candidates+=${BASH_REMATCH[2]:+${BASH_REMATCH[2]}$'\n'}${BASH_REMATCH[3]}$'\n'
  done <<<"$1"
}

# _stp_subcommands HELP: puts the names below "Subcommands:" into `subcommands`, each on a line.
_stp_subcommands() {
  local line inside=
  subcommands=
  while IFS= read -r line; do
    if [[ $line == Subcommands:* ]]; then
      inside=1
    elif [ -z "$line" ]; then
      inside=
    elif [[ -n $inside && $line =~ ^'  '([a-z][a-z-]*) ]]; then
      subcommands+=${BASH_REMATCH[1]}$'\n'
    fi
  done <<<"$1"
}

# _stp_read_help PROGRAM WORD...: puts the subcommands of the innermost one among the words into `subcommands`, and
# --help of all levels into `help`, because their options may also follow the subcommand.
_stp_read_help() {
  local command=("$1") word inner
  help=$("$1" --help 2>/dev/null)
  _stp_subcommands "$help"
  for word in "${@:2}"; do
    if [[ -n $word && $'\n'$subcommands == *$'\n'"$word"$'\n'* ]]; then
      command+=("$word")
      inner=$("${command[@]}" --help 2>/dev/null)
      help+=$'\n'$inner
      _stp_subcommands "$inner"
    fi
  done
}

# _stp_type OPTION HELP: puts the type of the option's value into `type`, if it has one.
_stp_type() {
  local line
  while IFS= read -r line; do
    [[ $line =~ ^' '+(-[a-zA-Z0-9],)?"$1"' '([^ ]+) ]] || continue
    case ${BASH_REMATCH[2]} in Needs: | Excludes:) ;; *) type=${BASH_REMATCH[2]} ;; esac
  done <<<"$2"
}

# _stp_links CURRENT
_stp_links() {
  local interface
  case $1 in
    udp:*,*) printf '%s\n' "${1%,*},"{port=,mtu=,queues=,congestion=on} ;;
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
  local help subcommands
  read -ra words <<<"$line"
  [[ $line != *[[:space:]] ]] || words+=("")
  current=${words[-1]}
  previous=${words[-2]}
  # --option=value
  if [[ $current == --*=* ]]; then previous=${current%%=*} current=${current#*=}; fi
  _stp_read_help "$program" "${words[@]:1:${#words[@]}-2}"
  type=
  if [[ $previous == -* ]]; then _stp_type "$previous" "$help"; fi

  if [ -n "$type" ]; then
    candidates=$(_stp_values "$program" "$previous" "$type" "$current")
  elif [[ $current == -* ]]; then
    candidates=
    _stp_option_names "$help"
  else
    candidates=$subcommands
    [ -n "$candidates" ] || candidates=$(compgen -f -- "$current")
  fi
  COMPREPLY=()
  while IFS= read -r word; do
    if [[ -n $word && $word == "$current"* ]]; then COMPREPLY+=("$word"); fi
  done <<<"$candidates"
  if [[ ${COMPREPLY[*]} == *[:=] ]]; then compopt -o nospace 2>/dev/null; fi
  if [[ -e ${COMPREPLY[0]-} ]]; then compopt -o filenames 2>/dev/null; fi
  # Readline treats what follows a colon or an equals sign as a new word.
  if [[ $COMP_WORDBREAKS == *:* ]]; then
    COMPREPLY=("${COMPREPLY[@]#"${current%"${current##*[:=]}"}"}")
  fi
}

complete -F _stp stpd stpctl stp-perf stp-recv stp-replay stp-send stp-sim
