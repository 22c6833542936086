// SPDX-License-Identifier: BSD-3-Clause
// Listening at a port of the link, or at any that is free.
#pragma once

#include <netinet/in.h>

#include "libst/libfabric/link.h"
#include "libst/libfabric/owner.h"

namespace stp::fi {

// Listens at the port of `name`. If that is 0, at a free one, which `name` gets. Returns 0 or a
// libfabric error, which the log explains.
int listen_at(const Link& link, sockaddr_in& name, Acceptor& acceptor, stm_listener_t& listener);

}  // namespace stp::fi
