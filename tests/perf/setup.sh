# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# Sourced by the scripts of this folder: BINARIES is their argument.
set -u
bin=$1
program=perf-test
. "$(dirname "$0")/../../tools/lib/common.sh"
TSAN_OPTIONS="suppressions=$(realpath "$(dirname "$0")")/tsan.supp"
export TSAN_OPTIONS
command -v "$python" >/dev/null || exit 77
make_work_directory

# expect_figure JSON PATH: that there is such a number, above 0. They are looked for all at once.
expect_figure() { figures+=("$1" "$2"); }
figures=()
find_figures() {
  "$python" -c '
import json, sys
for text, path in zip(sys.argv[1::2], sys.argv[2::2]):
    value = json.loads(text)
    for key in path.split("/"):
        value = value.get(key, {})
    if value == {} or value <= 0:
        sys.exit(f"no {path} in: {text}")' "${figures[@]}" || fail "a figure is missing"
}
