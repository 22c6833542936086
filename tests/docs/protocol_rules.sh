#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# usage: protocol_rules.sh ROOT
# Rules of docs/protocol.md can be cited: each has a number in its section, a name and a mark. No
# number or name is given twice. Citations in code and tests name rules that exist.
set -euo pipefail
cd "$1"
page=docs/protocol.md
wrong=0
complain() {
  echo "$*"
  wrong=1
}

rules=$(awk '/^## [0-9]+\. / { section = $2 + 0 }
             /^- \*\*[0-9]/ { print section, $0 }' "$page")
[ "$(wc -l <<<"$rules")" -gt 100 ] || complain "$page has hardly any rules"
form='^([0-9]+) - \*\*\1\.[0-9]+ [a-z0-9]+(-[a-z0-9]+)*\*\* \[[SLP]\] '
while read -r rule; do complain "not a rule of its section: $rule"; done < <(grep -Ev "$form" <<<"$rules")

numbers=$(sed -E 's/^[0-9]+ - \*\*([0-9.]+) .*/\1/' <<<"$rules")
names=$(sed -E 's/^[0-9]+ - \*\*[0-9.]+ ([a-z0-9-]+)\*\*.*/\1/' <<<"$rules")
for twice in $(sort <<<"$numbers" | uniq -d) $(sort <<<"$names" | uniq -d); do
  complain "given twice: $twice"
done
[ "$(sort -V <<<"$numbers")" = "$numbers" ] || complain "rules are not in order"

while read -r cited; do complain "cited, but no rule: $cited"; done < <({
  grep -oE '§[0-9]+\.[0-9]+' "$page"
  grep -rhoE --include='*.cpp' --include='*.h' 'protocol: [0-9]+\.[0-9]+' stp dpdk_port libst tools tests
} | sed -E 's/^(§|protocol: )//' | sort -u | grep -vxF -f <(echo "$numbers"))
exit $wrong
