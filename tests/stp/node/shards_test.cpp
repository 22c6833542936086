// SPDX-License-Identifier: BSD-3-Clause
// Several Nodes behind one address: the shard of a frame, of a listener and of a Port.
#include "stp/node/shards.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <set>

#include "stp/wire/frame.h"
#include "stp/wire/operations.h"
#include "tests/stp/node/two_nodes.h"

namespace stp::test {
namespace {

constexpr MacAddr kOurs{{2, 0, 0, 0, 0, 1}}, kPeer{{2, 0, 0, 0, 0, 2}};
constexpr unsigned kHere = 2;
using Frame = std::vector<std::byte>;

Frame frame_of(wire::Header header, bool snap = false,
               std::optional<std::uint16_t> vlan = std::nullopt) {
  Frame frame(2'000);
  frame.resize(wire::emit({kOurs, kPeer, vlan, snap}, header, {}, {}, frame));
  return frame;
}

wire::Header nop(std::uint16_t port) {
  wire::Header header;
  header.op_flags = wire::op_flags(wire::Op::kNoOperation);
  header.d_port = port;
  return header;
}

wire::Header request(std::uint32_t uport) {
  auto header = wire::to_header(wire::RequestConnection{
      .i_slots = 8, .i_bufsize = 12, .i_key = 7, .i_max_stu = 9, .r_uport = uport});
  header.d_port = 5;  // ignored
  return header;
}

TEST(Shards, a_frame_is_of_the_shard_that_has_its_port_in_each_encapsulation) {
  const Shards shards(4);
  for (std::uint16_t port = 1; port < 40; ++port) {
    EXPECT_EQ(shards.owner_of(frame_of(nop(port)), kHere), port % 4U);
    EXPECT_EQ(shards.owner_of(frame_of(nop(port), true), kHere), port % 4U);
    EXPECT_EQ(shards.owner_of(frame_of(nop(port), false, 7), kHere), port % 4U);
    EXPECT_EQ(shards.owner_of(frame_of(nop(port), true, 7), kHere), port % 4U);
  }
}

TEST(Shards, a_request_goes_where_somebody_listens) {
  Shards shards(4);
  EXPECT_EQ(shards.owner_of(frame_of(request(3000)), kHere), kHere) << "nobody listens";
  ASSERT_TRUE(shards.listen(3000, 3));
  ASSERT_TRUE(shards.listen(3001, 1));
  EXPECT_EQ(shards.owner_of(frame_of(request(3000)), kHere), 3U);
  EXPECT_EQ(shards.owner_of(frame_of(request(3001)), kHere), 1U);
}

TEST(Shards, one_shard_at_a_time_listens_on_a_port) {
  Shards shards(2);
  ASSERT_TRUE(shards.listen(3000, 0));
  EXPECT_FALSE(shards.listen(3000, 1));
  EXPECT_FALSE(shards.listen(3000, 0));
  shards.unlisten(3000, 0);
  EXPECT_EQ(shards.listener(3000), 0U) << "requests that come again find what was answered";
  EXPECT_TRUE(shards.listen(3000, 1));
  EXPECT_EQ(shards.listener(3000), 1U);
}

TEST(Shards, those_that_listened_are_forgotten_in_the_end_and_those_that_listen_never) {
  Shards shards(2);
  ASSERT_TRUE(shards.listen(1, 1));
  for (std::uint32_t uport = 10; uport < 10 + Shards::kRemembered + 5; ++uport) {
    ASSERT_TRUE(shards.listen(uport, 1));
    shards.unlisten(uport, 1);
  }
  EXPECT_EQ(shards.listener(14), std::nullopt);
  EXPECT_EQ(shards.listener(15), 1U);
  EXPECT_EQ(shards.listener(1), 1U);
}

TEST(Shards, what_names_nobody_stays_where_it_is) {
  const Shards shards(4);
  EXPECT_EQ(shards.owner_of(frame_of(nop(0)), kHere), kHere);
  const auto whole = frame_of(nop(5));
  for (std::size_t length = 0; length < wire::kEthernetSize + wire::kHeaderSize; ++length)
    EXPECT_EQ(shards.owner_of(Bytes(whole).first(length), kHere), kHere) << length;
  auto other = whole;
  other[12] = std::byte{8};  // IPv4
  EXPECT_EQ(shards.owner_of(other, kHere), kHere);
}

// Four Nodes behind one address.
class Sharded : public ::testing::Test {
 protected:
  Sharded() {
    for (unsigned i = 0; i < 4; ++i) {
      NodeConfig config;
      config.mac = kOurs;
      config.shards = &shards;
      config.shard = i;
      nodes.push_back(std::make_unique<Node>(config, random));
    }
  }
  EndpointId open(unsigned shard, const EndpointConfig& config = {}) {
    EndpointId id = kNoneId;
    EXPECT_EQ(nodes[shard]->open_endpoint(config, id), 0);
    return id;
  }
  std::uint16_t connect(unsigned shard, EndpointId endpoint) {
    channels.push_back(std::make_unique<ChannelMemory>(ChannelGeometry{64, 64}));
    VcId vc = kNoneId;
    auto& node = *nodes[shard];
    EXPECT_EQ(node.connect(endpoint, kPeer, 3000, channels.back()->data(), 0, vc, kSecond), 0);
    VcInfo info{};
    EXPECT_EQ(node.vc_info(vc, info), 0);
    return info.local_port;
  }

  Shards shards{4};
  SeededRandom random{1};
  std::vector<std::unique_ptr<ChannelMemory>> channels;
  std::vector<std::unique_ptr<Node>> nodes;
};

// protocol: 5.3
TEST_F(Sharded, each_node_gives_out_ports_of_its_own) {
  std::set<std::uint16_t> ports;
  for (unsigned shard = 0; shard < 4; ++shard) {
    const auto endpoint = open(shard);
    for (unsigned i = 0; i < 300; ++i) {
      const auto port = connect(shard, endpoint);
      EXPECT_EQ(shards.owner_of(port), shard);
      EXPECT_TRUE(ports.insert(port).second) << port;
    }
  }
}

TEST_F(Sharded, a_port_that_is_asked_for_has_to_be_of_the_shard) {
  EndpointId id = kNoneId;
  EXPECT_EQ(nodes[1]->open_endpoint({.port = 4}, id), -EADDRNOTAVAIL);
  EXPECT_EQ(nodes[1]->open_endpoint({.port = 5}, id), 0);
  EXPECT_EQ(nodes[1]->configure(id, {.port = 6}), -EADDRNOTAVAIL);
  EXPECT_EQ(connect(1, id), 5);
}

TEST_F(Sharded, two_nodes_do_not_listen_on_one_port) {
  const auto first = open(0), second = open(3);
  ASSERT_EQ(nodes[0]->listen(first, 3000), 0);
  EXPECT_EQ(nodes[3]->listen(second, 3000), -EADDRINUSE);
  EXPECT_EQ(nodes[3]->listen(second, 3001), 0);
  ASSERT_EQ(nodes[0]->unlisten(first), 0);
  const auto third = open(3);
  EXPECT_EQ(nodes[3]->listen(third, 3000), 0);
  EXPECT_EQ(shards.listener(3000), 3U);
}

TEST_F(Sharded, a_node_that_goes_listens_no_more) {
  ASSERT_EQ(nodes[2]->listen(open(2), 3000), 0);
  nodes[2].reset();
  EXPECT_EQ(nodes[1]->listen(open(1), 3000), 0);
}

}  // namespace
}  // namespace stp::test
