// SPDX-License-Identifier: BSD-3-Clause
// Messages that wait for receives: which of them a receive gets, and what it costs to find it.
#include "libst/libfabric/receives.h"

#include <gtest/gtest.h>

#include <chrono>
#include <ctime>
#include <list>
#include <random>

namespace stp::fi::receives_test {
namespace {

Address address(std::uint64_t host) {
  return Address::of(0x0a000001 + static_cast<std::uint32_t>(host), 4000);
}

Message message(std::uint64_t host, std::uint64_t tag, std::uint64_t number, bool tagged = true) {
  Message made;
  made.source = address(host);
  made.head = {.tag = tag, .data = number, .flags = tagged ? kTagged : 0U};
  return made;
}

Receive receive(std::uint64_t tag, std::uint64_t ignore = 0) {
  Receive made;
  made.tagged = true;
  made.tag = tag;
  made.ignore = ignore;
  return made;
}

// What one gets that looks at all messages in their order.
std::optional<std::uint64_t> oldest(const std::list<Message>& all, const Receive& receive) {
  for (const auto& each : all)
    if (fits(receive, each)) return each.head.data;
  return std::nullopt;
}

class Sender : public Source {
 public:
  void pull(const Message& /*message*/, Receive&& /*receive*/) override {}
  void done_with(Message& /*message*/) override {}
};

// By the dice: few and many messages, with and without tags, receives for some senders and tags.
TEST(EarlyMessages, GoToReceivesInTheirOrder) {
  std::mt19937_64 random(1);
  const auto any = [&](std::uint64_t below) { return random() % below; };
  for (const auto& [tagged, shift] :
       {std::pair{true, 0}, std::pair{true, 58}, std::pair{false, 0}}) {
    Early early;
    std::list<Message> all;
    for (std::uint64_t number = 0; number < 4'000; ++number) {
      const bool fills = number / 500 % 2 == 0;  // then they become fewer
      if (any(3) < (fills ? 2U : 1U)) {
        const auto host = any(3), tag = any(40) << shift | any(2);
        early.add(message(host, tag, number, tagged));
        all.push_back(message(host, tag, number, tagged));
        continue;
      }
      auto wanted = receive(any(41) << shift | any(2), any(2) == 0 ? 0 : any(64) << shift);
      wanted.tagged = tagged;
      if (any(2) == 0) wanted.source = address(any(4));
      const auto expected = oldest(all, wanted);
      const auto* const found = early.find(wanted);
      ASSERT_EQ(found != nullptr, expected.has_value());
      if (expected) {
        ASSERT_EQ(found->head.data, *expected);
      }
      if (any(4) == 0) continue;
      const auto got = early.take(wanted);
      ASSERT_EQ(got.has_value(), expected.has_value());
      if (!expected) continue;
      ASSERT_EQ(got->head.data, *expected);
      all.remove_if([&](const Message& each) { return each.head.data == *expected; });
      ASSERT_EQ(early.empty(), all.empty());
    }
  }
}

// Whoever ends takes along what it has announced, and leaves what it has brought.
TEST(EarlyMessages, OfAConnectionThatEndsAreThoseThatItHasBrought) {
  for (const std::uint64_t each : {std::uint64_t{4}, std::uint64_t{Early::kFew}}) {
    Matching matching;
    Sender one, other;
    const auto host = std::make_shared<OfHost>();
    for (std::uint64_t i = 0; i < each; ++i)
      for (auto* const from : {&one, &other}) {
        auto made = message(from == &one ? 1 : 2, i, 0);
        made.from = from;
        made.announced = i % 2 == 0;
        matching.add(std::move(made));
      }
    matching.forget(one, host);
    EXPECT_EQ(host->left, each / 2 * kCostOfMessage);
    EXPECT_EQ(matching.left_bytes(), host->left);
    for (std::uint64_t i = 0; i < each; ++i) {
      auto wanted = receive(i);
      wanted.source = address(1);
      EXPECT_EQ(matching.take_message(wanted).has_value(), i % 2 == 1);
      EXPECT_TRUE(matching.take_message(receive(i)).has_value());
    }
    EXPECT_EQ(host->left, 0U);
  }
}

// Processor time of this thread.
std::chrono::nanoseconds time_now() {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec);
}

// A peer leaves messages that nobody wants. Looking at all of them takes a thousand times as long
// as at a few.
TEST(EarlyMessages, ThatNobodyWantsCostReceivesLittle) {
  constexpr std::uint64_t kMany = 32'000, kReceives = 500;
  // `from`: a receive names that sender.
  const auto time_to_look = [](std::uint64_t messages, std::uint64_t from, std::uint64_t ignore) {
    Early early;
    for (std::uint64_t i = 0; i < messages; ++i) early.add(message(1, i / 2, i));
    const auto look = [&](std::uint64_t i) {
      // Some want any tag of a few, as programs of MPI do.
      auto wanted = receive(std::uint64_t{1} << 40 | (ignore != 0 ? i % 4 << 20 : i), ignore);
      if (from != 0) wanted.source = address(from);
      EXPECT_EQ(early.find(wanted), nullptr);
    };
    for (std::uint64_t i = 0; i < 4; ++i) look(i);  // each of them looks at all once
    const auto began = time_now();
    for (std::uint64_t i = 0; i < kReceives; ++i) look(i);
    return time_now() - began;
  };
  for (const auto from : {0U, 1U, 2U})
    for (const std::uint64_t ignore :
         {std::uint64_t{0}, std::uint64_t{0xffff}, std::uint64_t{3} << 62}) {
      const auto few = time_to_look(Early::kFew, from, ignore);
      EXPECT_LT(time_to_look(kMany, from, ignore), 100 * few)
          << "of sender " << from << " (0: any), ignoring " << ignore;
    }
}

// Programs of MPI name the sender, and ignore bits with each receive.
TEST(EarlyMessages, OfOneSenderWithOneTagAreFoundAtOnce) {
  constexpr std::uint64_t kMany = 20'000, kReceives = 500;
  const auto time_to_take = [](std::uint64_t messages) {
    Early early;
    for (std::uint64_t i = 0; i < messages; ++i) early.add(message(1, 7, i));
    auto wanted = receive(7, std::uint64_t{3} << 62);
    wanted.source = address(1);
    const auto began = time_now();
    for (std::uint64_t i = 0; i < kReceives; ++i) EXPECT_EQ(early.take(wanted)->head.data, i);
    return time_now() - began;
  };
  EXPECT_LT(time_to_take(kMany), 10 * time_to_take(2 * kReceives));
}

// A receive of any tag takes them one by one; one that few fit, behind many that do not, as well.
TEST(EarlyMessages, OfOneSenderWithAnyNumberOfTagsAreFoundAtOnce) {
  constexpr std::uint64_t kMany = 20'000, kReceives = 500, kHalf = std::uint64_t{1} << 40;
  for (const auto& [tag, ignore] :
       {std::pair{std::uint64_t{0}, ~std::uint64_t{0}}, std::pair{kHalf, kHalf - 1}}) {
    const auto time_to_take = [&, tag = tag, ignore = ignore](std::uint64_t messages) {
      Early early;
      for (std::uint64_t i = 0; i < messages; ++i)
        early.add(message(1, i < messages / 2 ? i : kHalf | i, i));
      auto wanted = receive(tag, ignore);
      wanted.source = address(1);
      EXPECT_NE(early.find(wanted), nullptr);  // looks at all that do not fit, once
      const auto began = time_now();
      for (std::uint64_t i = 0; i < kReceives; ++i)
        EXPECT_EQ(early.take(wanted)->head.data, i + (tag == 0 ? 0 : messages / 2));
      return time_now() - began;
    };
    EXPECT_LT(time_to_take(kMany), 10 * time_to_take(2 * kReceives)) << "tag " << tag;
  }
}

// A connection that may keep no more in copies looks for one of them after each receive.
TEST(EarlyMessages, ThatHaveABufferAreFoundAtOnce) {
  constexpr std::uint64_t kMany = 20'000, kTimes = 500;
  const auto time_to_copy = [](std::uint64_t messages) {
    Early early;
    Sender one, other;
    RxBuffer buffer;
    for (std::uint64_t i = 0; i < messages; ++i) early.add(message(1, 7, i));
    for (auto* const from : {&other, &one}) {
      auto made = message(1, 7, messages);
      made.from = from;
      made.buffer = &buffer;
      early.add(std::move(made));
    }
    const auto began = time_now();
    for (std::uint64_t i = 0; i < kTimes; ++i) {
      auto* const found = early.take_from_buffer(one);
      EXPECT_EQ(found->from, &one);
      copy_out(*found);
      EXPECT_EQ(early.take_from_buffer(one), nullptr);
      auto made = message(1, 7, i);
      made.from = &one;
      made.buffer = &buffer;
      early.add(std::move(made));
    }
    return time_now() - began;
  };
  EXPECT_LT(time_to_copy(kMany), 10 * time_to_copy(Early::kFew));
}

// Addresses are what peers say: one may leave any number of messages under that of another, and
// come and go itself.
TEST(EarlyMessages, ThatOthersLeaveUnderItsAddressCostWhoGoesLittle) {
  constexpr std::uint64_t kMany = 20'000, kTimes = 500;
  const auto time_to_go = [](std::uint64_t messages) {
    Matching matching;
    Sender one, other;
    RxBuffer buffer;
    const auto host = std::make_shared<OfHost>();
    for (std::uint64_t i = 0; i < messages; ++i) {
      auto made = message(1, i, i);
      made.from = &other;
      made.buffer = &buffer;
      matching.add(std::move(made));
    }
    const auto began = time_now();
    for (std::uint64_t i = 0; i < kTimes; ++i) {
      auto made = message(1, 7, i);
      made.from = &one;
      made.buffer = &buffer;
      matching.add(std::move(made));
      EXPECT_NE(matching.take_from_buffer(one), nullptr);
      EXPECT_EQ(matching.take_from_buffer(one), nullptr);
      matching.forget(one, host);
    }
    EXPECT_EQ(host->left, kTimes * kCostOfMessage);
    return time_now() - began;
  };
  EXPECT_LT(time_to_go(kMany), 10 * time_to_go(Early::kFew));
}

}  // namespace
}  // namespace stp::fi::receives_test
