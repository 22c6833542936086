// SPDX-License-Identifier: BSD-3-Clause
// A channel with both of its ends, and the words of it that a user can write without any rule.
#pragma once

#include <gtest/gtest.h>

#include "stp/channel/node_side.h"
#include "stp/channel/user_side.h"
#include "tests/stp/node/two_nodes.h"

namespace stp::test {

class Rings : public ::testing::Test {
 protected:
  static constexpr ChannelGeometry kGeometry{.slots = 20, .credits = 4};
  using Place = NodeChannel::Place;

  ChannelMemory memory{kGeometry};
  NodeChannel node{memory.data(), kGeometry};
  UserChannel user{memory.data()};
  ChannelControl& words = *reinterpret_cast<ChannelControl*>(memory.data());

  bool deliver(std::uint32_t number, Place place = Place::kSlot) {
    ReceivedEntry entry{};
    entry.length = number;
    return node.deliver(entry, place);
  }
  bool send(std::uint32_t number) {
    SendEntry entry{};
    entry.length = number;
    return user.send(entry);
  }
  // The Node has read a request, and says so.
  void take_one() {
    node.skip();
    node.publish_taken();
  }
};

}  // namespace stp::test
