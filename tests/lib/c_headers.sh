# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# Sourced by tests that compare C headers with something else.

# without_comments FILE...
without_comments() {
  cat "$@" | awk '{ text = text $0 "\n" } END { gsub(/\/\*([^*]|\*+[^*\/])*\*+\//, "", text); printf "%s", text }'
}

# declarations < C without comments: functions, each in one line, blanks only where C needs them. After a line
# "@WHERE" each line begins with WHERE and a blank.
declarations() {
  awk '
    function declared(what) {
      if (what ~ /^ *typedef /) return
      if (what !~ /^ *(ST_API |static inline )?[a-z][a-z0-9_]*[ *a-z0-9_]*[ *]stm?_[a-z0-9_]+\(.*\) *$/) return
      sub(/ST_API /, "", what)
      sub(/static inline /, "", what)
      gsub(/ +/, " ", what)
      gsub(/ ?\* ?/, "*", what)
      gsub(/ ?, ?/, ",", what)
      gsub(/ ?\( ?/, "(", what)
      gsub(/ ?\) ?/, ")", what)
      gsub(/^ | $/, "", what)
      print where what
    }
    /^@/ { where = substr($0, 2) " "; text = ""; next }
    /^ *#/ { next }
    {
      count = split($0, part, /[;{}]/)
      text = text " " part[1]
      for (i = 2; i <= count; ++i) { declared(text); text = part[i] }
    }'
}
