# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# Sourced by the scripts of this folder: BINARIES is their argument.
set -u
bin=$1
program=perf-test
. "$(dirname "$0")/../../tools/lib/common.sh"
TSAN_OPTIONS="suppressions=$(realpath "$(dirname "$0")")/tsan.supp"
export TSAN_OPTIONS
command -v python3 >/dev/null || exit 77
make_work_directory

# expect_figure JSON PATH: that there is such a number, above 0.
expect_figure() {
  python3 -c '
import json, sys
value = json.loads(sys.argv[1])
for key in sys.argv[2].split("/"):
    value = value[key]
sys.exit(0 if value > 0 else 1)' "$1" "$2" || fail "no $2 in: $1"
}
