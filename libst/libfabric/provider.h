// SPDX-License-Identifier: BSD-3-Clause
// The provider as libfabric knows it: its name, its parameters, its log.
#pragma once

#include <rdma/providers/fi_log.h>
#include <rdma/providers/fi_prov.h>

#include <string>

namespace stp::fi {

extern fi_provider provider;

// Shown at FI_LOG_LEVEL=info: why something is not offered, or has failed.
void inform(fi_log_subsys subsystem, const std::string& text);
// The same, with what the managed API says of this thread's last call. Returns its error for
// libfabric, negative.
int explain(fi_log_subsys subsystem, const std::string& what, int status);

// Parameters: the environment variables FI_STP_*, shown by fi_info -e.
struct Parameters {
  std::string link;             // FI_STP_LINK, else STP_LINK; empty: all that are found
  std::size_t rx_buffers = 32;  // FI_STP_RX_BUFFERS: short messages that wait, of an endpoint
};
void define_parameters();
Parameters parameters();

}  // namespace stp::fi
