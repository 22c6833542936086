// SPDX-License-Identifier: BSD-3-Clause
// Peers that disappear: their program is killed, or their frames no longer arrive.
#include <csignal>

#include "tests/managed/rough_link.h"
#include "tests/stpd/program.h"

namespace stp::test {
namespace {

constexpr std::uint64_t kReceive = 1, kSend = 2, kRead = 3;

// Posts one operation of each kind that waits for the peer's program.
void post_everything(const Side& side, stm_memory_t memory, const Buffer& bytes) {
  ASSERT_EQ(stm_receive(side.connection, kReceive, memory, bytes.data(), 100), 0);
  ASSERT_EQ(stm_send(side.connection, kSend, 0, 0, memory, bytes.data(), bytes.size()), 0);
  ASSERT_EQ(stm_read(side.connection, kRead, 0, memory, bytes.data(), 100), 0);
}

TEST(LostPeers, AProgramThatIsKilledEndsItsConnections) {
  const Daemon daemon;
  const UseLink link(daemon.link());
  Program peer({MANAGED_PEER});
  ASSERT_TRUE(peer.says("listening")) << peer.output();
  Side client;
  const auto attr = client.attr(9);
  ASSERT_EQ(stm_connection_create(client.domain, &attr, &client.connection), 0);
  ASSERT_EQ(stm_connect(client.connection, ":3000", -1, nullptr, 0), 0);
  ASSERT_EQ(client.next(STM_CONNECTED).status, 0);
  ASSERT_TRUE(peer.says("connected")) << peer.output();
  const Buffer mine(1 << 16);
  const auto memory = client.memory(mine.data(), mine.size());
  post_everything(client, memory, mine);
  peer.signal(SIGKILL);
  for (const auto context : {kReceive, kSend, kRead})
    EXPECT_EQ(client.completion(context).status, -ENOTCONN);
  EXPECT_EQ(client.next(STM_DISCONNECTED).context, 9U);
  EXPECT_EQ(stm_memory_release(memory), 0);
}

TEST(LostPeers, OneThatHasFallenSilentIsGivenUp) {
  const RoughLink link;
  TwoSides sides;
  sides.establish();
  const Buffer mine(1 << 16);
  auto& client = sides.client;
  const auto memory = client.memory(mine.data(), mine.size());
  link.port->cut = true;
  post_everything(client, memory, mine);
  for (const auto context : {kReceive, kSend, kRead})
    EXPECT_EQ(client.completion(context).status, -ETIMEDOUT);
  EXPECT_EQ(client.next(STM_FAILED).status, -ETIMEDOUT);
  EXPECT_EQ(stm_memory_release(memory), 0);
}

// Even if the timeout is shorter than the time to detect it.
TEST(LostPeers, AWaitThatIsShortTellsThatTheDaemonHasEnded) {
  Daemon daemon;
  const UseLink link(daemon.link());
  Side client;
  constexpr std::int64_t kShort = 1'000;
  stm_event_t event{};
  EXPECT_EQ(stm_queue_wait(client.queue, 1, &event, 1, kShort), -EWOULDBLOCK);
  daemon.stop();
  auto result = -EWOULDBLOCK;
  for (int i = 0; i < 20'000 && result == -EWOULDBLOCK; ++i)
    result = stm_queue_wait(client.queue, 1, &event, 1, kShort);
  EXPECT_LT(result, 0);
  EXPECT_NE(result, -EWOULDBLOCK);
}

}  // namespace
}  // namespace stp::test
