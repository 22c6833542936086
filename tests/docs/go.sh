#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# usage: go.sh ROOT BUILD
# The program in Go that docs/languages.md speaks of is compiled by Debian's Go and runs, also where Go checks what C keeps,
# and with its race detector, which has symbols of ThreadSanitizer that are called otherwise than those of C.
set -uo pipefail
root=$(realpath "$1") build=$(realpath "$2")
fail() { echo "FAILED: $*" && exit 1; }
go=/usr/bin/go
[ -x "$go" ] || {
  echo "SKIPPED: go is missing (Debian: golang-go); tools/test --long installs it"
  exit 77
}
work=$(mktemp -d) || exit 1
trap 'chmod -R u+w "$work"; rm -rf "$work"' EXIT
cd "$work" || exit 1
export HOME=$work GOCACHE=$work/cache GOFLAGS=-buildvcs=false PKG_CONFIG_PATH=$build/lib/pkgconfig
export LD_LIBRARY_PATH=$build/lib
cp "$root/tools/examples/message.go" .
[ -z "$(/usr/bin/gofmt -l message.go)" ] || fail "gofmt would write it otherwise"
"$go" vet message.go || fail "go vet complains"

says() { # COMMAND...
  local said
  said=$(STP_LINK=loop timeout 300 "$@") || fail "$* ended with $?"
  [ "$said" = "received with tag 7: Hello from Go" ] || fail "$* said: $said"
}
says "$go" run message.go
says env GODEBUG=cgocheck=2 "$go" run message.go
says "$go" run -race message.go

said=$(STP_LINK=iface:none0 "$go" run message.go 2>&1) && fail "it runs without its link"
[[ $said == "opening the link: link 'iface:none0': there is no such interface"* ]] || fail "without its link it says: $said"
