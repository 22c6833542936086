// SPDX-License-Identifier: BSD-3-Clause
// fi_getinfo: which endpoints can be had, over which links. Opens nothing.
#pragma once

#include <netinet/in.h>
#include <rdma/fabric.h>

#include <cstdint>

namespace stp::fi {

// 0 and a list, or -FI_ENODATA: the log says why.
int list_info(std::uint32_t version, const char* node, const char* service, std::uint64_t flags,
              const fi_info* hints, fi_info** info);

// Of a connection request: as `like`, from `peer`, with its handle. nullptr: no memory.
fi_info* info_of_request(const fi_info& like, const sockaddr_in& own, const sockaddr_in& peer,
                         fid_t handle);

}  // namespace stp::fi
