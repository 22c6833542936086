#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# usage: request_services_lossy.sh BUILD-DIRECTORY
# The request services in C, C++ and Python (request_services.py) on two hosts, with one frame in a hundred lost on the
# way: clients of each get each reply of servers of each once, also when the servers are killed and started again.
. "$(dirname "$0")/setup.sh"
needs_namespaces
here=$(dirname "$(realpath "$0")")
make_work_directory
make_namespace side_a
make_namespace side_b
make_namespace bridge
join_by_lossy_bridge "$side_a" "$side_b" "$bridge" 1500 1 || skip "nftables cannot drop frames here"
start_pair_in "$side_a" "$side_b"
expect "$python" "$here/request_services.py" "$(realpath "$build")" "$here/../../tools/examples" "stpd:$work/a.sock" \
  "stpd:$work/b.sock" 10.9.0.2 Services.test_clients_of_each_outlive_the_restart_of_servers_of_each
dropped=$(dropped_by_bridge "$bridge")
say "$dropped frames dropped by the bridge"
expect [ "$dropped" -gt 20 ]
passed
