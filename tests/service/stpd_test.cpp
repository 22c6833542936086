// SPDX-License-Identifier: BSD-3-Clause
// stpd as whoever runs it sees it: its messages, its exit status, what it leaves behind.
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <memory>

#include "libst/service/socket.h"
#include "tests/service/program.h"
#include "tests/service/read_trace.h"
#include "tests/temporary_directory.h"

namespace stp::service {
namespace {

class StpdTest : public testing::Test {
 protected:
  std::unique_ptr<test::Program> stpd(std::vector<std::string> options) {
    options.insert(options.begin(), STPD_PATH);
    return std::make_unique<test::Program>(std::move(options));
  }
  std::unique_ptr<test::Program> serving(std::vector<std::string> more = {}) {
    std::vector<std::string> options{"--link", "loop", "--socket", socket};
    options.insert(options.end(), more.begin(), more.end());
    auto program = stpd(options);
    EXPECT_TRUE(program->says("stpd: ready\n")) << program->output();
    return program;
  }
  int hello() {
    UniqueFd client;
    if (auto const error = connect_to(socket, client); error != 0) return error;
    return ask(client.get(), RequestKind::kHello);
  }
  int ask(int client, RequestKind kind, EndpointId endpoint = kNoneId) {
    Request request{};
    request.version = kProtocolVersion;
    request.kind = kind;
    request.endpoint = endpoint;
    request.uport = 3'000;
    request.mac = mac;
    request.config.bufsize = 14;
    request.config.max_stu = 14;
    request.config.slots = 64;
    request.config.credits = 64;
    std::vector<UniqueFd> fds;
    if (auto const error = send_request(client, request, {}); error != 0) return error;
    if (auto const error = receive_reply(client, reply, fds); error != 0) return error;
    if (kind == RequestKind::kHello) mac = reply.mac;
    return reply.result;
  }
  // Two endpoints of one client, connected to each other.
  void connect_to_itself(int client) {
    ASSERT_EQ(ask(client, RequestKind::kHello), 0);
    ASSERT_EQ(ask(client, RequestKind::kOpenEndpoint), 0);
    auto const listener = reply.endpoint;
    ASSERT_EQ(ask(client, RequestKind::kListen, listener), 0);
    ASSERT_EQ(ask(client, RequestKind::kOpenEndpoint), 0);
    ASSERT_EQ(ask(client, RequestKind::kConnect, reply.endpoint), 0);
    auto const until = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    int result = -EAGAIN;
    while (result == -EAGAIN && std::chrono::steady_clock::now() < until)
      result = ask(client, RequestKind::kAccept, listener);
    ASSERT_EQ(result, 0);
  }

  test::TemporaryDirectory directory;
  std::string const socket = directory.path() + "/stpd.sock";
  std::uint64_t mac = 0;
  Reply reply{};
};

TEST_F(StpdTest, ServesUntilItIsAskedToLeave) {
  for (auto const signal : {SIGTERM, SIGINT}) {
    auto const program = serving();
    EXPECT_NE(program->output().find("link loop: device "), std::string::npos) << program->output();
    EXPECT_NE(program->output().find("socket " + socket), std::string::npos);
    EXPECT_EQ(hello(), 0);
    program->signal(signal);
    EXPECT_EQ(program->wait(), 0) << program->output();
    EXPECT_FALSE(std::filesystem::exists(socket));
    EXPECT_NE(program->output().find("  clients 1\n"), std::string::npos) << program->output();
  }
}

TEST_F(StpdTest, LeavesCleanlyWithClientsConnected) {
  auto const program = serving();
  UniqueFd client;
  ASSERT_EQ(connect_to(socket, client), 0);
  connect_to_itself(client.get());
  program->signal(SIGTERM);
  EXPECT_EQ(program->wait(), 0) << program->output();
  EXPECT_FALSE(std::filesystem::exists(socket));
  EXPECT_NE(program->output().find("  vc_opened 2\n"), std::string::npos) << program->output();
}

TEST_F(StpdTest, ALinkThatCannotBeOpenedIsNamedWithItsReason) {
  for (std::string const link : {"iface:nosuchinterface", "nonsense:veth0", "memif:"}) {
    auto const program = stpd({"--link", link, "--socket", socket});
    EXPECT_EQ(program->wait(), 1);
    EXPECT_NE(program->output().find(link), std::string::npos) << program->output();
    EXPECT_EQ(program->output().find("ready"), std::string::npos);
    EXPECT_FALSE(std::filesystem::exists(socket));
  }
}

TEST_F(StpdTest, ASecondDaemonOnTheSameSocketIsRefused) {
  auto const first = serving();
  auto const second = stpd({"--link", "loop", "--socket", socket});
  EXPECT_EQ(second->wait(), 1);
  EXPECT_NE(second->output().find(socket), std::string::npos) << second->output();
  EXPECT_NE(second->output().find("another daemon"), std::string::npos) << second->output();
  EXPECT_EQ(hello(), 0);
}

TEST_F(StpdTest, TheSocketOfAKilledOneIsReplaced) {
  {
    auto const killed = serving();
    killed->signal(SIGKILL);
    EXPECT_EQ(killed->wait(), 128 + SIGKILL);
  }
  EXPECT_TRUE(std::filesystem::exists(socket));
  EXPECT_EQ(hello(), -ECONNREFUSED);
  auto const program = serving();
  EXPECT_EQ(hello(), 0);
}

TEST_F(StpdTest, AConfigurationFileSaysTheSame) {
  auto const config = directory.path() + "/stpd.conf";
  std::ofstream(config) << "link=loop\nsocket=" << socket << "\npoll=busy\n";
  auto const program = stpd({"--config", config});
  ASSERT_TRUE(program->says("stpd: ready\n")) << program->output();
  EXPECT_EQ(hello(), 0);
}

TEST_F(StpdTest, TheAddressGoesToTheLink) {
  auto const program = serving({"--address", "10.9.0.1/24"});
  EXPECT_NE(program->output().find("address 10.9.0.1"), std::string::npos) << program->output();
}

TEST_F(StpdTest, OptionsThatMakeNoSenseAreRefused) {
  EXPECT_NE(stpd({})->wait(), 0);
  EXPECT_NE(stpd({"--link", "loop", "--poll", "never"})->wait(), 0);
  EXPECT_NE(stpd({"--link", "loop", "--nonsense"})->wait(), 0);
  auto const program = stpd({"--version"});
  EXPECT_EQ(program->wait(), 0);
  EXPECT_EQ(program->output().substr(0, 5), "stpd ");
}

TEST_F(StpdTest, ATraceHasTheFramesAskedFor) {
  auto const trace = directory.path() + "/trace.pcapng";
  auto const program = serving({"--pcap", trace, "--pcap-frames", "2"});
  UniqueFd client;
  ASSERT_EQ(connect_to(socket, client), 0);
  connect_to_itself(client.get());
  program->signal(SIGTERM);
  EXPECT_EQ(program->wait(), 0) << program->output();
  auto const packets = test::read_trace(trace);
  ASSERT_EQ(packets.size(), 2U);
  for (auto const& packet : packets) {
    ASSERT_GE(packet.bytes.size(), 54U);
    EXPECT_EQ(packet.bytes[12], std::byte{0x81});  // the EtherType of STP
    EXPECT_EQ(packet.bytes[13], std::byte{0x81});
  }
}

TEST_F(StpdTest, ATraceThatCannotBeWrittenIsAnError) {
  auto const program =
      stpd({"--link", "loop", "--socket", socket, "--pcap", "/nowhere/trace.pcapng"});
  EXPECT_EQ(program->wait(), 1);
  EXPECT_NE(program->output().find("/nowhere/trace.pcapng"), std::string::npos);
}

}  // namespace
}  // namespace stp::service
