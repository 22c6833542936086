# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# Completion for all programs. Reads options, their values and subcommands from --help, so that they
# are in one place. Needs only bash, and starts no process but the program whose words it completes.

# What these functions find goes into variables of _stp: a process for each of them would take longer than all the rest.

# _stp_split LINE: puts the words of a command line into `words` as the program would get them, without quotes and
# backslashes. `kept`: how much of the last one stands before what Readline takes for the word, which begins behind a
# quote that is still open or a character of COMP_WORDBREAKS.
_stp_split() {
  local line=$1 char word='' quote='' begun=
  local -i i
  words=() kept=0
  for ((i = 0; i < ${#line}; ++i)); do
    char=${line:i:1}
    case $quote$char in
      [[:space:]])
        if [[ -n $begun ]]; then words+=("$word"); fi
        word='' begun='' kept=0
        continue
        ;;
      \' | \") quote=$char open=${#word} ;;
      \'\' | \"\") quote='' ;;
      \\ | \"\\)
        i+=1
        # Within double quotes a backslash is one, except before these.
        if [[ -n $quote && ${line:i:1} != [\"\\\$\`] ]]; then word+=$char; fi
        word+=${line:i:1}
        ;;
      *)
        word+=$char
        if [[ -z $quote && $COMP_WORDBREAKS == *"$char"* ]]; then kept=${#word}; fi
        ;;
    esac
    begun=1
  done
  if [[ -n $quote ]]; then kept=$open; fi
  words+=("$word")
}

# _stp_option_names HELP: appends the options to `candidates`.
_stp_option_names() {
  local line
  while IFS= read -r line; do
    [[ $line =~ ^' '+((-[a-zA-Z0-9]),)?(--[a-z0-9-]+) ]] || continue
    candidates+=(${BASH_REMATCH[2]:+"${BASH_REMATCH[2]}"} "${BASH_REMATCH[3]}")
  done <<<"$1"
}

# _stp_subcommands HELP: puts the names below "Subcommands:" into `subcommands`.
_stp_subcommands() {
  local line inside=
  subcommands=()
  while IFS= read -r line; do
    if [[ $line == Subcommands:* ]]; then
      inside=1
    elif [ -z "$line" ]; then
      inside=
    elif [[ -n $inside && $line =~ ^'  '([a-z][a-z-]*) ]]; then
      subcommands+=("${BASH_REMATCH[1]}")
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
    if [[ -n $word && " ${subcommands[*]} " == *" $word "* ]]; then
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

# _stp_files BEGINNING [BEFORE]: appends the files whose paths begin so to `candidates`, each behind BEFORE.
_stp_files() {
  local path=$1 home='' strict='' file before=${#candidates[@]}
  if [[ $path == \~/* ]]; then home=$HOME path=$HOME${path:1}; fi
  # With it, a pattern without a file would be an error.
  if shopt -q failglob; then shopt -u failglob && strict=1; fi
  for file in "$path"*; do
    if [[ -e $file || -L $file ]]; then candidates+=("${2-}${home:+"~"}${file#"$home"}"); fi
  done
  if [ -n "$strict" ]; then shopt -s failglob; fi
  # Readline puts a backslash before the colon of what else is offered then.
  if ((${#candidates[@]} != before)); then compopt -o filenames 2>/dev/null; fi
}

# _stp_names FILE: appends the first field of each line of /etc/passwd or /etc/group.
_stp_names() {
  local name
  while IFS=: read -r name _; do candidates+=("$name"); done <"$1"
}

# _stp_hosts HELP: appends the names of /etc/hosts, where a peer is among the words.
_stp_hosts() {
  local line names name
  [[ $1 == *Usage:*HOST:PORT* && -r /etc/hosts ]] || return 0
  while read -r line; do
    read -ra names <<<"${line%%#*}"
    for name in "${names[@]:1}"; do candidates+=("$name:"); done
  done </etc/hosts
}

# _stp_links CURRENT
_stp_links() {
  local interface rest
  case $1 in
    udp:*,*) candidates+=("${1%,*},"{port=,mtu=,queues=,congestion=auto,congestion=on,congestion=off}) ;;
    ip:*,*) candidates+=("${1%,*},"{mtu=,congestion=auto,congestion=on,congestion=off}) ;;
    iface:* | udp:* | ip:*)
      while IFS=' :' read -r interface rest; do
        [[ $interface$rest = *\|* ]] || candidates+=("${1%%:*}:$interface")
      done </proc/net/dev
      ;;
    stpd:* | memif:*) _stp_files "${1#*:}" "${1%%:*}:" ;;
    *) candidates+=(loop stpd: iface: udp: ip: memif: vdev: pci:) ;;
  esac
}

# _stp_profiles PROGRAM
_stp_profiles() {
  local line
  while read -r line _; do candidates+=("$line"); done <<<"$("$1" --list 2>/dev/null)"
  candidates+=(all)
}

# _stp_counters PROGRAM
_stp_counters() {
  local name
  while read -r name _; do
    if [[ $name == [a-z]* ]]; then candidates+=("$name"); fi
  done <<<"$("$1" stats --list 2>/dev/null)"
}

# _stp_choices TYPE: appends the parts between bars, but words in capitals, which stand for others.
_stp_choices() {
  local choice choices
  IFS='|' read -ra choices <<<"$1"
  for choice in "${choices[@]}"; do
    if [[ $choice != *[A-Z]* ]]; then candidates+=("$choice"); fi
  done
}

# _stp_values PROGRAM OPTION TYPE CURRENT: appends the values that may follow OPTION to `candidates`.
_stp_values() {
  case $2:$3 in
    --link:*) _stp_links "$4" ;;
    --profile:*) _stp_profiles "$1" ;;
    --user:* | --socket-owner:*) _stp_names /etc/passwd ;;
    --*group:*) _stp_names /etc/group ;;
    --socket:*) _stp_files "$4" ;;
    *\|*) _stp_choices "$3" ;;
    *DIR* | *FILE* | *PATH* | *TEXT*) _stp_files "$4" ;;
  esac
}

_stp() {
  local program=$1 words kept open current previous type='' before='' candidates=() word seen=$'\n'
  local help subcommands
  _stp_split "${COMP_LINE:0:COMP_POINT}"
  current=${words[-1]}
  previous=${words[-2]-}
  # --option=value
  if [[ $current == --*=* ]]; then previous=${current%%=*} before=${current%%=*}= current=${current#*=}; fi
  _stp_read_help "$program" "${words[@]:1:${#words[@]}-2}"
  if [[ $previous == -* ]]; then _stp_type "$previous" "$help"; fi

  if [ -n "$type" ]; then
    _stp_values "$program" "$previous" "$type" "$current"
  elif [[ $current == -* ]]; then
    _stp_option_names "$help"
  elif [ ${#subcommands[@]} -ne 0 ]; then
    candidates=("${subcommands[@]}")
  elif [[ $help == *Usage:*COUNTER* ]]; then
    _stp_counters "$program"
  else
    _stp_files "$current"
    _stp_hosts "$help"
  fi
  COMPREPLY=()
  for word in "${candidates[@]}"; do
    # Options of several levels are in several helps.
    if [[ $word != "$current"* || $seen == *$'\n'"$word"$'\n'* ]]; then continue; fi
    seen+=$word$'\n'
    word=$before$word
    COMPREPLY+=("${word:kept}")
  done
  if [[ ${COMPREPLY[*]} == *[:=] ]]; then compopt -o nospace 2>/dev/null; fi
}

complete -F _stp stpd stpctl stp-perf stp-recv stp-replay stp-send stp-sim
