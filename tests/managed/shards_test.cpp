// SPDX-License-Identifier: BSD-3-Clause
// Domains on shards of one link: the choice of the shard, and transfers between shards.
#include <cerrno>
#include <cstdint>
#include <string>
#include <vector>

#include "tests/managed/managed_fixture.h"

namespace stp::test {
namespace {

stm_domain_attr_t on_shard(std::uint32_t shard) {
  stm_domain_attr_t attr{};
  attr.size = sizeof attr;
  attr.link = "loop,queues=3";
  attr.shard = shard;
  return attr;
}

struct Shards {
  std::uint32_t server, client;
};
class ShardsOfADomain : public testing::TestWithParam<Shards> {};

TEST_P(ShardsOfADomain, ReachEachOther) {
  const auto of_server = on_shard(GetParam().server), of_client = on_shard(GetParam().client);
  TwoSides both(&of_server, &of_client);
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

INSTANTIATE_TEST_SUITE_P(Pairs, ShardsOfADomain,
                         testing::Values(Shards{1, 1}, Shards{1, 2}, Shards{3, 1}, Shards{2, 3}),
                         [](const auto& pair) {
                           return std::to_string(pair.param.client) + "To" +
                                  std::to_string(pair.param.server);
                         });

TEST(ShardOfADomain, ThatIsNotThereIsInvalidAndTheTextSaysHowManyThereAre) {
  const auto attr = on_shard(4);
  stm_domain_t domain = nullptr;
  EXPECT_EQ(stm_domain_open(&attr, &domain), -EINVAL);
  EXPECT_NE(std::string(st_strerror(-EINVAL)).find("has 3"), std::string::npos)
      << st_strerror(-EINVAL);
}

}  // namespace
}  // namespace stp::test
