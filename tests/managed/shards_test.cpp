// SPDX-License-Identifier: BSD-3-Clause
// Domains on shards of one link, in the process and through a daemon: which one, and from one to
// another.
#include <cerrno>
#include <cstdint>
#include <string>
#include <vector>

#include "tests/managed/managed_fixture.h"

namespace stp::test {
namespace {

constexpr std::uint32_t kShards = 3;

class ShardsOfADomain : public LibstTest {
 protected:
  ShardsOfADomain() : LibstTest("loop,queues=3") {}
};
STP_BOTH_WAYS(ShardsOfADomain);

stm_domain_attr_t on_shard(std::uint32_t shard) {
  stm_domain_attr_t attr{};
  attr.size = sizeof attr;
  attr.shard = shard;
  return attr;
}

void expect_to_reach_each_other(std::uint32_t of_server, std::uint32_t of_client) {
  const auto on_server = on_shard(of_server), on_client = on_shard(of_client);
  TwoSides both(&on_server, &on_client);
  both.establish();
  auto &server = both.server, &client = both.client;
  constexpr std::size_t kSize = 3'000'000;
  std::vector<unsigned char> from(kSize), to(kSize);
  for (std::size_t i = 0; i < kSize; ++i) from[i] = static_cast<unsigned char>(i * 7 + i / 251);
  auto* const source = client.memory(from.data(), kSize);
  auto* const sink = server.memory(to.data(), kSize);
  ASSERT_EQ(stm_receive(server.connection, 10, sink, to.data(), kSize), 0);
  ASSERT_EQ(stm_send(client.connection, 11, 0, 0, source, from.data(), kSize), 0);
  EXPECT_EQ(client.completion(11).status, 0);
  EXPECT_EQ(server.completion(10).status, 0);
  EXPECT_TRUE(from == to);
}

TEST_P(ShardsOfADomain, ReachEachOther) {
  for (std::uint32_t server = 1; server <= kShards; ++server)
    for (std::uint32_t client = 1; client <= kShards; ++client) {
      SCOPED_TRACE(std::to_string(client) + " to " + std::to_string(server));
      expect_to_reach_each_other(server, client);
    }
}

TEST_P(ShardsOfADomain, OneThatIsNotThereIsInvalidAndTheTextSaysHowManyThereAre) {
  const auto attr = on_shard(kShards + 1);
  stm_domain_t domain = nullptr;
  EXPECT_EQ(stm_domain_open(&attr, &domain), -EINVAL);
  EXPECT_NE(std::string(st_strerror(-EINVAL)).find("has 3"), std::string::npos)
      << st_strerror(-EINVAL);
}

}  // namespace
}  // namespace stp::test
