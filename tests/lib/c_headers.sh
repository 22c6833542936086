# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# Sourced by tests that compare C headers with something else.

# without_comments FILE...
without_comments() { sed -nE ':all; N; $!b all; s@/\*([^*]|\*+[^*/])*\*+/@@g; p' -s "$@"; }

# declarations < C without comments: functions, each in one line, blanks only where C needs them.
declarations() {
  grep -v '^ *#' | tr '\n' ' ' | tr ';{}' '\n\n\n' |
    grep -E '^ *(ST_API |static inline )?[a-z][a-z0-9_]*[ *a-z0-9_]*[ *]stm?_[a-z0-9_]+\(.*\) *$' |
    grep -v '^ *typedef ' |
    sed -E 's/ST_API //; s/static inline //; s/ +/ /g; s/ ?([*,()]) ?/\1/g; s/^ //; s/ $//'
}
