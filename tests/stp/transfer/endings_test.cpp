// SPDX-License-Identifier: BSD-3-Clause
#include "stp/transfer/endings.h"

#include "stp/transfer/message_number.h"
#include "stp/transfer/patience.h"
#include "tests/stp/transfer/parts.h"

namespace stp::test {
namespace {

class EndingsTest : public Parts {
 protected:
  void end(std::uint32_t i_id, std::uint32_t msn = 0) {
    Completion c{};
    c.context = i_id;
    c.status = -ECANCELED;
    endings.end(900, i_id, c, msn);
  }
  void expire() {
    clock.stop();
    repeats.begin_round();
    endings.expire();
    repeats.end_round();
  }
};

// protocol: 9.18
TEST_F(EndingsTest, complete_when_the_peer_has_confirmed) {
  end(5);
  const auto request = next_is<wire::End>();
  EXPECT_EQ(request.r_id, 900U);
  EXPECT_EQ(request.i_id, 5U);
  EXPECT_FALSE(completion());
  EXPECT_EQ(endings.outstanding(), 1U);
  endings.on_end_ack({.i_id = 6});
  EXPECT_FALSE(completion()) << "it confirms another one";
  endings.on_end_ack({.i_id = 5});
  const auto done = completion();
  ASSERT_TRUE(done);
  EXPECT_EQ(done->context, 5U);
  EXPECT_EQ(done->status, -ECANCELED);
  EXPECT_TRUE(endings.empty());
  endings.on_end_ack({.i_id = 5});
  EXPECT_FALSE(completion()) << "once";
}

TEST_F(EndingsTest, name_the_message_that_is_taken_back) {
  end(5, 77);
  const auto entry = next_entry();
  ASSERT_TRUE(entry);
  ReceivedEntry received{};
  received.payload_length = entry->payload_length;
  std::copy(std::begin(entry->payload), std::end(entry->payload), std::begin(received.payload));
  EXPECT_EQ(load_msn(received), 77U);
}

TEST_F(EndingsTest, of_what_has_no_completion_are_not_outstanding) {
  endings.end(900, 5, std::nullopt);
  EXPECT_EQ(endings.outstanding(), 0U);
  EXPECT_FALSE(endings.empty());
  endings.on_end_ack({.i_id = 5});
  EXPECT_FALSE(completion());
  EXPECT_TRUE(endings.empty());
}

// protocol: 10.11
TEST_F(EndingsTest, are_repeated_while_the_peer_has_seen_them_and_says_nothing) {
  end(5);
  node_takes();
  unsigned repeated = 0;
  for (int i = 0; i < 20 && repeated == 0; ++i) {
    pass(clock.deadline() - clock.now());
    expire();
    while (const auto header = next()) {
      repeated += header->op() == Op::kEnd;
      if (header->op() != Op::kRequestState) continue;
      taken();
      repeats.on_slots(
          {.r_slots = kSlots, .sync = wire::decode_as<wire::RequestState>(*header).sync});
    }
    taken();
  }
  EXPECT_EQ(repeated, 1U);
}

// protocol: 10.11
TEST_F(EndingsTest, of_a_silent_peer_are_given_up) {
  end(5);
  const auto begun = clock.now();
  while (!endings.empty() && clock.now() < begun + 60 * kSecond) {
    node_takes();
    pass(clock.deadline() - clock.now());
    expire();
  }
  EXPECT_TRUE(completion());
  EXPECT_LE(clock.now(), begun + kAnswerPatience + kSecond);
}

TEST_F(EndingsTest, complete_when_the_connection_ends) {
  end(5);
  endings.fail();
  EXPECT_TRUE(completion());
  EXPECT_TRUE(endings.empty());
}

}  // namespace
}  // namespace stp::test
