#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# usage: long.sh COMMAND...
# Runs it for tools/test --long, which sets STP_LONG. Otherwise the test is skipped.
[ -n "${STP_LONG-}" ] || { echo "SKIPPED: tools/test --long runs it"; exit 77; }
exec "$@"
