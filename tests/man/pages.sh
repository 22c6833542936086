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

# What is known of all pages, read in one go. By page: its names, its sections, what it refers to.
declare -A page_of=() has=() refers=() returns_int=() leads_on=() first_line=() prototypes=()
for name in $foreign; do page_of[$name]=foreign; done
names=0
while IFS=$'\t' read -r kind page what; do
  case $kind in
    name)
      [ -z "${page_of[$what]-}" ] || complain "$what has two pages"
      page_of[$what]=$page
      names=$((names + 1))
      ;;
    section) has[$page $what]=1 ;;
    first) first_line[$page]=$what ;;
    refers) refers[$page]+=" $what" ;;
    int) returns_int[$page]=1 ;;
    leads) leads_on[$page]=1 ;;
  esac
done < <(awk -v OFS='\t' '
  FNR == 1 {
    section = title = ""
    code = 0
    number = FILENAME
    sub(/\.scd$/, "", number)
    sub(/.*\./, "", number)
    print "first", FILENAME, $0
  }
  /^# / { title = substr($0, 3); code = 0; print "section", FILENAME, title }
  title == "NAME" && / - / {
    list = $0
    sub(/ - .*/, "", list)
    count = split(list, name, /, /)
    for (i = 1; i <= count; ++i) print "name", FILENAME, name[i] "(" number ")"
    title = ""
  }
  title == "SYNOPSIS" && /^int / { print "int", FILENAME, "" }
  title == "SEE ALSO" && /\*(libst|libst-managed|stpd)\*\([78]\)/ { print "leads", FILENAME, "" }
  {
    rest = $0
    while (match(rest, /\*[a-zA-Z0-9_.-]+\*\([1-8]\)/)) {
      reference = substr(rest, RSTART, RLENGTH)
      gsub(/\*/, "", reference)
      print "refers", FILENAME, reference
      rest = substr(rest, RSTART + RLENGTH)
    }
  }' "$pages"/*.scd)

# The calls that each SYNOPSIS shows.
while IFS= read -r prototype; do prototypes[$prototype]=1; done < <(awk '
  FNR == 1 { print "@" FILENAME; title = ""; code = 0 }
  /^# / { title = $0 }
  title != "# SYNOPSIS" { next }
  /^```/ { code = !code; next }
  code' "$pages"/*.3.scd | declarations)

count=0
while IFS= read -r prototype; do
  count=$((count + 1))
  call=${prototype%%(*}
  call=${call##*[ *]}
  page=${page_of["$call(3)"]-}
  if [ -z "$page" ]; then
    complain "no page in section 3 for $call"
  elif [ -z "${prototypes["$page $prototype"]-}" ]; then
    complain "$page: SYNOPSIS has not '$prototype'"
  fi
done < <(without_comments "${headers[@]}" | declarations | sort -u)
[ "$count" -ge 20 ] || complain "headers not understood"

while read -r installed; do
  [ -n "${page_of["$installed(1)"]-}${page_of["$installed(8)"]-}" ] || complain "no page for the program $installed"
done < <(sed -nE 's/^ *install\(TARGETS ([a-z-]+) RUNTIME.*/\1/p' tools/*/CMakeLists.txt)

for page in "$pages"/*.scd; do
  base=${page##*/}
  base=${base%.scd}
  sections=(NAME SYNOPSIS DESCRIPTION "SEE ALSO")
  case $base in
    *.3)
      sections+=("RETURN VALUE")
      if [ -n "${returns_int[$page]-}" ]; then sections+=(ERRORS); fi
      ;;
    *.1 | *.8) sections+=(OPTIONS EXAMPLES) ;;
  esac
  for title in "${sections[@]}"; do
    [ -n "${has["$page $title"]-}" ] || complain "$page lacks $title"
  done
  [[ ${first_line[$page]} == *"${base%.*}(${base##*.}) "* ]] || complain "$page begins with another name"
  for reference in ${refers[$page]-}; do
    [ -n "${page_of[$reference]-}" ] || complain "$page refers to $reference, which is not there"
  done
  [ -n "${leads_on[$page]-}" ] || complain "$page: SEE ALSO leads nowhere"
done

[ $wrong -ne 0 ] || echo "$names names"
exit $wrong
