// SPDX-License-Identifier: BSD-3-Clause
// Two channels in one thread, over the loop link, with a clock that only the test moves.
#include "tools/files/channel.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <fstream>
#include <future>
#include <optional>

#include "stp/base/work_meter.h"
#include "tools/files/failure.h"

namespace stp::files {
namespace {

using std::chrono::milliseconds;

class LongPathTest : public ::testing::Test {
 protected:
  static constexpr std::size_t kMib = std::size_t{1} << 20;
  static constexpr milliseconds kRoundTrip{100};
  // More than the managed layer puts into its ring.
  static constexpr std::size_t kShort = 40'000;

  LongPathTest() {
    ::setenv("STP_LINK", "loop,mtu=40000", 1);
    link_.emplace();
    its_link_.emplace();
  }
  ~LongPathTest() override {
    sender_.reset();
    receiver_.reset();
  }

  void connect(Reserve* of_sender, Reserve* of_receiver) {
    Queue requests(*link_, 1);
    stm_listener_t listener = nullptr;
    ASSERT_EQ(::stm_listen(link_->domain(), ":3000", requests.handle(), 0, 1, &listener), 0);
    const auto now = [this] { return now_; };
    auto dialing = std::async(std::launch::async, [&] {
      sender_.emplace(
          *its_link_, "localhost:3000", [] {}, Channel::Patience{}, Channel::Tell{},
          Growth{of_sender, now});
    });
    std::optional<stm_event_t> event;
    while (!event) event = requests.next(kAttention);
    receiver_.emplace(
        *link_, event->connection, [] {}, Growth{of_receiver, now});
    dialing.get();
    ::stm_listener_close(listener);
  }
  // Until all messages of that side have arrived.
  static void await_all(Channel& channel) {
    while (channel.stuck() != Duration::zero()) channel.look();
  }
  // A control message takes so long.
  void take_a_round_trip(Channel& channel, milliseconds time) {
    channel.send(MessageTag::kNotes, std::array<std::byte, 8>{});
    if (&channel == &*sender_) ++to_come_;
    now_ += time;
    await_all(channel);
    take_all();
  }
  bool send_one(std::size_t length) {
    const auto buffer = sender_->content_buffer(Duration::zero());
    if (buffer.empty()) return false;
    sender_->send_content(MessageTag::kContent, buffer.first(std::min(length, buffer.size())));
    ++to_come_;
    return true;
  }
  // Takes as many places for content as there are. Returns how many.
  std::size_t fill() {
    std::size_t sent = 0;
    while (send_one(kShort)) ++sent;
    return sent;
  }
  // The receiver's program takes so many of the messages that have been sent.
  void take(std::size_t messages) {
    Message message;
    for (; messages != 0; --messages, --to_come_) {
      while (!receiver_->receive(message, kAttention)) {
      }
      receiver_->done_with(message);
    }
  }
  void take_all() { take(to_come_); }
  // So many of them arrive for that, and their sender knows it.
  void take_and_hear(std::size_t messages) {
    const auto then = sender_->delivered() + messages * kShort;
    take(messages);
    while (sender_->delivered() != then) sender_->look();
  }
  // The receiver's program has used its receives up.
  void use_receives() {
    for (std::size_t i = 0; i < receiver_->depth(); ++i) {
      EXPECT_TRUE(send_one(kShort));
      now_ += 2 * kRoundTrip;
      await_all(*sender_);
    }
  }
  // All messages of a full set take so long, because the receiver's program takes none meanwhile.
  // Returns how many they are.
  std::size_t send_all_places(milliseconds time) {
    use_receives();
    const auto sent = fill();
    now_ += time;
    take_all();
    await_all(*sender_);
    return sent;
  }
  // That comes in a round trip.
  void come(std::size_t messages, std::size_t length, milliseconds round_trip = kRoundTrip) {
    for (; messages != 0; --messages) EXPECT_TRUE(send_one(length));
    take_all();
    await_all(*sender_);
    now_ += round_trip;
  }

  TimePoint now_{std::chrono::hours(1)};
  std::optional<Reserve> reserve_;
  std::optional<FileLink> link_, its_link_;
  std::optional<Channel> sender_, receiver_;
  std::size_t to_come_ = 0;
};

TEST_F(LongPathTest, a_sender_has_more_under_way_as_long_as_no_message_waits) {
  auto& reserve = reserve_.emplace(256 * kMib);
  connect(&reserve, nullptr);
  take_a_round_trip(*sender_, kRoundTrip);
  EXPECT_EQ(send_all_places(milliseconds(400)), 8U);
  EXPECT_EQ(send_all_places(milliseconds(399)), 8U) << "they waited before";
  EXPECT_EQ(send_all_places(milliseconds(300)), 16U);
  EXPECT_EQ(send_all_places(milliseconds(500)), 32U);
  EXPECT_EQ(send_all_places(milliseconds(300)), 32U) << "they waited before";
  EXPECT_EQ(send_all_places(milliseconds(300)), 62U);
  EXPECT_EQ(send_all_places(milliseconds(300)), 62U) << "there are no more";
}

TEST_F(LongPathTest, what_took_the_last_place_of_fewer_gets_a_sender_no_more) {
  auto& reserve = reserve_.emplace(256 * kMib);
  connect(&reserve, nullptr);
  take_a_round_trip(*sender_, kRoundTrip);
  use_receives();
  EXPECT_EQ(fill(), 8U);
  now_ += 2 * kRoundTrip;
  take_and_hear(1);
  EXPECT_TRUE(send_one(kShort)) << "the last place of eight";
  take_and_hear(7);
  EXPECT_EQ(fill(), 15U);
  now_ += 2 * kRoundTrip;
  take_and_hear(1);
  EXPECT_EQ(fill(), 1U);
  take_all();
}

TEST_F(LongPathTest, a_sender_on_a_short_path_has_no_more_under_way) {
  auto& reserve = reserve_.emplace(256 * kMib);
  connect(&reserve, nullptr);
  take_a_round_trip(*sender_, milliseconds(1));
  for (int i = 0; i < 3; ++i) EXPECT_EQ(send_all_places(milliseconds(2)), 8U);
}

// A busy host answers late. Content takes two round trips.
TEST_F(LongPathTest, a_sender_learns_from_content_that_the_path_is_short) {
  auto& reserve = reserve_.emplace(256 * kMib);
  connect(&reserve, nullptr);
  take_a_round_trip(*sender_, milliseconds(5));
  EXPECT_TRUE(send_one(kShort));
  now_ += milliseconds(3);
  take_all();
  await_all(*sender_);
  EXPECT_EQ(send_all_places(milliseconds(6)), 8U);
  EXPECT_EQ(send_all_places(milliseconds(6)), 8U);
}

TEST_F(LongPathTest, a_sender_goes_on_with_what_it_has_where_there_is_no_more_memory) {
  auto& reserve = reserve_.emplace(20 * kMib);
  connect(&reserve, nullptr);
  take_a_round_trip(*sender_, kRoundTrip);
  EXPECT_EQ(send_all_places(milliseconds(300)), 8U);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(send_all_places(milliseconds(300)), 16U);
}

// This process gets hardly any more address space.
class NoMoreMemory {
 public:
  NoMoreMemory() {
    std::size_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    ::getrlimit(RLIMIT_AS, &before_);
    const auto has = pages * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
    const rlimit little{has + (std::size_t{4} << 20), before_.rlim_max};
    EXPECT_EQ(::setrlimit(RLIMIT_AS, &little), 0);
  }
  ~NoMoreMemory() { ::setrlimit(RLIMIT_AS, &before_); }
  NoMoreMemory(const NoMoreMemory&) = delete;
  NoMoreMemory& operator=(const NoMoreMemory&) = delete;

 private:
  rlimit before_{};
};

TEST_F(LongPathTest, a_sender_goes_on_with_what_it_has_where_the_system_gives_no_more_memory) {
  if (work::kMetered) GTEST_SKIP() << "a sanitizer needs memory of its own";
  auto& reserve = reserve_.emplace(256 * kMib);
  connect(&reserve, nullptr);
  take_a_round_trip(*sender_, kRoundTrip);
  EXPECT_EQ(send_all_places(milliseconds(300)), 8U);
  {
    const NoMoreMemory now;
    EXPECT_EQ(send_all_places(milliseconds(300)), 8U);
  }
  EXPECT_EQ(send_all_places(milliseconds(300)), 8U) << "it does not ask again and again";
  EXPECT_TRUE(reserve.take(128 * kMib)) << "what it did not get is left for others";
}

TEST_F(LongPathTest, a_receiver_has_room_for_more_while_half_of_it_comes_in_a_round_trip) {
  auto& reserve = reserve_.emplace(256 * kMib);
  connect(nullptr, &reserve);
  ASSERT_EQ(sender_->content_room(), kMib);
  take_a_round_trip(*receiver_, kRoundTrip);
  come(1, kShort);
  come(3, kMib);
  come(4, kMib);
  EXPECT_EQ(receiver_->depth(), 8U);
  come(1, kMib);
  EXPECT_EQ(receiver_->depth(), 16U) << "four came";
  come(8, kMib);
  EXPECT_EQ(receiver_->depth(), 16U);
  come(1, kMib);
  EXPECT_EQ(receiver_->depth(), 32U) << "eight came";
}

// A busy host answers late. Content comes a round trip after its receive was posted, at least.
TEST_F(LongPathTest, a_receiver_learns_from_content_that_the_path_is_short) {
  auto& reserve = reserve_.emplace(256 * kMib);
  connect(nullptr, &reserve);
  take_a_round_trip(*receiver_, milliseconds(5));
  for (int i = 0; i < 4; ++i) come(8, kMib, milliseconds(i == 0 ? 1 : 5));
  EXPECT_EQ(receiver_->depth(), 8U);
}

TEST_F(LongPathTest, a_receiver_has_no_more_room_for_many_messages_that_hold_little) {
  auto& reserve = reserve_.emplace(256 * kMib);
  connect(nullptr, &reserve);
  take_a_round_trip(*receiver_, kRoundTrip);
  for (int i = 0; i < 4; ++i) come(8, kShort);
  EXPECT_EQ(receiver_->depth(), 8U);
}

}  // namespace
}  // namespace stp::files
