// SPDX-License-Identifier: BSD-3-Clause
// A CTS is repeated while its Block has not left yet (protocol, section 10).
#include <gtest/gtest.h>

#include "stp/transfer/sequencer.h"

namespace stp::test {
namespace {

using wire::Op;

class GrantAgain : public ::testing::Test {
 protected:
  static constexpr unsigned kBlocksize = 14;

  GrantAgain()
      : sequencer([] {
          SequencerConfig config;
          config.local_bufsize = config.remote_bufsize = 14;
          config.send_stu_log2 = config.receive_stu_log2 = 12;
          return config;
        }()) {}

  // What the Sequencer hands to the Node now.
  std::optional<wire::Header> next() {
    SendEntry entry;
    if (!sequencer.transmit(entry, kSecond)) return std::nullopt;
    ++handed_out;
    return entry.header;
  }
  void permit(std::uint32_t f_offset = 0) {
    ReceivedEntry entry{};
    auto& h = entry.header;
    h.op_flags = wire::op_flags(Op::kClearToSend);
    h.param = kBlocksize;
    h.mx = 3;
    h.sync = f_offset;
    h.d_id = i_id;
    h.s_id = 9;
    sequencer.receive(entry, kSecond);
  }
  void SetUp() override {
    ASSERT_EQ(sequencer.write(1, {0, 0}, 1U << kBlocksize, {}), 0);
    const auto rts = next();
    ASSERT_TRUE(rts && rts->op() == Op::kRequestToSend);
    i_id = rts->s_id;
    permit();
    ASSERT_TRUE(next());
  }

  Sequencer sequencer;
  std::uint32_t handed_out = 0;
  std::uint32_t i_id = 0;
};

// protocol: 10.15
TEST_F(GrantAgain, is_served_by_what_the_node_has_not_taken_yet) {
  permit();
  permit(1U << 13);
  EXPECT_FALSE(next());
}

// protocol: 9.5, 10.15
TEST_F(GrantAgain, is_answered_once_that_has_been_taken) {
  sequencer.taken(handed_out);
  permit(1U << 13);
  const auto data = next();
  ASSERT_TRUE(data && data->op() == Op::kData);
  EXPECT_EQ(data->offset, 1U << 13);
  permit();
  const auto whole = next();
  ASSERT_TRUE(whole) << "the tail that waits does not serve for the beginning";
  EXPECT_EQ(whole->offset, 0U);
}

}  // namespace
}  // namespace stp::test
