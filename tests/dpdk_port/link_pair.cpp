// SPDX-License-Identifier: BSD-3-Clause
#include "tests/dpdk_port/link_pair.h"

#include <algorithm>

namespace stp::port {
namespace {

// Other frames may arrive on the link too: a kernel announces its IPv6 address.
bool is_stp(const Frame& frame) {
  return frame[12] == std::byte{0x81} && frame[13] == std::byte{0x81};
}

// Turns until `b` has received so many frames of STP, and returns all of these.
std::vector<Frame> await_frames(LinkEnd& a, LinkEnd& b, std::size_t count) {
  const auto& received = b.engine.received;
  std::size_t seen = 0, found = 0;
  EXPECT_TRUE(turn_until(a, b, [&] {
    while (seen < received.size()) found += is_stp(received[seen++]) ? 1 : 0;
    return found >= count;
  }));
  std::vector<Frame> frames;
  std::copy_if(received.begin(), received.end(), std::back_inserter(frames), is_stp);
  return frames;
}

bool both_up(LinkEnd& a, LinkEnd& b) {
  return turn_until(a, b, [&] { return a.port->link_up() && b.port->link_up(); });
}

}  // namespace

void expect_frames_arrive_in_order(LinkEnd& a, LinkEnd& b, std::size_t length, unsigned count) {
  ASSERT_TRUE(both_up(a, b));
  b.engine.received.clear();
  for (unsigned i = 0; i < count; ++i) a.engine.send(make_frame(b.mac(), a.mac(), length, i));
  const auto frames = await_frames(a, b, count);
  ASSERT_EQ(frames.size(), count);
  for (unsigned i = 0; i < count; ++i) {
    ASSERT_EQ(frames[i], make_frame(b.mac(), a.mac(), length, i)) << "frame " << i;
  }
}

void expect_attached_memory_arrives(LinkEnd& a, LinkEnd& b, std::size_t length, unsigned count) {
  constexpr std::size_t kHead = 54;
  ASSERT_TRUE(both_up(a, b));
  b.engine.received.clear();
  a.engine.returned.clear();
  std::vector<Frame> memory;
  for (unsigned i = 0; i < count; ++i) memory.push_back(make_bytes(length, i));
  for (unsigned i = 0; i < count; ++i) {
    a.engine.send_attached(make_frame(b.mac(), a.mac(), kHead, i), memory[i], i + 1);
  }
  const auto frames = await_frames(a, b, count);
  ASSERT_EQ(frames.size(), count);
  for (unsigned i = 0; i < count; ++i) {
    ASSERT_EQ(frames[i], join(make_frame(b.mac(), a.mac(), kHead, i), memory[i])) << "frame " << i;
    ASSERT_EQ(a.engine.returned[i + 1], 1U) << "token of frame " << i;
  }
}

void expect_both_ends_resolve(LinkEnd& a, Ipv4 address_a, LinkEnd& b, Ipv4 address_b) {
  ASSERT_TRUE(both_up(a, b));
  EXPECT_TRUE(turn_until(a, b, [&] { return a.port->resolve(address_b, now()).has_value(); }));
  EXPECT_EQ(a.port->resolve(address_b, now()), b.mac());
  EXPECT_TRUE(turn_until(a, b, [&] { return b.port->resolve(address_a, now()).has_value(); }));
  EXPECT_EQ(b.port->resolve(address_a, now()), a.mac());
}

}  // namespace stp::port
