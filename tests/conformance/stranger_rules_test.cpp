// SPDX-License-Identifier: BSD-3-Clause
// A sender without a connection never makes a Node send more than it received, or keep memory
// (docs/protocol.md, sections 5 and 12).
#include "tests/stp/node/write_fixture.h"
#include "tools/sim/live_bytes.h"

namespace stp::test {
namespace {

using wire::Op;
namespace flag = wire::flag;

constexpr MacAddr kStranger{{2, 0, 0, 0, 0, 0x77}};

// B has a connection with A and listens, with no channel in stock for anybody else.
class StrangerRules : public Writing {
 protected:
  static constexpr std::size_t kHeader = wire::kEthernetSize + wire::kHeaderSize;

  // Every legal and illegal operation with each flag, and with existing and unknown Ports and Keys.
  std::vector<wire::Header> everything() {
    VcInfo info{};
    EXPECT_EQ(b.node.vc_info(cb.id, info), 0);
    std::vector<wire::Header> all;
    for (unsigned op = 0; op < 32; ++op)
      for (unsigned bit = 0; bit <= wire::kOpShift; ++bit)
        for (std::uint16_t const port : {std::uint16_t{0}, info.local_port, std::uint16_t{999}})
          for (const auto key : {info.local_key, 12'345U}) {
            wire::Header h;
            h.op_flags = static_cast<std::uint16_t>(op << wire::kOpShift | (1U << bit >> 1));
            h.param = 8;
            h.d_port = port;
            h.d_key = key;
            h.s_port = 5;
            h.bufx = 12;
            h.offset = 99;
            h.sync = 10;
            h.b_num = 1;
            h.d_id = op % 2 == 0 ? 3000 : 4000;  // UPorts: one has a listener
            all.push_back(h);
          }
    return all;
  }
  // The frame in one of the legal forms.
  static Frame frame_of(const wire::Header& h, unsigned form) {
    Frame frame(200);
    const auto vlan = form % 2 != 0 ? std::optional<std::uint16_t>(5) : std::nullopt;
    const std::vector<std::byte> option(form / 2 % 2 != 0 ? wire::kOptionSize : 0);
    frame.resize(wire::emit({kMacB, kStranger, vlan, form >= 4}, h, option, {}, frame));
    return frame;
  }
  std::size_t bytes_back() {
    std::size_t bytes = 0;
    while (const auto frame = take(b)) {
      wire::LinkHeader link;
      Bytes payload;
      EXPECT_EQ(wire::unwrap(*frame, link, payload), DropReason::kNone);
      if (link.dst == kStranger) bytes += frame->size();
    }
    return bytes;
  }
};

// protocol: 5.6, 5.9, 5.12, 5.18, 12.1
TEST_F(StrangerRules, no_answer_is_larger_than_its_question) {
  std::size_t answered = 0;
  for (const auto& h : everything())
    for (unsigned form = 0; form < 8; ++form) {
      const auto question = frame_of(h, form);
      ASSERT_GE(question.size(), wire::kEthernetSize + wire::kMinPayload);
      arrive(b, question);
      const auto back = bytes_back();
      EXPECT_LE(back, question.size()) << "op " << unsigned{h.op_flags} << " form " << form;
      answered += back != 0;
    }
  EXPECT_GT(answered, 0U) << "some are answered";
  EXPECT_EQ(b.node.vc_count(), 1U);
  EXPECT_TRUE(untouched());
}

// protocol: 5.7, 12.1
TEST_F(StrangerRules, no_frame_makes_a_node_keep_anything) {
  const auto all = everything();
  const auto flood = [&](std::uint32_t from) {
    for (std::uint32_t i = from; i < from + 20; ++i)
      for (auto h : all) {
        h.s_port = static_cast<std::uint16_t>(1 + i);
        h.offset = i;
        arrive(b, frame_of(h, i % 8));
        b.events = std::vector<Event>();
      }
  };
  flood(1);
  const auto before = live_bytes();
  flood(100);
  EXPECT_LE(live_bytes(), before) << "though none of its answers has left yet";
  EXPECT_GT(b.count(Counter::kAddressFull), 0U);
  EXPECT_EQ(b.node.vc_count(), 1U);
  EXPECT_EQ(cb.user.state(), ChannelState::kOpen);
}

}  // namespace
}  // namespace stp::test
