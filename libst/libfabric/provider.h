// SPDX-License-Identifier: BSD-3-Clause
// The provider in libfabric's view: its name, parameters and log.
#pragma once

#include <rdma/providers/fi_log.h>
#include <rdma/providers/fi_prov.h>

#include <string>

namespace stp::fi {

extern fi_provider provider;

// Logs at FI_LOG_LEVEL=info why something is not offered or has failed.
void inform(fi_log_subsys subsystem, const std::string& text);
// The same, with the managed API's text for this thread's last error. Returns the libfabric error,
// negative.
int explain(fi_log_subsys subsystem, const std::string& what, int status);

// Parameters: the environment variables FI_STP_*, shown by fi_info -e.
struct Parameters {
  std::string link;             // FI_STP_LINK, else STP_LINK; empty: all links found
  std::size_t rx_buffers = 32;  // FI_STP_RX_BUFFERS: per endpoint, for short messages
  std::size_t rdm_kept = std::size_t{16} << 20;  // FI_STP_RDM_KEPT: bytes of early messages
};
void define_parameters();
Parameters parameters();

}  // namespace stp::fi
