// SPDX-License-Identifier: BSD-3-Clause
// Node B listens, and requesters ask whom it does not know.
#pragma once

#include <set>
#include <vector>

#include "tests/stp/node/two_nodes.h"

namespace stp::test {

class Strangers : public TwoNodes {
 protected:
  Strangers() = default;
  explicit Strangers(const NodeConfig& base) : TwoNodes(base) {}

  static constexpr unsigned kOfListener = 16, kOfSource = 8, kAtOnce = 32;
  static constexpr unsigned kStock = 16;

  // B listens like a service: it accepts connections at once, or not at all. Channels in stock and
  // those of connections that are not accepted are `channels` together.
  void listen(EndpointConfig config = {}, unsigned channels = kStock) {
    listener = b.open(config);
    ASSERT_EQ(b.node.listen(listener, 3000), 0);
    channels_ = channels;
    serve();
  }
  void serve() {
    for (const auto& event : b.events) {
      const auto unseen = event.kind == Event::Kind::kVcGone && !accepted_.contains(event.id);
      unaccepted_ -= unseen ? 1 : 0;
    }
    b.events.clear();
    VcId id = kNoneId;
    for (; accepts_ && b.node.accept(listener, id) == 0; --unaccepted_) accepted_.insert(id);
    for (; unaccepted_ < channels_; ++unaccepted_) b.stock(listener);
  }
  static MacAddr mac(std::uint64_t number) { return MacAddr::from_u64(0x020000000000 + number); }
  // An address that no host has.
  static MacAddr spoofed(std::uint64_t number) { return mac(0x10000 + number); }
  static wire::Header rc(std::uint32_t key = 99, std::uint16_t port = 5) {
    wire::Header h;
    h.op_flags = wire::op_flags(wire::Op::kRequestConnection);
    h.param = 33;
    h.s_port = port;
    h.bufx = 12;
    h.offset = key;
    h.sync = 9;
    h.d_id = 3000;
    return h;
  }
  // Sends as many silent requests as are kept without proof.
  void fill() {
    for (unsigned i = 0; i < kOfListener; ++i) {
      inject(b, spoofed(i), rc());
      serve();
    }
    ASSERT_EQ(b.node.vc_count(), kOfListener);
    while (take(b)) continue;
  }
  std::vector<wire::Header> answers() {
    std::vector<wire::Header> all;
    while (const auto frame = take(b)) all.push_back(parsed(*frame).header);
    return all;
  }
  // A peer's response to the question that came with the answer to it.
  static wire::Header response(const wire::Header& question, std::uint16_t port = 5) {
    wire::Header h;
    h.op_flags = wire::op_flags(wire::Op::kRequestStateResponse, wire::flag::kReject);
    h.param = 33;
    h.d_port = question.s_port;
    h.s_port = port;
    h.sync = question.sync;
    h.b_num = question.b_num;
    h.d_id = question.s_id;
    h.s_id = question.d_id;
    return h;
  }
  // The CA that a requester gets under pressure, and its response to the RS that follows.
  struct Proof {
    wire::Header answer, response;
  };
  Proof ask_under_pressure(const MacAddr& from, const wire::Header& request, Bytes option = {}) {
    inject(b, from, request, option);
    const auto said = answers();
    EXPECT_EQ(said.size(), 2U);
    if (said.size() != 2) return {};
    EXPECT_EQ(said[0].op(), wire::Op::kConnectionAnswer);
    EXPECT_EQ(said[1].op(), wire::Op::kRequestState);
    auto back = response(said[1], request.s_port);
    back.d_key = said[0].offset;
    return {said[0], back};
  }
  VcInfo newest() {
    VcId id = kNoneId;
    EXPECT_EQ(b.node.accept(listener, id), 0);
    VcInfo info{};
    EXPECT_EQ(b.node.vc_info(id, info), 0);
    return info;
  }

  unsigned channels_ = 0, unaccepted_ = 0;
  bool accepts_ = true;
  std::set<VcId> accepted_;
};

}  // namespace stp::test
