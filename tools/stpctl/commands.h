// SPDX-License-Identifier: BSD-3-Clause
// The commands of stpctl, one function each. A command that fails throws Failure.
#pragma once

#include "tools/stpctl/options.h"

namespace stp::stpctl {

// links, connections, regions, users, stats: queries each daemon once, and prints text or JSON.
void show(const Options& options);
// Prints live rates, from the changes of the counters from one sample to the next.
void top(const Options& options);
// Controls traces that the daemon makes, into a file that this program opens.
void trace(const Options& options);
// Measures round trips to a peer, with only the public API of libst. The peer may be any program
// that listens: its Node answers Request_State. The program sees only a connection that opens and
// closes. With --serve it listens for pings until Ctrl-C.
void ping(const Options& options);
// Prints lines for /etc/dat.conf, which the registry of DAT reads.
void dat_conf(const Options& options);
// Lists what could be a link on this machine. Asks no daemon and opens no device.
void devices(const Options& options);

}  // namespace stp::stpctl
