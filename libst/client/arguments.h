// SPDX-License-Identifier: BSD-3-Clause
// Arguments that calls of the C API have in common.
#pragma once

#include "libst/client/connection.h"
#include "libst/include/stp/st.h"

namespace stp::client {

// What st_tx and st_utx send: 0 or -EINVAL.
int sending_of(const st_header_t* hdr, const void* opt_pay, int len, int bufx, int off,
               Connection::Sending& out);

}  // namespace stp::client
