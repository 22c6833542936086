// SPDX-License-Identifier: BSD-3-Clause
// fi_getinfo: finds links, and lists the endpoints that are available on them. Opens no link.
#pragma once

#include <netinet/in.h>
#include <rdma/fabric.h>

#include <cstdint>
#include <string>
#include <vector>

namespace stp::fi {

// Finds the links that a program may use, without opening one.
struct LinkFacts {
  std::string text;            // as in STP_LINK
  std::uint32_t ipv4 = 0;      // host order; 0: known only when the link is open
  unsigned prefix_length = 0;  // 0: unknown
};

// The link of FI_STP_LINK or STP_LINK. Without them, each stpd, and each interface where this
// program may open raw sockets. The log lists what is left out, with the reason.
std::vector<LinkFacts> find_links();

// Whether a station with that address may be on the link. True if nothing is known.
[[nodiscard]] bool may_reach(const LinkFacts& link, std::uint32_t ipv4);

// Returns 0 and a list, or -FI_ENODATA: the log has the reason.
int list_info(std::uint32_t version, const char* node, const char* service, std::uint64_t flags,
              const fi_info* hints, fi_info** info);

// The fi_info of a connection request from `peer`: a copy of `like` with the request's handle.
// nullptr: no memory.
fi_info* info_of_request(const fi_info& like, const sockaddr_in& own, const sockaddr_in& peer,
                         fid_t handle);

}  // namespace stp::fi
