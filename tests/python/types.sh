#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# usage: types.sh ROOT PYTHON
# mypy has nothing against the package, and the examples use it as its types say.
set -euo pipefail
command -v mypy >/dev/null || { echo "SKIPPED: no mypy here"; exit 77; }
cd "$1"
python=$2
check() { MYPYPATH=libst/python mypy --strict --cache-dir /dev/null --python-executable "$python" "$@"; }
check -p stp
for example in tools/examples/*.py; do check "$example"; done
