// SPDX-License-Identifier: BSD-3-Clause
// The same numbers through DPDK's telemetry socket, asked as its own client does.
#include <array>

#include "libst/ipc/socket.h"
#include "tests/stpctl/stpctl_fixture.h"

namespace stp::test {
namespace {

class TelemetryTest : public StpctlFixture {
 protected:
  void SetUp() override {
    stpd = serve({}, "vdev:net_ring0,mac=02:00:00:00:00:07,address=10.9.0.1/24");
    const auto& log = stpd->output();
    constexpr std::string_view kBefore = "stpd: telemetry ";
    const auto at = log.find(kBefore);
    ASSERT_NE(at, std::string::npos) << log;
    path = log.substr(at + kBefore.size(), log.find('\n', at) - at - kBefore.size());
    ASSERT_EQ(ipc::connect_to(path, client), 0) << path;
    EXPECT_TRUE(contains(receive(), R"("pid")"));
  }
  std::string ask(const std::string& command) {
    EXPECT_EQ(::write(client.get(), command.data(), command.size()),
              static_cast<ssize_t>(command.size()));
    return receive();
  }
  std::string receive() {
    std::array<char, 16'384> buffer;
    const auto got = ::read(client.get(), buffer.data(), buffer.size());
    return got > 0 ? std::string(buffer.data(), static_cast<std::size_t>(got)) : "";
  }

  std::unique_ptr<Program> stpd;
  std::string path;
  os::UniqueFd client;
};

TEST_F(TelemetryTest, TellsLinksAndAllCountersByTheirNames) {
  EXPECT_TRUE(contains(ask("/stp/links"), "vdev:net_ring0"));
  const auto link = ask("/stp/link");
  EXPECT_TRUE(contains(link, R"("driver":"net_ring")")) << link;
  const auto stats = ask("/stp/stats");
  for (const std::string name : {"rx_frames", "duplicate_block", "link_rx_missed", "clients"})
    EXPECT_TRUE(contains(stats, '"' + name + "\":")) << name;
  EXPECT_TRUE(is_json(stats + "\n"));
}

TEST_F(TelemetryTest, TellsConnectionsByTheirLocalPorts) {
  EXPECT_TRUE(contains(ask("/stp/connections"), R"({"/stp/connections":[]})"));
  Program listener(command({"ping", "--serve", ":3000"}));
  ASSERT_TRUE(listener.says("listening")) << listener.output();
  Program pinger(command({"ping", ":3000"}));
  ASSERT_TRUE(pinger.says("answer 1")) << pinger.output();
  const auto ports = ask("/stp/connections");
  const auto first = ports.find('[') + 1;
  const auto port = ports.substr(first, ports.find_first_of(",]", first) - first);
  const auto connection = ask("/stp/connection," + port);
  EXPECT_TRUE(contains(connection, R"("uport":3000)")) << connection;
  EXPECT_TRUE(contains(connection, R"("state":"open")")) << connection;
}

TEST_F(TelemetryTest, WhatIsNotThereIsNullAndHarmsNothing) {
  for (const std::string command :
       {"/stp/connection,65535", "/stp/connection", "/stp/connection,x", "/stp/connection,0",
        "/stp/stats,9", "/stp/stats,-1", "/stp/stats,0,0,0", "/stp/stats,99999999999999"})
    EXPECT_TRUE(contains(ask(command), "null")) << command;
  EXPECT_TRUE(contains(ask("/stp/links"), "net_ring0"));
}

TEST_F(TelemetryTest, LeavesNothingBehindWhenTheDaemonEnds) {
  stpd->signal(SIGTERM);
  EXPECT_EQ(stpd->wait(), 0) << stpd->output();
  EXPECT_FALSE(std::filesystem::exists(path));
  EXPECT_FALSE(std::filesystem::exists(std::filesystem::path(path).parent_path()));
}

// As for root of a container or of a user namespace, which may not write into /var/run.
TEST_F(StpctlFixture, WhereTelemetryFindsNoDirectoryTwoDaemonsServe) {
  ::setenv("RUNTIME_DIRECTORY", "/dev/null", 1);
  const auto first = serve({}, "vdev:net_ring0,mac=02:00:00:00:00:07");
  Program second({STPD_PATH, "--link", "vdev:net_ring0,mac=02:00:00:00:00:08", "--socket",
                  directory.path() + "/second.sock"});
  EXPECT_TRUE(second.says("stpd: ready\n")) << second.output();
  ::unsetenv("RUNTIME_DIRECTORY");
  for (const auto* const each : {first.get(), &second})
    EXPECT_TRUE(contains(each->output(),
                         "there is no telemetry: DPDK could make no directory for "
                         "its socket in /dev/null/dpdk, "))
        << each->output();
}

}  // namespace
}  // namespace stp::test
