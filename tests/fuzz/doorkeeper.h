// SPDX-License-Identifier: BSD-3-Clause
// A listener that inspects requests, on one of two Nodes, and its requesters: connections are
// requested, accepted and refused, all with option payload.
#pragma once

#include <vector>

#include "tests/fuzz/frame_maker.h"

namespace stp::fuzz {

class Doorkeeper {
 public:
  static constexpr std::size_t kMostAsking = 2, kMostStocked = 3;
  static constexpr std::uint32_t kUport = 3001;

  Doorkeeper(test::Host& here, test::Host& there) : here_(here), there_(there) {}

  // One step: a requester asks, or the user inspects, decides or makes room. A new connection of a
  // user goes to `mine` or `others`.
  void step(ByteCode& code, Time now, std::vector<test::Connection>& mine,
            std::vector<test::Connection>& others) {
    open();
    switch (code.below(6)) {
      case 0:
      case 1:
        return ask(code, now, others);
      case 2:
        return look(mine);
      case 3:
        here_.node.admit(picked(code), some_option(code), now);
        return;
      case 4:
        here_.node.refuse(picked(code), some_option(code), now);
        return;
      default:
        if (stocked_ < kMostStocked) stock();
    }
  }
  // Call when all connections are gone.
  void close() const {
    if (listener_ == kNoneId) return;
    for (std::uint64_t cookie = 0; here_.node.unstock(listener_, cookie);) {
    }
    EXPECT_EQ(here_.node.close_endpoint(listener_), 0);
    EXPECT_EQ(there_.node.close_endpoint(asker_), 0);
  }

 private:
  static constexpr EndpointConfig kConfig{.slots = 8, .credits = 8, .inspect = true};

  void open() {
    if (listener_ != kNoneId) return;
    listener_ = here_.open(kConfig);
    asker_ = there_.open(kConfig);
    EXPECT_EQ(here_.node.listen(listener_, kUport), 0);
    stock();
  }
  void stock() {
    here_.stock(listener_);
    ++stocked_;
  }
  void ask(ByteCode& code, Time now, std::vector<test::Connection>& others) {
    if (asking_ == kMostAsking) return;
    ++asking_;
    test::Connection c;
    c.memory =
        std::make_unique<test::ChannelMemory>(ChannelGeometry{kConfig.slots, kConfig.credits});
    EXPECT_EQ(there_.node.connect(asker_, here_.config.mac, kUport, c.memory->data(), 78, c.id, now,
                                  some_option(code)),
              0);
    c.user = UserChannel(c.memory->data());
    others.push_back(std::move(c));
  }
  void look(std::vector<test::Connection>& mine) {
    test::Connection c;
    if (here_.node.accept(listener_, c.id) != 0) return;
    VcInfo info{};
    EXPECT_EQ(here_.node.vc_info(c.id, info), 0);
    c.user = UserChannel(here_.stocked.at(info.cookie - 1)->data());
    seen_.push_back(c.id);
    mine.push_back(std::move(c));
  }
  // Picks one of the requests seen so far, also decided ones and those that are gone.
  [[nodiscard]] VcId picked(ByteCode& code) const {
    const auto at = code.u8();
    return seen_.empty() ? kNoneId : seen_[at % seen_.size()];
  }

  test::Host &here_, &there_;
  EndpointId listener_ = kNoneId, asker_ = kNoneId;
  std::vector<VcId> seen_;
  std::size_t asking_ = 0, stocked_ = 0;
};

}  // namespace stp::fuzz
