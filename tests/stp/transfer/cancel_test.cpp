// SPDX-License-Identifier: BSD-3-Clause
// A cancelled operation gives its memory back only when no frame can be sent from it any more, and
// both sides know alike how it ended.
#include "tests/stp/transfer/managed_pair.h"

namespace stp::test {
namespace {

using wire::Op;

class Cancel : public Managed {
 protected:
  static constexpr std::size_t kBlock = std::size_t{1} << 16;

  // When the put has completed, its memory is used for something else.
  bool use_memory_again_when_done() {
    const auto* const done = sa.find(Completion::Kind::kPut, 1);
    if (done == nullptr) return false;
    std::memset(sa.source->data(), 0xee, sa.source->size());
    return true;
  }
  [[nodiscard]] bool is_as_put(std::size_t from, std::size_t to) const {
    const Buffers pattern(kBufsize, kBuffers);
    pattern.fill_pattern();
    return std::memcmp(sb.landing->data() + from, pattern.data() + from, to - from) == 0;
  }
  [[nodiscard]] bool is_untouched(std::size_t from) const {
    const auto all = sb.landing->all().subspan(from);
    return std::all_of(all.begin(), all.end(), [](std::byte each) { return each == std::byte{0}; });
  }
};

// protocol: 10.6
TEST_F(Cancel, what_is_repeated_of_a_cancelled_put_is_never_what_its_memory_held_later) {
  const auto region = open_region(4 * kBlock);
  wire = [](const Frame& f, bool) { return parsed(f).header.op() == Op::kData ? 0U : 1U; };
  ASSERT_EQ(sa.sequencer->put(1, region, 0, at(0), kBlock), 0);
  run(kMillisecond);
  ASSERT_EQ(sa.sequencer->cancel(1), 0);
  run(kMillisecond);
  EXPECT_FALSE(use_memory_again_when_done()) << "its Block may be sent again";
  wire = nullptr;
  run(kSecond);
  ASSERT_TRUE(use_memory_again_when_done());
  run(kSecond);
  EXPECT_EQ(sa.find(Completion::Kind::kPut, 1)->status, 0) << "it was too late";
  EXPECT_TRUE(is_as_put(0, kBlock));
}

TEST_F(Cancel, what_has_not_been_sent_of_a_put_never_is) {
  const auto region = open_region(8 * kBlock, 2);
  wire = [](const Frame& f, bool) { return parsed(f).header.op() == Op::kData ? 0U : 1U; };
  ASSERT_EQ(sa.sequencer->put(1, region, 0, at(0), 8 * kBlock), 0);
  run(kMillisecond);
  ASSERT_EQ(sa.sequencer->cancel(1), 0);
  wire = nullptr;
  run(kSecond);
  ASSERT_TRUE(use_memory_again_when_done());
  run(kSecond);
  EXPECT_EQ(sa.find(Completion::Kind::kPut, 1)->status, -ECANCELED);
  EXPECT_TRUE(is_as_put(0, 2 * kBlock)) << "the two Blocks of the window had been sent";
  EXPECT_TRUE(is_untouched(2 * kBlock));
  EXPECT_EQ(sa.sequencer->outstanding(), 0U);
}

TEST_F(Cancel, a_put_that_has_to_wait_for_others_goes_at_once) {
  const auto region = open_region(8 * kBlock, 1);
  ASSERT_EQ(sa.sequencer->put(7, region, 0, at(0), kBlock), 0);
  ASSERT_EQ(sa.sequencer->put(1, region, kBlock, at(kBlock), kBlock), 0);
  ASSERT_EQ(sa.sequencer->cancel(1), 0);
  Completion done{};
  ASSERT_TRUE(sa.sequencer->next_completion(done));
  EXPECT_EQ(done.context, 1U);
  EXPECT_EQ(done.status, -ECANCELED);
  run(kSecond);
  EXPECT_EQ(sa.find(Completion::Kind::kPut, 7)->status, 0);
  EXPECT_TRUE(is_untouched(kBlock));
}

TEST_F(Cancel, a_put_that_is_given_up_keeps_its_memory_until_no_request_of_it_is_left) {
  const auto region = open_region(4 * kBlock);
  ASSERT_EQ(sa.sequencer->put(1, region, 0, at(0), kBlock), 0);
  SendEntry queued;
  ASSERT_TRUE(sa.sequencer->transmit(queued, now));  // in the ring, but not taken yet
  ASSERT_EQ(sa.sequencer->end_region(region), 0);
  Completion done{};
  EXPECT_FALSE(sa.sequencer->next_completion(done));
  EXPECT_EQ(sa.sequencer->put(2, region, 0, at(0), kBlock), -EACCES) << "nobody has been told yet";
  ASSERT_TRUE(ca.user.send(queued));
  a.node.kick(ca.id);
  run(kSecond);
  EXPECT_EQ(sa.find(Completion::Kind::kPut, 1)->status, -ECANCELED);
  EXPECT_NE(sa.find(Completion::Kind::kRevoked), nullptr);
}

// The receiver's Node has told the sender that all has arrived.
// protocol: 9.43, 10.1
TEST_F(Cancel, a_receive_whose_last_bytes_have_just_arrived_is_complete) {
  ASSERT_EQ(sb.sequencer->post_receive(7, landing(sb, 0, kBlock)), 0);
  ASSERT_EQ(sa.sequencer->write(5, at(0), kBlock), 0);
  const auto delivered = [this] { return sa.find(Completion::Kind::kWrite, 5) != nullptr; };
  for (int i = 0; i < 100 && !delivered(); ++i) {
    drive(a, ca, sa);
    settle();
    drive(a, ca, sa);
    if (delivered()) break;
    drive(b, cb, sb);
    settle();
  }
  ASSERT_TRUE(delivered());
  ASSERT_EQ(sa.find(Completion::Kind::kWrite, 5)->status, 0);
  ASSERT_EQ(sb.sequencer->cancel(7), 0) << "nobody has read yet that it arrived";
  run(kSecond);
  ASSERT_NE(sb.find(Completion::Kind::kReceive, 7), nullptr);
  EXPECT_EQ(sb.find(Completion::Kind::kReceive, 7)->status, 0);
  EXPECT_TRUE(landed(sa, sb, 0, 0, kBlock));
  EXPECT_EQ(sa.sequencer->outstanding() + sb.sequencer->outstanding(), 0U);
}

// protocol: 9.43
TEST_F(Cancel, the_news_that_all_has_arrived_goes_before_the_end) {
  constexpr std::size_t kLength = 1'000;
  ASSERT_EQ(sb.sequencer->post_receive(7, landing(sb, 0, kLength)), 0);
  ASSERT_EQ(sa.sequencer->write(5, at(0), kLength), 0);
  drive(a, ca, sa);
  settle();
  drive(b, cb, sb);
  settle();
  drive(a, ca, sa);  // its DATA is about to leave
  ASSERT_EQ(sb.sequencer->cancel(7), 0);
  drive(b, cb, sb);  // the END waits in the queue
  while (auto frame = take(a)) arrive(b, *frame);
  burst(b, &a);
  run(kSecond);
  EXPECT_EQ(sb.find(Completion::Kind::kReceive, 7)->status, 0);
  EXPECT_EQ(sa.find(Completion::Kind::kWrite, 5)->status, 0);
}

}  // namespace
}  // namespace stp::test
