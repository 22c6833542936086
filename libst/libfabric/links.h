// SPDX-License-Identifier: BSD-3-Clause
// The links that a program may use, found without opening one.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace stp::fi {

struct LinkFacts {
  std::string text;            // as STP_LINK names it
  std::uint32_t ipv4 = 0;      // host order; 0: only the link knows, once it is open
  unsigned prefix_length = 0;  // 0: not known
};

// That of FI_STP_LINK or STP_LINK; without them each stpd, and each interface where this program
// may open raw sockets. What is left out is told to the log, with the reason.
std::vector<LinkFacts> find_links();

// Whether stations with that address may be there. True where nothing is known.
[[nodiscard]] bool may_reach(const LinkFacts& link, std::uint32_t ipv4);

}  // namespace stp::fi
