#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# usage: terminal.sh ROOT
# What programs tell people goes through tools/cli/say.h, which makes names that others have chosen harmless. So
# nothing else in tools/ writes to standard error, but for the progress on a terminal, stpd's log, and fixed texts. It may
# ask which file that is.
set -uo pipefail
cd "${1:?usage: terminal.sh ROOT}" || exit 1
own='^tools/(cli/|files/progress[.]cpp|perf/measure[.]cpp|stpd/log[.]cpp|wireshark/|examples/|fuzz/)'
found=$(grep -nE 'stderr|STDERR_FILENO|std::cerr|perror' -r tools --include='*.cpp' --include='*.h' | grep -vE "$own" |
  grep -vE '::write\(STDERR_FILENO, text, std::strlen\(text\)\)|(::fstat|identity_of)\(STDERR_FILENO|^[^:]*:[0-9]+:[ 	]*//|"[^"]*stderr[^"]*"')
[ -z "$found" ] || {
  echo "$found"
  echo "terminal: tell it with say() of tools/cli/say.h"
  exit 1
}
echo PASSED
