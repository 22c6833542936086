#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# usage: container.sh ROOT
# The Dockerfile and compose.yaml, as far as that can be seen without building an image: their syntax, the packages
# that the tutorial installs, too, and programs and options that there are.
root=$1
program=container
. "$root/tools/lib/common.sh"
skip() { echo "SKIPPED: $*" && exit 77; }
failed=
wrong() { echo "$*" >&2 && failed=1; }

while read -r word _; do
  case $word in
    FROM | RUN | COPY | WORKDIR | USER | EXPOSE | HEALTHCHECK | ENTRYPOINT | CMD) ;;
    *) wrong "Dockerfile: no instruction $word" ;;
  esac
done < <(sed -e '/^#/d' -e ':join' -e '/\\$/{N;s/\\\n//;b join' -e '}' -e '/^$/d' "$root/Dockerfile")
# In one line, without comments.
packages_in() { tr -d '\\' <"$1" | tr -s ' \n' '\n' | sed -n '/^g++$/,/^file$/p' | sed -n '1,/^file$/p' | sort -u; }
cmp -s <(packages_in "$root/Dockerfile") <(packages_in "$root/docs/tutorial.md") ||
  wrong "the Dockerfile installs other packages than docs/tutorial.md"

if docker compose version >/dev/null 2>&1; then
  docker compose -f "$root/compose.yaml" config --quiet || wrong "compose.yaml is not valid"
elif python3 -c 'import yaml' 2>/dev/null; then
  python3 - "$root/compose.yaml" "$root/docs/operations.md" <<'PYTHON' || wrong "compose.yaml is not what it should be"
import re
import sys
import yaml
hosts = yaml.safe_load(open(sys.argv[1], encoding="utf-8"))["services"]
assert sorted(hosts) == ["a", "b"]
for host in hosts.values():
    assert host["cap_drop"] == ["ALL"] and host["read_only"] and host["user"] == "65534:65534", host
# What the page writes to has to be there, and it may be written.
for host, folder in re.findall(r"^docker compose exec -d (\w) .*--out (\S+)", open(sys.argv[2], encoding="utf-8").read(), re.M):
    assert folder in [entry.split(":")[0] for entry in hosts[host]["tmpfs"]], folder
PYTHON
else
  skip "neither docker compose nor Python's yaml is here"
fi
[ -z "$failed" ]
