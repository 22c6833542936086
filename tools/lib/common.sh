# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# Shared by the scripts: messages, a private temporary directory, and background processes that end
# with the script. Sourced, never run.

say() { printf '%s: %s\n' "${program:?}" "$*" >&2; }
fail() {
  say "$*"
  exit 1
}
# Of a wrong command line; the script has usage().
wrong_usage() {
  say "$*"
  usage >&2
  exit 2
}

# Pids of the processes that start() began. Each leads its own session, so that its children end
# with it.
started=()
work=

# make_work_directory [ON-EXIT]: a private directory for all temporary files of this run, in $work.
# ON-EXIT, where given, calls clean_up.
make_work_directory() {
  outer_temporaries=${TMPDIR:-/tmp}
  work=$(mktemp -d "$outer_temporaries/stp-$program-XXXXXX") || fail "cannot make a temporary directory"
  export TMPDIR=$work
  trap "${1:-clean_up}" EXIT
  # The first signal counts: timeout sends two, a terminal and whoever is impatient more. In an EXIT trap, exit ends it.
  trap 'trap "" INT TERM HUP; exit 130' INT
  trap 'trap "" INT TERM HUP; exit 143' TERM HUP
}

clean_up() {
  trap '' INT TERM HUP
  stop "${started[@]}"
  if [ -n "$work" ]; then rm -rf "$work"; fi
}

# start LOG COMMAND...: runs it in the background; its pid is in $! as usual.
start() {
  local log=$1
  shift
  : >>"$log"
  setsid "$@" >>"$log" 2>&1 </dev/null &
  started+=($!)
}

# put_aside LOG: what an earlier process of that name has said does not count for the next one.
put_aside() {
  local number=1
  [ -e "$1" ] || return 0
  while [ -e "${1%.log}.$number.log" ]; do number=$((number + 1)); done
  mv "$1" "${1%.log}.$number.log"
}

# Debian's own Python, where it is there: a manager of versions starts ten programs before its own.
# shellcheck disable=SC2034
if [ -x /usr/bin/python3 ]; then python=/usr/bin/python3; else python=python3; fi

# pause SECONDS: as sleep does, without a process: to start one takes some milliseconds of a processor.
pause() { read -rt "$1" -u "$silence" || :; }
exec {silence}<> <(:) # nobody writes to it

# text_of FILE VARIABLE: reads it without a process, and leaves out NUL bytes.
text_of() {
  local -n text_read=$2
  local part
  text_read=
  while IFS= read -rd '' part; do text_read+=$part; done 2>/dev/null <"$1"
  text_read+=${part-}
}

# contains FILE TEXT: the file has it. line_of FILE TEXT: one of its lines begins so.
contains() {
  local all
  text_of "$1" all
  [[ $all == *"$2"* ]]
}
line_of() {
  local all
  text_of "$1" all
  [[ $'\n'$all == *$'\n'"$2"* ]]
}

# session_of PID...: the processes of the sessions that these lead. ps is no part of this script's process group: it ends
# by a signal to that even if the script ignores it, and then nothing would seem to be left.
session_of() {
  local leaders
  printf -v leaders '%s,' "$@"
  # shellcheck disable=SC2046 # ps pads short ones
  printf '%s\n' $(setsid -w ps -o pid= -s "${leaders%,}" 2>/dev/null)
}

# stop PID...: ends processes that start() began, and their children: with SIGTERM, after five seconds with SIGKILL.
stop() {
  local pids tries=100
  [ $# -gt 0 ] || return 0
  pids=$(session_of "$@")
  if [ -n "$pids" ]; then
    # shellcheck disable=SC2086
    kill $pids 2>/dev/null
    while pids=$(session_of "$@") && [ -n "$pids" ] && [ $((tries--)) -gt 0 ]; do pause 0.05; done
    # shellcheck disable=SC2086
    [ -z "$pids" ] || kill -KILL $pids 2>/dev/null
  fi
  wait "$@" 2>/dev/null
  return 0
}

# Kills a process without giving it a chance to clean up.
kill_at_once() {
  kill -KILL "$1" 2>/dev/null
  wait "$1" 2>/dev/null
  return 0
}

# wait_for SECONDS COMMAND...: until the command succeeds.
wait_for() {
  local tries=$(($1 * 20))
  shift
  until "$@"; do
    [ $((tries--)) -gt 0 ] || return 1
    pause 0.05
  done
}

# bytes_of 64M: 67108864
bytes_of() {
  local size=${1%[KMG]}
  [[ $size =~ ^[0-9]+$ ]] || return 1
  case $1 in
    *K) echo $((size << 10)) ;;
    *M) echo $((size << 20)) ;;
    *G) echo $((size << 30)) ;;
    *) echo "$size" ;;
  esac
}

sha256_of() { sha256sum <"$1" | cut -d' ' -f1; }
