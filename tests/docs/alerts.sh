#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# usage: alerts.sh ROOT
# Prometheus takes the rules of docs/dashboards; each alert fires when it should, and only then.
set -uo pipefail
cd "$1/docs/dashboards" || exit 1
command -v promtool >/dev/null || {
  echo "SKIPPED: promtool is missing (Debian: prometheus); tools/test --long installs it"
  exit 77
}
promtool check rules stpd.rules.yml && promtool test rules stpd.rules_test.yml
