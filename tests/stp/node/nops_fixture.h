// SPDX-License-Identifier: BSD-3-Clause
// Two Nodes whose users send NOPs, each with a number, to see what leaves and what arrives.
#pragma once

#include <array>

#include "tests/stp/node/two_nodes.h"

namespace stp::test {

class Nops : public TwoNodes {
 protected:
  SendEntry nop(std::uint32_t number) {
    auto e = control(wire::Op::kNoOperation);
    e.header.s_id = number;
    return e;
  }
  // The operations that `from` sends in one burst. They arrive at `to` unless that is nullptr.
  std::vector<wire::Op> burst(Host& from, Host* to = nullptr) {
    constexpr std::size_t kFrames = 8;
    std::vector<Frame> heads(kFrames, Frame(from.node.frame_room()));
    std::array<TxFrame, kFrames> frames;
    for (std::size_t i = 0; i < kFrames; ++i) frames[i].head = heads[i].data();
    const auto count = from.node.transmit(frames, now);
    std::vector<wire::Op> ops;
    for (std::size_t i = 0; i < count; ++i) {
      heads[i].resize(frames[i].head_length);
      ops.push_back(parsed(heads[i]).header.op());
      if (to != nullptr) arrive(*to, heads[i]);
    }
    return ops;
  }
};

}  // namespace stp::test
