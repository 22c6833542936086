// SPDX-License-Identifier: BSD-3-Clause
// fi_getinfo: lists the endpoints that are available, by link. Opens no link.
#pragma once

#include <netinet/in.h>
#include <rdma/fabric.h>

#include <cstdint>

namespace stp::fi {

// Returns 0 and a list, or -FI_ENODATA: the log has the reason.
int list_info(std::uint32_t version, const char* node, const char* service, std::uint64_t flags,
              const fi_info* hints, fi_info** info);

// The fi_info of a connection request from `peer`: a copy of `like` with the request's handle.
// nullptr: no memory.
fi_info* info_of_request(const fi_info& like, const sockaddr_in& own, const sockaddr_in& peer,
                         fid_t handle);

}  // namespace stp::fi
