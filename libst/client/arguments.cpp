// SPDX-License-Identifier: BSD-3-Clause
#include "libst/client/arguments.h"

#include <bit>

#include "libst/client/error.h"

namespace stp::client {

int sending_of(const st_header_t* hdr, const void* opt_pay, int len, int bufx, int off,
               Connection::Sending& out) {
  if (hdr == nullptr) return not_set("hdr");
  if (len < 0 || off < 0) return fail(-EINVAL, "len and off must not be negative");
  out.header = std::bit_cast<wire::Header>(*hdr);
  out.payload = opt_pay;
  out.length = static_cast<std::uint32_t>(len);
  out.bufx = static_cast<std::uint32_t>(bufx);
  out.offset = static_cast<std::uint32_t>(off);
  return 0;
}

}  // namespace stp::client
