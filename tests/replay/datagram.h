// SPDX-License-Identifier: BSD-3-Clause
// Frames of Ethernet with a datagram, for tests of who reads captures.
#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "stp/types.h"

namespace stp::replay::test {

using Octets = std::vector<std::byte>;

inline void put16(Octets& out, std::size_t value) {
  out.push_back(static_cast<std::byte>(value >> 8));
  out.push_back(static_cast<std::byte>(value));
}
inline void put_address(Octets& out, int family, const char* text) {
  std::byte bytes[16];
  ASSERT_EQ(::inet_pton(family, text, bytes), 1);
  out.insert(out.end(), bytes, bytes + (family == AF_INET ? 4 : 16));
}

struct Wrapping {
  bool ipv6 = false;
  unsigned to = 8181;       // 0: IP protocol 118, without UDP
  unsigned flags = 0x4000;  // Don't Fragment
  bool tagged = false;
};

// An Ethernet frame with a datagram, padded as a NIC does.
inline Octets datagram(Bytes data, const Wrapping& how = {}) {
  Octets out(12);
  const std::size_t udp = how.to != 0 ? 8 : 0;
  const unsigned protocol = how.to != 0 ? 17 : 118;
  if (how.tagged) put16(out, 0x8100), put16(out, 7);
  put16(out, how.ipv6 ? 0x86dd : 0x0800);
  if (how.ipv6) {
    put16(out, 0x6000), put16(out, 0), put16(out, udp + data.size());
    put16(out, protocol << 8 | 64);
    put_address(out, AF_INET6, "2001:db8::1"), put_address(out, AF_INET6, "2001:db8::2");
  } else {
    put16(out, 0x4500), put16(out, 20 + udp + data.size()), put16(out, 0);
    put16(out, how.flags), put16(out, 64 << 8 | protocol), put16(out, 0);
    put_address(out, AF_INET, "10.0.0.1"), put_address(out, AF_INET, "10.0.0.2");
  }
  if (udp != 0) put16(out, 8181), put16(out, how.to), put16(out, udp + data.size()), put16(out, 0);
  out.insert(out.end(), data.begin(), data.end());
  out.resize(std::max<std::size_t>(out.size(), 60) + 3);
  return out;
}

}  // namespace stp::replay::test
