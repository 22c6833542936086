# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# Sourced by the tests of the manual pages, in the root of the project.
# shellcheck disable=SC2034
pages=docs/man
wrong=0
complain() {
  echo "$*"
  wrong=1
}

# names_of PAGE: what its NAME section lists, one in a line.
names_of() { awk '/^# NAME/ { getline; getline; sub(/ - .*/, ""); gsub(/, /, "\n"); print; exit }' "$1"; }

# section_of PAGE TITLE: its text.
section_of() { awk -v title="# $2" '/^# / { inside = $0 == title; next } inside' "$1"; }

# Fenced text of what is read.
code() { awk '/^```/ { inside = !inside; next } inside'; }
