#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# usage: dat_two_programs.sh BUILD-DIRECTORY
# Two programs of uDAPL 1.2 that have nothing in common but a memif.
. "$(dirname "$0")/setup.sh"
[ -x "$bin/dat1_two_programs" ] || skip "uDAPL was not built"
make_work_directory
export DAT_OVERRIDE=$build/tests/udapl/dat1/dat.conf
on() { # ROLE LAST-BYTE: what goes before a program
  prefix=(env "STP_LINK=memif:$work/memif.sock,role=$1,mac=02:00:00:00:09:0$2,address=10.9.0.$2/24"
    timeout 100 "$bin/dat1_two_programs")
}
on server 2
start "$work/server.log" "${prefix[@]}" server 10.9.0.1
server=$!
expect wait_for 60 contains "$work/server.log" listening
on client 1
expect "${prefix[@]}" client 10.9.0.2 >"$work/client.log" 2>&1
expect wait "$server"
expect says "$work/client.log" good-bye
expect says "$work/server.log" good-bye
passed
