// SPDX-License-Identifier: BSD-3-Clause
// What an operator allows to be on its way is what the programs of a daemon get.
#include <chrono>

#include "tests/host/eventually.h"
#include "tests/stpd/program.h"
#include "tests/stpd/served_pair.h"

namespace stp::stpd {
namespace {

constexpr std::size_t kBlock = std::size_t{1} << 14;

class Granted : public testing::TestWithParam<std::pair<const char*, std::uint64_t>> {
 protected:
  // Memory of `side` that its peer may write to: the Mx.
  static std::uint16_t receive_memory(Side& side, const ipc::SharedMemory& memory) {
    auto map = host::request_for(ipc::RequestKind::kMap);
    map.endpoint = side.endpoint;
    map.direction = static_cast<std::uint32_t>(Direction::kReceive);
    map.piece_count = map.segment_count = 1;
    map.pieces[0].length = map.segments[0].length = memory.size();
    EXPECT_EQ(side.client.ask(map, std::array{memory.fd()}), 0);
    auto mx = host::request_for(ipc::RequestKind::kAllocMx);
    mx.region = side.client.reply.region;
    mx.permissions = permit::kData;
    EXPECT_EQ(side.client.ask(mx), 0);
    return static_cast<std::uint16_t>(side.client.reply.mx);
  }
  static void connect(Side& receiver, Side& sender) {
    ASSERT_EQ(receiver.client.ask(ipc::RequestKind::kListen, receiver.endpoint), 0);
    ASSERT_EQ(sender.client.ask(ipc::RequestKind::kConnect, sender.endpoint), 0);
    sender.take_channel();
    const auto accepted = [&] {
      return receiver.client.ask(ipc::RequestKind::kAccept, receiver.endpoint) == 0;
    };
    ASSERT_TRUE(host::eventually(accepted));
    receiver.take_channel();
  }
  // CTS for three Blocks, handed over together.
  static void grant(Side& side, std::uint16_t mx) {
    for (std::uint32_t id = 1; id <= 3; ++id) {
      SendEntry cts{};
      cts.header.op_flags = wire::op_flags(wire::Op::kClearToSend);
      cts.header.param = 14;
      cts.header.mx = mx;
      cts.header.d_id = id;
      cts.header.s_id = 1'000 + id;
      ASSERT_TRUE(side.channel.send(cts));
    }
    side.ring();
  }
  static std::uint64_t counter(Side& side, const std::string& name) {
    auto request = host::request_for(ipc::RequestKind::kStats);
    while (side.client.ask(request) == 0 && name != side.client.reply.text) ++request.index;
    return side.client.reply.value;
  }

  test::TemporaryDirectory directory;
};

TEST_P(Granted, IsWhatTheOperatorSays) {
  const auto path = directory.path() + "/stpd.sock";
  test::Program stpd({STPD_PATH, "--link", "loop,mac=02:00:00:00:00:01", "--socket", path,
                      "--granted", GetParam().first});
  ASSERT_TRUE(stpd.says("stpd: ready\n")) << stpd.output();
  Side receiver(path), sender(path);
  connect(receiver, sender);
  const auto memory = made_memory(kBlock);
  grant(receiver, receive_memory(receiver, *memory));
  // Held or not, all of them leave in the end: nothing ever comes of the first.
  std::uint32_t arrived = 0;
  ReceivedEntry cts;
  ASSERT_TRUE(
      host::eventually([&] { return (arrived += sender.channel.receive(cts) ? 1 : 0) == 3; }));
  EXPECT_EQ(counter(receiver, "cts_held"), GetParam().second);
}

INSTANTIATE_TEST_SUITE_P(Bounds, Granted,
                         testing::Values(std::pair{"16KiB", 2}, std::pair{"32KiB", 1},
                                         std::pair{"0", 0}));

}  // namespace
}  // namespace stp::stpd
