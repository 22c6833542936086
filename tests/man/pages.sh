#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# usage: pages.sh ROOT
# Every call of the public headers and every program has a page; each page has its sections, shows
# prototypes as the headers declare them, and refers only to existing pages.
set -u
cd "$1" || exit 1
# shellcheck source=setup.sh
. tests/man/setup.sh
. tests/lib/c_headers.sh
headers=(libst/include/stp/*.h)
# Pages of other projects that ours may refer to.
foreign="fallocate(2) read(2) userfaultfd(2) select(2) poll(2) fork(2) execve(2) clock_gettime(2) errno(3) strerror(3) epoll(7)
capabilities(7) systemd(1) systemctl(1) ip(8) fi_atomic(3)"

names() { for page in "$pages"/*.scd; do names_of "$page" | sed "s|$|($(section_number "$page"))|"; done; }
section_number() { sed -E 's/.*\.([1-8])\.scd$/\1/' <<<"$1"; }
call_of() { sed -E 's/^[^(]*[ *](stm?_[a-z0-9_]+)\(.*/\1/' <<<"$1"; }

declared=$(without_comments "${headers[@]}" | declarations | sort -u)
all_names=$(names)

[ "$(wc -l <<<"$declared")" -ge 20 ] || complain "headers not understood"
while read -r prototype; do
  call=$(call_of "$prototype")
  if ! grep -qxF "$call(3)" <<<"$all_names"; then
    complain "no page in section 3 for $call"
    continue
  fi
  page=$(grep -lE "^([a-z_0-9]+, )*$call(, | - )" "$pages"/*.3.scd | head -n 1)
  section_of "$page" SYNOPSIS | code | declarations | grep -qxF -- "$prototype" ||
    complain "$page: SYNOPSIS has not '$prototype'"
done <<<"$declared"

while read -r installed; do
  grep -qE "^$installed\([18]\)$" <<<"$all_names" || complain "no page for the program $installed"
done < <(sed -nE 's/^ *install\(TARGETS ([a-z-]+) RUNTIME.*/\1/p' tools/*/CMakeLists.txt)

for page in "$pages"/*.scd; do
  base=$(basename "$page" .scd)
  sections=(NAME SYNOPSIS DESCRIPTION "SEE ALSO")
  case $base in
    *.3)
      sections+=("RETURN VALUE")
      if section_of "$page" SYNOPSIS | grep -q '^int '; then sections+=(ERRORS); fi
      ;;
    *.1 | *.8) sections+=(OPTIONS EXAMPLES) ;;
  esac
  for title in "${sections[@]}"; do
    grep -qxF "# $title" "$page" || complain "$page lacks $title"
  done
  head -n 1 "$page" | grep -qF "${base%.*}(${base##*.}) " || complain "$page begins with another name"
  while read -r reference; do
    grep -qxF -- "$reference" <<<"$all_names" || grep -qwF -- "$reference" <<<"$foreign" ||
      complain "$page refers to $reference, which is not there"
  done < <(grep -oE '\*[a-zA-Z0-9_.-]+\*\([1-8]\)' "$page" | tr -d '*' | sort -u)
  section_of "$page" "SEE ALSO" | grep -qE '\*(libst|libst-managed|stpd)\*\([78]\)' || complain "$page: SEE ALSO leads nowhere"
done
for twice in $(sort <<<"$all_names" | uniq -d); do complain "$twice has two pages"; done

[ $wrong -ne 0 ] || echo "$(wc -l <<<"$all_names") names"
exit $wrong
