// SPDX-License-Identifier: BSD-3-Clause
#include "stp/channel/rings.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <cstring>
#include <thread>
#include <vector>

#include "tests/stp/node/two_nodes.h"

namespace stp::test {
namespace {

// A channel with both of its ends, and the words of it that a user can write without any rule.
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

constexpr std::uint32_t kSlots = 20, kReserve = 44;  // 64 places

class NodeSide : public Rings {
 protected:
  std::vector<std::uint32_t> read() {
    std::vector<std::uint32_t> numbers;
    for (ReceivedEntry entry; user.receive(entry);) numbers.push_back(entry.length);
    return numbers;
  }
  std::uint32_t fill(Place place) {
    std::uint32_t count = 0;
    while (deliver(count, place)) ++count;
    return count;
  }
};

TEST_F(NodeSide, headers_arrive_in_order_as_long_as_there_are_slots) {
  EXPECT_EQ(node.free_slots(), kSlots);
  EXPECT_EQ(fill(Place::kSlot), kSlots);
  EXPECT_EQ(node.free_slots(), 0U);
  const auto numbers = read();
  ASSERT_EQ(numbers.size(), kSlots);
  for (std::uint32_t i = 0; i < kSlots; ++i) EXPECT_EQ(numbers[i], i);
  EXPECT_EQ(node.free_slots(), kSlots);
}

// protocol: 6.11
TEST_F(NodeSide, what_uses_no_slot_leaves_the_slots_free) {
  EXPECT_EQ(fill(Place::kReserve), kReserve);
  EXPECT_EQ(node.free_slots(), kSlots);
  EXPECT_EQ(fill(Place::kSlot), kSlots);
  EXPECT_FALSE(deliver(0, Place::kReserve));
  EXPECT_EQ(read().size(), kSlots + kReserve);
  EXPECT_EQ(node.free_slots(), kSlots);
}

// What waits goes along, whichever kind it is, and the old memory is left alone.
TEST_F(NodeSide, goes_on_in_memory_that_the_user_sees_later) {
  ASSERT_TRUE(deliver(7));
  ASSERT_TRUE(deliver(8, Place::kReserve));
  node.set_state(ChannelState::kOpen);
  node.set_state(ChannelState::kFailed, -ECONNRESET);
  ChannelMemory later{kGeometry};
  std::uint32_t copied = 0;
  ASSERT_TRUE(node.move_to(later.data(), copied));
  words.rx_tail = 1'000;
  user = UserChannel{later.data()};
  EXPECT_EQ(user.state(), ChannelState::kFailed);
  EXPECT_EQ(node.free_slots(), kSlots - 1);
  ASSERT_TRUE(deliver(9));
  EXPECT_EQ(read(), (std::vector<std::uint32_t>{7, 8, 9}));
  ASSERT_TRUE(send(3));
  SendEntry entry{};
  EXPECT_TRUE(node.peek(entry));
  EXPECT_EQ(fill(Place::kSlot), kSlots);
  EXPECT_FALSE(node.broken());
}

// A peer may have sent megabytes before the user says where it wants them.
TEST(NodeChannel, copies_no_more_than_some_headers_at_once) {
  constexpr auto kMost = NodeChannel::kCopied;
  constexpr ChannelGeometry kLarge{.slots = 3 * kMost, .credits = 1};
  ChannelMemory memory{kLarge}, later{kLarge};
  NodeChannel node{memory.data(), kLarge};
  std::uint32_t sent = 0, copied = 0;
  const auto deliver = [&](std::uint32_t count) {
    ReceivedEntry entry{};
    for (; count != 0; --count) {
      entry.length = sent++;
      ASSERT_TRUE(node.deliver(entry, NodeChannel::Place::kSlot));
    }
  };
  deliver(kMost + 1);
  EXPECT_FALSE(node.move_to(later.data(), copied));
  deliver(kMost - 1);  // meanwhile
  EXPECT_TRUE(node.move_to(later.data(), copied));
  deliver(1);
  UserChannel user{later.data()};
  ReceivedEntry entry;
  for (std::uint32_t i = 0; i < sent; ++i) {
    ASSERT_TRUE(user.receive(entry)) << i;
    ASSERT_EQ(entry.length, i);
  }
  EXPECT_EQ(node.free_slots(), kLarge.slots);
}

// The ring is passed many times, with entries of both kinds, which the user reads in parts.
TEST_F(NodeSide, slots_are_counted_right_wherever_the_ring_begins) {
  for (std::uint32_t round = 0; round < 200; ++round) {
    ASSERT_TRUE(deliver(1));
    ASSERT_TRUE(deliver(2, Place::kReserve));
    ASSERT_TRUE(deliver(3));
    ASSERT_EQ(node.free_slots(), kSlots - 2) << round;
    ReceivedEntry entry;
    ASSERT_TRUE(user.receive(entry));
    ASSERT_EQ(node.free_slots(), kSlots - 1) << round;
    ASSERT_TRUE(user.receive(entry));
    ASSERT_EQ(node.free_slots(), kSlots - 1) << round;
    ASSERT_TRUE(user.receive(entry));
    ASSERT_EQ(node.free_slots(), kSlots) << round;
  }
  EXPECT_FALSE(node.broken());
}

// Whoever takes back afterwards that it has read breaks the ring with the next header.
TEST_F(NodeSide, slots_of_who_has_read_all_are_free_without_another_look) {
  EXPECT_EQ(node.known_free_slots(), kSlots);
  ASSERT_TRUE(deliver(1));
  EXPECT_EQ(node.known_free_slots(), kSlots - 1);
  ReceivedEntry entry;
  ASSERT_TRUE(user.receive(entry));
  EXPECT_EQ(node.known_free_slots(), kSlots);
  words.rx_tail = 0;
  EXPECT_EQ(node.known_free_slots(), kSlots);
  EXPECT_FALSE(deliver(2));
  EXPECT_TRUE(node.broken());
}

// 512 places: more than stand in the NodeChannel itself.
TEST(LargeRings, count_their_slots_in_the_same_way) {
  constexpr ChannelGeometry kLarge{.slots = 300, .credits = 4};
  constexpr std::uint32_t kRest = 212;
  const ChannelMemory memory(kLarge);
  NodeChannel node(memory.data(), kLarge);
  UserChannel user(memory.data());
  ReceivedEntry entry{};
  for (int round = 0; round < 3; ++round) {
    for (std::uint32_t i = 0; i < kRest; ++i)
      ASSERT_TRUE(node.deliver(entry, NodeChannel::Place::kReserve));
    ASSERT_FALSE(node.deliver(entry, NodeChannel::Place::kReserve));
    for (std::uint32_t i = 0; i < kLarge.slots; ++i)
      ASSERT_TRUE(node.deliver(entry, NodeChannel::Place::kSlot));
    ASSERT_EQ(node.free_slots(), 0U);
    for (std::uint32_t i = 0; i < kRest; ++i) ASSERT_TRUE(user.receive(entry));
    ASSERT_EQ(node.free_slots(), 0U) << "those that were read held none";
    while (user.receive(entry)) {
    }
    ASSERT_EQ(node.free_slots(), kLarge.slots);
  }
  EXPECT_FALSE(node.broken());
}

TEST_F(NodeSide, who_claims_to_have_read_what_was_not_there_has_broken_the_ring) {
  ASSERT_TRUE(deliver(1));
  words.rx_tail = 2;
  EXPECT_EQ(node.free_slots(), 0U);
  EXPECT_TRUE(node.broken());
  EXPECT_FALSE(deliver(2));
  EXPECT_FALSE(deliver(2, Place::kReserve));
}

TEST_F(NodeSide, who_takes_back_that_it_has_read_has_broken_the_ring) {
  ASSERT_TRUE(deliver(1));
  ASSERT_TRUE(deliver(2));
  words.rx_tail = 2;
  EXPECT_EQ(node.free_slots(), kSlots);
  EXPECT_FALSE(node.broken());
  words.rx_tail = 1;
  EXPECT_FALSE(deliver(3));
  EXPECT_TRUE(node.broken());
}

// A user that keeps up makes the Node use the first place only.
TEST_F(NodeSide, headers_begin_again_with_the_first_place_when_the_ring_is_empty) {
  const auto* const places =
      reinterpret_cast<const ReceivedEntry*>(memory.data() + kGeometry.rx_at());
  for (std::uint32_t number = 1; number < 200; ++number) {
    ASSERT_TRUE(deliver(number));
    ASSERT_EQ(places[0].length, number);
    ASSERT_EQ(read(), std::vector{number});
  }
  EXPECT_EQ(places[1].length, 0U);
}

// Wherever the first place is, all places are used in order.
TEST_F(NodeSide, headers_keep_their_order_wherever_the_ring_began) {
  std::uint32_t number = 0, expected = 0;
  for (std::uint32_t round = 0; round < 100; ++round) {
    for (std::uint32_t i = 0; i <= round % kSlots && deliver(number); ++i) ++number;
    ReceivedEntry entry;
    for (std::uint32_t i = 0; i < round % 7 && user.receive(entry); ++i)
      ASSERT_EQ(entry.length, expected++);
    if (round % 5 != 0 && node.free_slots() > kSlots / 2) continue;
    for (const auto found : read()) ASSERT_EQ(found, expected++);
  }
  for (const auto found : read()) ASSERT_EQ(found, expected++);
  EXPECT_EQ(expected, number);
}

TEST_F(NodeSide, an_entry_without_payload_leaves_the_place_of_the_payload_alone) {
  ReceivedEntry entry{};
  entry.payload_length = 32;
  entry.payload[0] = entry.payload[31] = 5;
  ASSERT_TRUE(node.deliver(entry, Place::kSlot));
  ReceivedEntry received{};
  ASSERT_TRUE(user.receive(received));
  EXPECT_EQ(received.payload[0], 5);
  EXPECT_EQ(received.payload[31], 5);
  ASSERT_TRUE(deliver(6));
  received.payload[0] = 7;
  ASSERT_TRUE(user.receive(received));
  EXPECT_EQ(received.payload_length, 0);
  EXPECT_EQ(received.payload[0], 7);
}

TEST_F(NodeSide, whatever_a_user_calls_the_first_place_the_request_read_is_one_of_the_ring) {
  for (std::uint32_t i = 0; i < 4; ++i) ASSERT_TRUE(send(i));
  for (const std::uint32_t first : {1U, 3U, 4U, 77U, 0x8000'0000U, 0xffff'fffeU}) {
    words.tx_first = first;
    SendEntry entry;
    NodeChannel::Look look{};
    ASSERT_TRUE(node.peek(entry));
    ASSERT_TRUE(node.look(look));
    EXPECT_EQ(entry.length, (0 - first) % 4);
    EXPECT_EQ(look.length, entry.length);
  }
  EXPECT_FALSE(node.broken());
}

TEST_F(NodeSide, a_request_is_copied_and_stays_until_it_is_taken) {
  SendEntry entry;
  EXPECT_FALSE(node.peek(entry));
  ASSERT_TRUE(send(1));
  ASSERT_TRUE(send(2));
  ASSERT_TRUE(node.peek(entry));
  EXPECT_EQ(entry.length, 1U);
  ASSERT_TRUE(node.peek(entry));
  EXPECT_EQ(entry.length, 1U);
  NodeChannel::Look look{};
  ASSERT_TRUE(node.look(look));
  EXPECT_EQ(look.length, 1U);
  take_one();
  EXPECT_EQ(node.taken(), 1U);
  ASSERT_TRUE(node.look(look));
  EXPECT_EQ(look.length, 2U);
  take_one();
  EXPECT_FALSE(node.look(look));
}

TEST_F(NodeSide, more_requests_than_the_ring_holds_break_it) {
  SendEntry entry;
  NodeChannel::Look look{};
  words.tx_head = 4;
  EXPECT_TRUE(node.peek(entry));
  EXPECT_TRUE(node.look(look));
  words.tx_head = 5;
  EXPECT_FALSE(node.look(look));
  EXPECT_FALSE(node.broken()) << "peek() says so";
  EXPECT_FALSE(node.peek(entry));
  EXPECT_TRUE(node.broken());
  node.refuse_all();
  EXPECT_EQ(user.refused(), 0U);
}

TEST_F(NodeSide, indices_that_the_node_owns_are_not_read_back) {
  ASSERT_TRUE(send(1));
  words.tx_tail = 77;
  words.rx_head = 99;
  SendEntry entry;
  ASSERT_TRUE(node.peek(entry));
  EXPECT_EQ(entry.length, 1U);
  ASSERT_TRUE(deliver(5));
  EXPECT_EQ(words.rx_head.load(), 1U);
}

TEST_F(NodeSide, requests_are_refused_and_counted) {
  for (std::uint32_t i = 0; i < 3; ++i) ASSERT_TRUE(send(i));
  take_one();
  node.count_refused();
  node.refuse_all();
  EXPECT_EQ(user.refused(), 3U);
  EXPECT_EQ(user.over_budget(), 0U);
  node.count_refused(true);
  EXPECT_EQ(user.refused(), 4U);
  EXPECT_EQ(user.over_budget(), 1U);
  SendEntry entry;
  EXPECT_FALSE(node.peek(entry));
  EXPECT_TRUE(send(4)) << "their places are free";
  node.count_cts_repeated();
  EXPECT_EQ(user.cts_repeated(), 1U);
  EXPECT_EQ(user.path_block(), 0U);
  node.suggest_block(13);
  EXPECT_EQ(user.path_block(), 13U);
  EXPECT_EQ(user.steps(), 0U);
  node.count_step();
  EXPECT_EQ(user.steps(), 1U);
}

TEST_F(NodeSide, the_word_changes_only_for_a_user_that_sleeps) {
  EXPECT_FALSE(node.needs_wake());
  const auto seen = user.begin_sleep();
  EXPECT_EQ(user.wake_word()->load(), seen);
  EXPECT_TRUE(node.seems_asleep());
  EXPECT_TRUE(node.needs_wake());
  EXPECT_NE(node.wake_word()->load(), seen);
  user.end_sleep();
  EXPECT_FALSE(node.needs_wake());
}

// The Node's side wakes one of those who sleep.
TEST_F(NodeSide, the_first_to_wake_wakes_the_others_once) {
  user.begin_sleep();
  EXPECT_TRUE(node.needs_wake());
  EXPECT_FALSE(user.passes_on()) << "nobody else sleeps";
  user.begin_sleep();
  user.begin_sleep();
  EXPECT_TRUE(node.needs_wake());
  EXPECT_TRUE(user.passes_on());
  EXPECT_FALSE(user.passes_on());
  EXPECT_TRUE(node.needs_wake());
  EXPECT_TRUE(user.passes_on());
}

using UserSide = Rings;

TEST_F(UserSide, as_many_requests_wait_as_there_are_credits) {
  for (std::uint32_t i = 0; i < kGeometry.credits; ++i) {
    EXPECT_TRUE(user.writable());
    EXPECT_TRUE(send(i));
  }
  EXPECT_FALSE(user.writable());
  EXPECT_FALSE(send(4));
  EXPECT_EQ(user.sent(), 4U);
  take_one();
  EXPECT_EQ(user.taken(), 1U);
  EXPECT_TRUE(send(4));
  EXPECT_FALSE(user.writable());
}

TEST_F(UserSide, a_request_may_be_written_in_place) {
  auto* const place = user.next();
  ASSERT_NE(place, nullptr);
  *place = {};
  place->length = 9;
  user.send_next();
  SendEntry entry;
  ASSERT_TRUE(node.peek(entry));
  EXPECT_EQ(entry.length, 9U);
}

// Also where the ring's end is, and while the Node takes what was sent before.
TEST_F(UserSide, drafts_are_seen_together_once_they_are_sent) {
  std::uint32_t sent = 0, taken = 0;
  const auto take = [&] {
    SendEntry entry;
    if (!node.peek(entry)) return false;
    EXPECT_EQ(entry.length, ++taken);
    take_one();
    return true;
  };
  for (std::uint32_t round = 0; round < 20; ++round) {
    ASSERT_TRUE(send(++sent));
    std::uint32_t drafts = 0;
    while (auto* const place = user.draft(drafts)) {
      place->length = sent + ++drafts;
      if (drafts == 1 + round % 2) take();
    }
    ASSERT_GE(drafts, 1U);
    for (std::uint32_t i = 0; i < drafts; ++i) ASSERT_EQ(user.drafted(i).length, sent + 1 + i);
    while (taken < sent) ASSERT_TRUE(take());
    EXPECT_FALSE(take()) << "they are not sent";
    user.send_drafts(drafts);
    sent += drafts;
    for (std::uint32_t i = 0; i < 1 + round % drafts; ++i) ASSERT_TRUE(take());
    while (taken + round % 3 < sent) ASSERT_TRUE(take());
  }
}

TEST_F(UserSide, drafts_that_are_not_sent_are_none) {
  ASSERT_NE(user.draft(0), nullptr);
  ASSERT_NE(user.draft(1), nullptr);
  ASSERT_TRUE(send(1));
  ASSERT_TRUE(send(2));
  SendEntry entry;
  for (std::uint32_t number = 1; number <= 2; ++number, take_one()) {
    ASSERT_TRUE(node.peek(entry));
    EXPECT_EQ(entry.length, number);
  }
  EXPECT_FALSE(node.peek(entry));
}

// A Node that keeps up makes the user use the first place only.
TEST_F(UserSide, requests_begin_again_with_the_first_place_when_the_ring_is_empty) {
  const auto* const places = reinterpret_cast<const SendEntry*>(memory.data() + kGeometry.tx_at());
  for (std::uint32_t number = 1; number < 50; ++number) {
    ASSERT_TRUE(send(number));
    ASSERT_EQ(places[0].length, number);
    EXPECT_EQ(user.places_sent(), 1U);
    SendEntry entry;
    ASSERT_TRUE(node.peek(entry));
    ASSERT_EQ(entry.length, number);
    take_one();
  }
  EXPECT_EQ(places[1].length, 0U);
}

TEST_F(UserSide, requests_keep_their_order_wherever_the_ring_began) {
  std::uint32_t number = 0, expected = 0;
  for (std::uint32_t round = 0; round < 100; ++round) {
    while (send(number)) ++number;
    for (std::uint32_t i = 0; i <= round % kGeometry.credits; ++i) {
      SendEntry entry;
      ASSERT_TRUE(node.peek(entry));
      ASSERT_EQ(entry.length, expected++);
      take_one();
    }
  }
  EXPECT_GT(expected, 200U);
}

// Of each ring, since it was last empty.
TEST_F(UserSide, knows_how_many_places_were_used) {
  for (std::uint32_t round = 0; round < 3; ++round) {
    ASSERT_TRUE(send(1));
    ASSERT_TRUE(send(2));
    EXPECT_EQ(user.places_sent(), 2U);
    take_one();
    take_one();
    ReceivedEntry entry;
    for (std::uint32_t i = 0; i < 3; ++i) ASSERT_TRUE(deliver(i));
    for (std::uint32_t i = 0; i < 3; ++i) ASSERT_TRUE(user.receive(entry));
    EXPECT_EQ(user.places_received(), 3U);
  }
}

TEST_F(UserSide, a_request_is_done_when_the_node_says_so_not_when_it_is_taken) {
  ASSERT_TRUE(send(1));
  ASSERT_TRUE(send(2));
  take_one();
  EXPECT_TRUE(user.done(0));
  EXPECT_FALSE(user.done(1));
  node.complete(1);
  EXPECT_TRUE(user.done(1));
  EXPECT_FALSE(user.done(user.sent()));
}

TEST_F(UserSide, other_threads_see_that_there_is_something_to_read) {
  EXPECT_FALSE(user.readable());
  EXPECT_FALSE(user.waiting());
  ASSERT_TRUE(deliver(1));
  EXPECT_TRUE(user.readable());
  EXPECT_TRUE(user.waiting());
  ReceivedEntry entry;
  ASSERT_TRUE(user.receive(entry));
  EXPECT_FALSE(user.readable());
  EXPECT_FALSE(user.waiting());
  EXPECT_FALSE(user.receive(entry));
}

TEST_F(UserSide, learns_the_state_with_its_error) {
  EXPECT_EQ(user.state(), ChannelState::kConnecting);
  node.set_state(ChannelState::kOpen);
  EXPECT_EQ(user.state(), ChannelState::kOpen);
  EXPECT_EQ(user.error(), 0);
  node.set_state(ChannelState::kFailed, -110);
  EXPECT_EQ(user.state(), ChannelState::kFailed);
  EXPECT_EQ(user.error(), -110);
}

TEST_F(UserSide, one_that_gathers_is_woken_without_sleeping_here) {
  EXPECT_FALSE(node.gathered());
  user.gather();
  EXPECT_TRUE(node.gathered());
  EXPECT_TRUE(node.needs_wake());
  user.leave();
  EXPECT_FALSE(node.gathered());
}

// One thread is the Node, the other one the user. Every request comes back as a header. How much is
// under way changes all the time, so both rings begin again in the midst of everything.
TEST_F(Rings, two_threads_lose_double_and_mix_up_nothing) {
  constexpr std::uint32_t kAll = 4'000;
  const auto fill = [](auto& entry, std::uint32_t number) {
    entry.length = entry.header.sync = number;
    entry.payload_length = number % 3 == 0 ? wire::kAppendSize : 0;
    std::memset(entry.payload, static_cast<int>(number % 251), sizeof entry.payload);
  };
  const auto is = [](const auto& entry, std::uint32_t number) {
    const auto byte = number % 251;
    return entry.length == number && entry.header.sync == number &&
           (entry.payload_length != 0) == (number % 3 == 0) &&
           (entry.payload_length == 0 || (entry.payload[0] == byte && entry.payload[63] == byte));
  };
  std::uint32_t wrong = 0;  // of the Node's thread
  std::thread other([&] {
    for (std::uint32_t number = 0; number < kAll;) {
      SendEntry request{};
      if (!node.peek(request)) {
        std::this_thread::yield();
        continue;
      }
      NodeChannel::Look look{};
      if (!node.look(look) || look.length != number || !is(request, number)) ++wrong;
      ReceivedEntry header{};
      fill(header, number);
      while (!node.deliver(header, Place::kSlot)) std::this_thread::yield();
      node.skip();
      if (++number % 5 != 1) node.publish_taken();  // once for two, now and then
    }
  });
  std::uint32_t sent = 0, received = 0, mixed_up = 0;
  while (received < kAll) {
    SendEntry request{};
    for (auto burst = 1 + received % 7; sent < kAll && burst > 0; ++sent, --burst) {
      fill(request, sent);
      if (!user.send(request)) break;
    }
    ReceivedEntry header{};
    for (; user.receive(header); ++received) mixed_up += is(header, received) ? 0 : 1;
    std::this_thread::yield();
  }
  other.join();
  EXPECT_EQ(wrong, 0U);
  EXPECT_EQ(mixed_up, 0U);
}

}  // namespace
}  // namespace stp::test
