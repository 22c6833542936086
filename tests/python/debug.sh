#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# usage: debug.sh BUILD
# The package in Debian's debug build of Python, which checks references, locks and memory as it goes.
set -euo pipefail
command -v python3-dbg >/dev/null ||
  { echo "SKIPPED: no python3-dbg here (Debian: python3-dbg); tools/test --long installs it"; exit 77; }
# Its warnings are on otherwise, and one test has programs that say nothing.
export PYTHONPATH=$1/python PYTHONDONTWRITEBYTECODE=1 PYTHONWARNINGS=ignore::ResourceWarning
cd "$(dirname "$0")"
for name in messages misuse asyncio; do python3-dbg -X faulthandler "${name}_test.py"; done
