#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# 5,000 seeds of the simulation and 100,000 others, over all profiles: STP-SIM.
if [ -z "${STP_LONG-}" ]; then
  echo "skipped: takes some minutes; tools/test --long runs it"
  exit 77
fi
"$1" --seeds 1..5000 --profile all --jobs 2 && "$1" --seeds 1..1000 --profile all --nodes 4 --jobs 2 &&
  "$1" --seeds 100001..200000 --profile all --jobs 2 &&
  exec "$1" --seeds 200001..220000 --profile all --nodes 4 --jobs 2
