#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# usage: top_level.sh ROOT
# The repository has these names at its top, and no file that a program has left there.
set -uo pipefail
cd "$1" || exit 1
tracked=$(git ls-files 2>/dev/null) && [ -n "$tracked" ] || { echo "this is no checkout of git"; exit 77; }
known='\.ci|\.clang-format|\.clang-tidy|\.dockerignore|\.gitignore|captures|cmake|docs'
known+='|dpdk_port|libst|stp|tests|tools|CMakeLists\.txt|CMakePresets\.json|Dockerfile|compose\.yaml|LICENSE|[A-Z]+\.md|pyproject\.toml|setup\.py|MANIFEST\.in'
others=$(cut -d/ -f1 <<<"$tracked" | sort -u | grep -vxE "$known") || exit 0
printf '%s\n' "$others"
echo "What is tracked here does not belong at the top. Remove it, or name it in tests/style/top_level.sh."
exit 1
