// SPDX-License-Identifier: BSD-3-Clause
// Finds STP in captured datagrams of UDP.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tools/replay/capture.h"

namespace stp::replay {

// The captured frame, if it is a datagram over IPv4 or IPv6 from or to the UDP port of STP, or of
// any port in a trace that stpd made of a link over UDP, as stations on Ethernet would have sent
// it: with a name for each address in the place of a MAC address (02:04 and the address, for IPv4
// and that port; else a hash). A fragment is none, nor is a frame that is cut in front of its data.
// `buffer`: keeps the bytes of the result. protocol: 13.1, 13.2
std::optional<CapturedFrame> datagram_in(const CapturedFrame& frame,
                                         std::vector<std::byte>& buffer);

// 10.0.0.5/8181, [2001:db8::5]/8181.
std::string end_text(Bytes address, std::uint16_t port);

}  // namespace stp::replay
