// SPDX-License-Identifier: BSD-3-Clause
// Converts arguments that several calls of the C API share.
#pragma once

#include "libst/client/connection.h"
#include "libst/include/stp/st.h"

namespace stp::client {

// Converts the arguments of st_tx and st_utx. Returns 0 or -EINVAL.
int sending_of(const st_header_t* hdr, const void* opt_pay, int len, int bufx, int off,
               Connection::Sending& out);

}  // namespace stp::client
