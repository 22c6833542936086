// SPDX-License-Identifier: BSD-3-Clause
// Finds the links that a program may use, without opening one.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace stp::fi {

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

}  // namespace stp::fi
