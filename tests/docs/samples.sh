#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# usage: samples.sh ROOT [BUILD]
# `stpd --check` accepts every configuration of stpd that a page shows, and the installed example, as
# it is and with all settings uncommented.
set -uo pipefail
root=$(realpath "$1") build=$(realpath "${2:-$1/build}")
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
[ -x "$build/bin/stpd" ] || { echo "no $build/bin/stpd: build it"; exit 1; }
cd "$root" || exit 1

# A fenced block that contains a section [link.NAME] is a configuration.
for page in README.md docs/*.md docs/man/*.scd; do
  awk -v begin="$work/$(basename "$page")" '
    /^[ \t]*```/ {
      inside = !inside
      if (!inside && sample) { printf "%s", text >(begin "-" ++count ".conf") }
      text = sample = ""
      next
    }
    inside { text = text $0 "\n"; sample = sample || /^\[link\./ }' "$page"
done
cp tools/stpd/stpd.conf "$work/stpd.conf"
sed -E 's/^#([a-z[])/\1/' tools/stpd/stpd.conf >"$work/stpd.conf-whole.conf"
# A sample may name users and groups that this machine does not have.
user=$(id -un) group=$(id -gn)
sed -E -i "s/^user = [a-z]+/user = $user/; s/group = [a-z]+/group = $group/; s/\"user:[a-z-]+:/\"user:$user:/g
  s/\"group:[a-z-]+:/\"group:$group:/g" "$work"/*.conf

# And CPUs that this test may not run on.
if [ "$(nproc)" -le 1 ] || [ "$(nproc)" != "$(nproc --all)" ]; then
  cpu=$(sed -nE 's/^Cpus_allowed_list:\s*([0-9]+).*/\1/p' /proc/self/status)
  sed -E -i "s/^cpus = .*/cpus = $cpu/" "$work"/*.conf
fi

count=0 wrong=0
for sample in "$work"/*.conf; do
  count=$((count + 1))
  said=$("$build/bin/stpd" --check "$sample" 2>&1) && continue
  printf '%s is refused:\n%s\n' "$(basename "$sample")" "$said"
  wrong=1
done
[ $count -ge 4 ] || { echo "only $count samples found"; exit 1; }
[ $wrong -ne 0 ] || echo "all $count pass"
exit $wrong
