// SPDX-License-Identifier: BSD-3-Clause
// Handles of libst that close themselves.
#pragma once

#include <stp/st.h>

#include <memory>

namespace stp::stpctl {

struct DeleteEndpoint {
  void operator()(st_ehandle* endpoint) const { st_delete(endpoint); }
};
using EndpointHandle = std::unique_ptr<st_ehandle, DeleteEndpoint>;

struct CloseConnection {
  void operator()(st_chandle* connection) const { st_close(connection); }
};
using ConnectionHandle = std::unique_ptr<st_chandle, CloseConnection>;

}  // namespace stp::stpctl
