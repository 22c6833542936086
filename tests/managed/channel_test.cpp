// SPDX-License-Identifier: BSD-3-Clause
#include "libst/managed/channel.h"

#include <cerrno>

#include "stp/wire/operation.h"
#include "tests/managed/scripted_link.h"

namespace stp::managed {
namespace {

constexpr std::uint32_t kNumber = 70;

class ScriptedChannel : public OnScriptedLink {
 protected:
  void take() {
    client::Reply made{};
    made.vc = 42;
    made.channel = kNumber;
    auto memory = service::SharedMemory::create("stp-channel", ScriptedLink::kChannel.size());
    node = NodeChannel(memory->data(), ScriptedLink::kChannel);
    channel.take(made, std::move(memory));
  }
  // Whether the bell of the channel has been rung since the last call.
  bool rung() const {
    bool any = false;
    client::ClientPage& page = link->page();
    service::Doorbells::Progress progress;
    page.bells.collect(service::kMaxChannels, progress,
                       [&any](std::uint32_t bell) { any |= bell == kNumber; });
    return any;
  }

  Channel channel{*link};
  NodeChannel node;
  Sequencer sequencer{SequencerConfig{}};
};

TEST_F(ScriptedChannel, OneThatWasNotMadeHoldsNothing) {
  EXPECT_FALSE(channel.is_taken());
  EXPECT_TRUE(channel.let_go());
  take();
  EXPECT_TRUE(channel.is_taken());
  EXPECT_EQ(channel.number(), kNumber);
  EXPECT_TRUE(node.gathered()) << "the domain looks at all of its channels at once";
  channel.leave();
  EXPECT_FALSE(node.gathered());
}

TEST_F(ScriptedChannel, RequestsOfTheSequencerReachTheNodeInOrderAndOneBellRings) {
  take();
  EXPECT_FALSE(channel.send(sequencer, kSecond));
  EXPECT_FALSE(rung()) << "nothing to send";
  for (std::uint32_t i = 1; i <= 3; ++i) sequencer.notify(i);
  EXPECT_TRUE(channel.send(sequencer, kSecond));
  EXPECT_TRUE(rung());
  EXPECT_EQ(link->rings, 0U) << "the caller rings for several channels";
  SendEntry entry;
  unsigned got = 0;
  for (; node.peek(entry); node.pop()) ++got;
  EXPECT_GT(got, 0U);
  EXPECT_FALSE(channel.send(sequencer, kSecond)) << "each once";
}

// protocol: 13.13
TEST_F(ScriptedChannel, TheSequencerLearnsWhichBlocksSuitThePath) {
  take();
  node.suggest_block(12);
  channel.receive(sequencer, kSecond);
  ASSERT_EQ(sequencer.write(1, {}, 100), 0);
  ASSERT_TRUE(channel.send(sequencer, kSecond));
  SendEntry entry;
  ASSERT_TRUE(node.peek(entry));
  EXPECT_EQ(wire::decode_as<wire::RequestToSend>(entry.header).cts_req, 64U) << "short ones";
}

TEST_F(ScriptedChannel, LetGoOnceTheNodeUsesNoMemoryForThemAnyMore) {
  take();
  EXPECT_TRUE(channel.let_go()) << "nothing was sent";
  sequencer.notify(1);
  ASSERT_TRUE(channel.send(sequencer, kSecond));
  EXPECT_FALSE(channel.let_go());
  SendEntry entry;
  while (node.peek(entry)) node.pop();
  EXPECT_FALSE(channel.let_go()) << "a frame may still read";
  node.complete(node.taken());
  EXPECT_TRUE(channel.let_go());
}

TEST_F(ScriptedChannel, LetGoAtTheEndOfTheChannelOrOfTheService) {
  take();
  sequencer.notify(1);
  ASSERT_TRUE(channel.send(sequencer, kSecond));
  node.set_state(ChannelState::kPeerClosed);
  EXPECT_FALSE(channel.let_go());
  link->lost = -ENODEV;
  EXPECT_TRUE(channel.let_go());
  link->lost = 0;
  EXPECT_FALSE(channel.let_go());
  node.set_state(ChannelState::kClosed);
  EXPECT_TRUE(channel.let_go());
}

TEST_F(ScriptedChannel, TheErrorIsThatOfTheNode) {
  take();
  node.set_state(ChannelState::kFailed, -ETIMEDOUT);
  EXPECT_EQ(channel.state(), ChannelState::kFailed);
  EXPECT_EQ(channel.error(), -ETIMEDOUT);
}

TEST_F(ScriptedChannel, CloseSaysHowAndWhy) {
  take();
  service::WireOption why{};
  why.length = 1;
  why.bytes[0] = std::byte{5};
  for (const bool at_once : {true, false}) {
    channel.close(at_once, why);
    const auto& request = link->requests.back();
    EXPECT_EQ(request.kind, Kind::kClose);
    EXPECT_EQ(request.vc, 42U);
    EXPECT_EQ(request.at_once, at_once ? 1U : 0U);
    EXPECT_EQ(request.option.bytes[0], std::byte{5});
  }
}

}  // namespace
}  // namespace stp::managed
