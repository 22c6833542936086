// SPDX-License-Identifier: BSD-3-Clause
// Messages and transfers over a link that loses, reorders and duplicates frames.
#include <array>
#include <string>

#include "tests/managed/rough_link.h"

namespace stp::test {
namespace {

// The memory of both sides of a connection.
struct Memories {
  explicit Memories(TwoSides& sides, std::size_t size)
      : mine(size, 3),
        there(size, 0, false),
        client(sides.client.memory(mine.data(), size)),
        server(sides.server.memory(there.data(), size,
                                   STM_REMOTE_READ | STM_REMOTE_WRITE | STM_REMOTE_ATOMIC)) {}
  Buffer mine, there;
  stm_memory_t client, server;
};

stm_domain_attr_t attributes(std::uint32_t checksum, std::uint32_t buffer_log2) {
  stm_domain_attr_t attr{};
  attr.size = sizeof attr;
  attr.checksum = checksum;
  attr.buffer_log2 = buffer_log2;
  return attr;
}

class Rough : public testing::TestWithParam<std::uint32_t> {
 protected:
  static constexpr std::size_t kSize = std::size_t{1} << 19;
  Rough() { sides.establish(); }

  RoughLink link{{.lost = 20, .late = 50, .doubled = 10}};
  stm_domain_attr_t attr = attributes(1, GetParam());
  TwoSides sides{&attr};
  Memories memory{sides, kSize};
};
INSTANTIATE_TEST_SUITE_P(BufferLog2, Rough, testing::Values(12, 13, 16));

TEST_P(Rough, MessagesOfAllLengthsArriveWholeAndInOrder) {
  constexpr std::uint64_t kMessages = 60;
  const auto length = [](std::uint64_t i) { return i * 7'919 % 40'000; };
  const auto place = [](std::uint64_t i) { return i % 13 * 40'000; };
  for (std::uint64_t i = 0; i < kMessages; ++i)
    ASSERT_EQ(stm_send(sides.client.connection, i, 0, static_cast<std::uint32_t>(i), memory.client,
                       memory.mine.data() + i, length(i)),
              0);
  for (std::uint64_t i = 0; i < kMessages; ++i) {
    auto* const to = memory.there.data() + place(i);
    ASSERT_EQ(stm_receive(sides.server.connection, 100 + i, memory.server, to, 40'000), 0);
    const auto got = sides.server.completion(100 + i);
    ASSERT_EQ(got.status, 0);
    ASSERT_EQ(got.tag, i);
    ASSERT_EQ(got.length, length(i));
    ASSERT_EQ(std::memcmp(to, memory.mine.data() + i, length(i)), 0);
  }
  for (std::uint64_t i = 0; i < kMessages; ++i) EXPECT_EQ(sides.client.completion(i).status, 0);
  EXPECT_GT(link.port->lost, 0U);
}

TEST_P(Rough, PutsGetsAndCountsAreExact) {
  stm_region_t region = nullptr;
  stm_remote_t remote{};
  const auto all = STM_REMOTE_READ | STM_REMOTE_WRITE | STM_REMOTE_ATOMIC;
  ASSERT_EQ(
      stm_region_open(memory.server, memory.there.data(), kSize, all, nullptr, 0, &region, &remote),
      0);
  const auto c = sides.client.connection;
  constexpr std::size_t kPart = 100'001, kSecond = 200'000;
  ASSERT_EQ(stm_put(c, 1, 0, memory.client, memory.mine.data() + 5, kPart, remote.key, 9), 0);
  ASSERT_EQ(sides.client.completion(1).status, 0);
  EXPECT_EQ(std::memcmp(memory.there.data() + 9, memory.mine.data() + 5, kPart), 0);
  ASSERT_EQ(stm_get(c, 2, 0, memory.client, memory.mine.data() + kSecond, kPart, remote.key, 9), 0);
  ASSERT_EQ(sides.client.completion(2).status, 0);
  EXPECT_EQ(std::memcmp(memory.mine.data() + kSecond, memory.mine.data() + 5, kPart), 0);
  auto* const counter = reinterpret_cast<std::uint64_t*>(memory.there.data() + kSecond);
  *counter = 0;
  constexpr std::uint64_t kCounts = 100;
  for (std::uint64_t i = 0; i < kCounts; ++i)
    ASSERT_EQ(stm_fetch(c, 10 + i, 0, STM_FETCH_ADD, 3, 0, memory.client,
                        memory.mine.data() + 8 * i, remote.key, kSecond),
              0);
  for (std::uint64_t i = 0; i < kCounts; ++i) ASSERT_EQ(sides.client.completion(10 + i).status, 0);
  EXPECT_EQ(*counter, 3 * kCounts) << "each exactly once";
}

TEST(RoughMessages, AShortOneThatOvertakesALongOneIsToldAfterIt) {
  const RoughLink link;
  TwoSides sides;
  sides.establish();
  const Memories memory(sides, 1 << 19);
  for (std::uint64_t const context : {20, 21})
    ASSERT_EQ(stm_receive(sides.server.connection, context, memory.server, memory.there.data(),
                          memory.there.size()),
              0);
  sides.client.await_eager();
  link.port->loses_long_frames = true;
  const auto c = sides.client.connection;
  ASSERT_EQ(stm_send(c, 1, 0, 0, memory.client, memory.mine.data(), memory.mine.size()), 0);
  ASSERT_EQ(stm_send(c, 2, 0, 0, memory.client, memory.mine.data(), 10), 0);
  ASSERT_EQ(sides.client.completion(2).status, 0);
  EXPECT_TRUE(sides.server.quiet());
  link.port->loses_long_frames = false;
  for (std::uint32_t const message : {1, 2}) {
    const auto got = sides.server.next(STM_RECEIVE);
    EXPECT_EQ(got.status, 0);
    EXPECT_EQ(got.message, message);
    EXPECT_EQ(got.context, 19U + message);
  }
}

TEST(RoughMessages, EachCancelOfAContextEndsAnotherReceiveWhoseMessageIsArriving) {
  const RoughLink link;
  TwoSides sides;
  sides.establish();
  const Memories memory(sides, 1 << 19);
  const auto c = sides.client.connection, s = sides.server.connection;
  for (std::uint64_t const context : {20, 20, 21})
    ASSERT_EQ(stm_receive(s, context, memory.server, memory.there.data(), memory.there.size()), 0);
  sides.client.await_eager();
  link.port->loses_long_frames = true;
  for (std::uint64_t const message : {1, 2})
    ASSERT_EQ(stm_send(c, message, 0, 0, memory.client, memory.mine.data(), memory.mine.size()), 0);
  ASSERT_EQ(stm_send(c, 3, 0, 0, memory.client, memory.mine.data(), 10), 0);
  ASSERT_EQ(sides.client.completion(3).status, 0);
  ASSERT_TRUE(sides.server.quiet());
  for (int i = 0; i < 2; ++i) EXPECT_EQ(stm_cancel(s, 20), 0);
  for (int i = 0; i < 2; ++i) EXPECT_EQ(sides.server.completion(20).status, -ECANCELED);
  EXPECT_EQ(sides.server.completion(21).status, 0);
  for (std::uint64_t const message : {1, 2})
    EXPECT_EQ(sides.client.completion(message).status, -ECANCELED);
}

// Its private data make the request a long frame, and long frames are lost.
TEST(RoughMessages, WhatTroublesTheLinkIsNamedWhereSomethingTimesOut) {
  const RoughLink link;
  TwoSides sides;
  sides.listen();
  const auto attr = sides.client.attr();
  ASSERT_EQ(stm_connection_create(sides.client.domain, &attr, &sides.client.connection), 0);
  link.port->loses_long_frames = true;
  const std::array<char, 1'024> data{};
  ASSERT_EQ(stm_connect(sides.client.connection, ":3000", 300'000, data.data(), data.size()), 0);
  stm_event_t event{};
  ASSERT_EQ(stm_queue_wait(sides.client.queue, 1, &event, 1, 20'000'000), 1);
  EXPECT_EQ(event.kind, unsigned{STM_FAILED});
  ASSERT_EQ(event.status, -ETIMEDOUT);
  const std::string text = st_strerror(event.status);
  EXPECT_NE(text.find(link.port->trouble()), std::string::npos) << text;
  EXPECT_EQ(stm_queue_poll(sides.client.queue, &event, 1), 0);
  EXPECT_EQ(std::string(st_strerror(-ETIMEDOUT)).find("link"), std::string::npos) << "of that call";
}

TEST(RoughMessages, ManyGoBothWaysAtOnceIntoPools) {
  const RoughLink link({.lost = 10, .late = 30, .doubled = 5});
  TwoSides sides;
  constexpr std::uint64_t kEach = 400;
  constexpr std::size_t kMost = 9'000, kWaiting = 16;
  const Memories memory(sides, 1 << 18);
  stm_pool_t pools[2]{};
  Side* const both[2]{&sides.client, &sides.server};
  unsigned char* const places[2]{memory.mine.data(), memory.there.data()};
  const stm_memory_t memories[2]{memory.client, memory.server};
  const Buffer out(1 << 16, 8);
  stm_memory_t sources[2]{};
  stm_connection_attr_t attrs[2]{};
  for (std::size_t n = 0; n < 2; ++n) {
    ASSERT_EQ(stm_pool_create(both[n]->domain, kWaiting, &pools[n]), 0);
    for (std::size_t i = 0; i < kWaiting; ++i)
      ASSERT_EQ(stm_pool_post(pools[n], i, memories[n], places[n] + i * kMost, kMost), 0);
    sources[n] = both[n]->memory(out.data(), out.size(), STM_LOCAL_READ);
    attrs[n] = both[n]->attr(n);
    attrs[n].pool = pools[n];
  }
  sides.listen();
  ASSERT_EQ(stm_connection_create(both[0]->domain, &attrs[0], &both[0]->connection), 0);
  ASSERT_EQ(stm_connect(both[0]->connection, ":3000", -1, nullptr, 0), 0);
  both[1]->connection = both[1]->next(STM_REQUEST).connection;
  ASSERT_EQ(stm_accept(both[1]->connection, &attrs[1], nullptr, 0), 0);
  for (auto* const side : both) ASSERT_EQ(side->next(STM_CONNECTED).status, 0);

  const auto length = [](std::uint64_t i) { return i * 2'111 % kMost; };
  for (std::uint64_t i = 0; i < kEach; ++i)
    for (std::size_t n = 0; n < 2; ++n)
      ASSERT_EQ(
          stm_send(both[n]->connection, 1'000 + i, 0, 0, sources[n], out.data() + i, length(i)), 0);
  for (std::uint64_t i = 0; i < kEach; ++i)
    for (std::size_t n = 0; n < 2; ++n) {
      const auto got = both[n]->next(STM_RECEIVE);
      ASSERT_EQ(got.status, 0);
      ASSERT_EQ(got.message, i + 1);
      ASSERT_EQ(got.length, length(i));
      auto* const place = places[n] + got.context * kMost;
      ASSERT_EQ(std::memcmp(place, out.data() + i, length(i)), 0);
      ASSERT_EQ(stm_pool_post(pools[n], got.context, memories[n], place, kMost), 0);
    }
  for (std::uint64_t i = 0; i < kEach; ++i)
    for (auto* const side : both) ASSERT_EQ(side->completion(1'000 + i).status, 0);
}

}  // namespace
}  // namespace stp::test
