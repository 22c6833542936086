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

# in_zsh LINE COMPLETED...: says what the Tab key does not make of a LINE. One shell in one terminal for all.
in_zsh() {
  zsh -f -c '
    zmodload zsh/zpty
    zpty -b shell zsh -f -i
    hear() { local part all=; while zpty -r -t shell part; do all+=$part; done; print -r -- "${all//[$'"'\r\a'"']/}" }
    await() {
      local heard= turns=400
      until [[ $heard == *$1* ]] || (( turns-- == 0 )); do sleep 0.05; heard+=$(hear); done
      print -r -- "$heard"
    }
    zpty -w shell "PS1=; fpath=($1/tools/completion \$fpath); autoload -Uz compinit; compinit -u -D
      PATH=$PATH; print -r -- is\${:-}ready"
    await isready >/dev/null
    shift
    for line completed; do
      zpty -w -n shell "$line"$'"'\t'"'
      heard=$(await "$completed")
      [[ $heard == *$completed* ]] || print -r -- "zsh does not make \"$completed\" of \"$line\": $heard"
      # Ctrl-U, and an answer that shows that what came before has been heard.
      zpty -w shell $'"'\x15'"'"print -r -- is\${:-}gone"
      await isgone >/dev/null
    done' - "$root" "$@"
}

# LINE COMPLETED...
lines=('stpctl conn' 'stpctl connections'
  'stpd --po' 'stpd --poll'
  'stpd --poll b' 'stpd --poll busy'
  'stpctl trace sto' 'stpctl trace stop'
  'stpctl stats bad_k' 'stpctl stats bad_key'
  "stpctl --socket 'a links b' tra" "stpctl --socket 'a links b' trace"
  "stpd --poll 'b" "stpd --poll 'busy"
  'stp-send --link if' 'stp-send --link iface:')
# Where another name begins so (localhost.localdomain), a shell may stop at what they share.
if [ "$(sed 's/#.*//' /etc/hosts | awk '{ for (i = 2; i <= NF; ++i) print $i }' | grep '^localhos' | sort -u)" = localhost ]; then
  lines+=('stpctl ping localhos' 'stpctl ping localhost:')
fi
for ((i = 0; i < ${#lines[@]}; i += 2)); do
  line=${lines[i]} completed=${lines[i + 1]}
  said=$(in_bash "$line")
  last=${completed##* }
  grep -qxF -- "${last#\'}" <<<"$said" || fail "bash does not make '$completed' of '$line': $said"
done
command -v zsh >/dev/null || { echo "SKIPPED: bash only, as the package zsh is not installed" && exit 77; }
said=$(in_zsh "${lines[@]}")
[ -z "$said" ] || fail "$said"
echo PASSED
