// SPDX-License-Identifier: BSD-3-Clause
#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include "tests/stpctl/stpctl_fixture.h"

namespace stp::test {
namespace {

class StpctlPing : public StpctlFixture {
 protected:
  std::unique_ptr<Program> listen() {
    auto listener = std::make_unique<Program>(command({"ping", "--serve", ":3000"}));
    EXPECT_TRUE(listener->says("listening")) << listener->output();
    return listener;
  }
  // Of a UDP socket that answers nothing.
  std::uint16_t silent_port() {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = ::htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    auto* const any = reinterpret_cast<sockaddr*>(&address);
    silent_.reset(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    EXPECT_EQ(::bind(silent_.get(), any, size), 0);
    EXPECT_EQ(::getsockname(silent_.get(), any, &size), 0);
    return ::ntohs(address.sin_port);
  }
  // Waits until somebody has sent it something.
  bool hears() const {
    pollfd came{.fd = silent_.get(), .events = POLLIN, .revents = 0};
    return ::poll(&came, 1, 30'000) == 1;
  }

 private:
  os::UniqueFd silent_;
};

TEST_F(StpctlPing, MeasuresRoundTripsAndSumsThemUp) {
  const auto stpd = serve();
  const auto listener = listen();
  const auto said = stpctl({"ping", ":3000", "--count", "3", "--interval", "0.01"});
  EXPECT_EQ(said.exit_status, 0) << said.text;
  EXPECT_TRUE(contains(said.text, "answer 3: ")) << said.text;
  EXPECT_TRUE(contains(said.text, "3 sent, 3 answered, 0 lost (0.0%)")) << said.text;
  EXPECT_TRUE(contains(said.text, "p99 ")) << said.text;
  const auto json = stpctl({"ping", ":3000", "--count", "200", "--interval", "0", "--json"});
  EXPECT_TRUE(is_json(json.text));
  EXPECT_TRUE(contains(json.text, R"("answered":200)")) << json.text;
  const auto refused = stpctl({"--json", "ping", ":3999"});
  EXPECT_EQ(refused.exit_status, 1);
  EXPECT_TRUE(contains(refused.text, R"("answered":0,"lost":0,"error":"Connection refused)"))
      << refused.text;
}

TEST_F(StpctlPing, ReachesTheLastPortThatThereIs) {
  const auto stpd = serve();
  Program listener(command({"ping", "--serve", ":4294967295"}));
  ASSERT_TRUE(listener.says("listening")) << listener.output();
  const auto said = stpctl({"ping", ":4294967295", "--count", "1"});
  EXPECT_EQ(said.exit_status, 0) << said.text;
}

TEST_F(StpctlPing, CtrlCEndsItWithTheSumAndLeavesNoConnection) {
  const auto stpd = serve();
  const auto listener = listen();
  Program pinger(command({"ping", ":3000"}));
  ASSERT_TRUE(pinger.says("answer 1")) << pinger.output();
  pinger.signal(SIGINT);
  EXPECT_EQ(pinger.wait(), 0) << pinger.output();
  EXPECT_TRUE(contains(pinger.output(), "round trip us: min")) << pinger.output();
  listener->signal(SIGINT);
  EXPECT_EQ(listener->wait(), 0) << listener->output();
  EXPECT_TRUE(contains(stpctl({"links", "--json"}).text, R"("connections":0)"));
}

TEST_F(StpctlPing, OnePeerServesSeveralAtOnce) {
  const auto stpd = serve();
  const auto listener = listen();
  std::vector<std::unique_ptr<Program>> pingers;
  for (int i = 0; i < 20; ++i)
    pingers.push_back(std::make_unique<Program>(
        command({"ping", ":3000", "--count", "3", "--interval", "0.1", "--timeout", "20"})));
  for (const auto& pinger : pingers) EXPECT_EQ(pinger->wait(), 0) << pinger->output();
}

// A UDP socket that takes everything and answers nothing is the peer.
TEST_F(StpctlPing, ASignalBeforeThePeerAnswersIsNamedAsWhatEndsIt) {
  Program pinger({STPCTL_PATH, "ping", "--json", "--link", "udp:127.0.0.1,port=0",
                  "127.0.0.1/" + std::to_string(silent_port()) + ":3000"});
  ASSERT_TRUE(hears());
  pinger.signal(SIGTERM);
  EXPECT_EQ(pinger.wait(), 1) << pinger.output();
  const std::string why = "a signal has ended this before the peer answered";
  EXPECT_TRUE(contains(pinger.output(), "\"error\":\"" + why + "\"}\nstpctl: 127.0.0.1/"));
  EXPECT_TRUE(contains(pinger.output(), ":3000: " + why + "\n")) << pinger.output();
}

TEST_F(StpctlPing, WhereNobodyListensTheWorkingLinkIsNotBlamed) {
  const auto stpd = serve();
  const auto said = stpctl({"ping", ":3999"});
  EXPECT_EQ(said.exit_status, 1);
  EXPECT_TRUE(contains(said.text, "the link works")) << said.text;
  EXPECT_TRUE(contains(said.text, "--serve")) << said.text;
}

TEST_F(StpctlPing, APeerThatGoesAwayEndsItWithTheReason) {
  const auto stpd = serve();
  auto listener = listen();
  Program pinger(command({"ping", ":3000", "--interval", "0.05"}));
  ASSERT_TRUE(pinger.says("answer 1")) << pinger.output();
  listener.reset();
  EXPECT_EQ(pinger.wait(), 1);
  EXPECT_TRUE(contains(pinger.output(), "answered")) << pinger.output();
  EXPECT_TRUE(contains(pinger.output(), "the connection has ended")) << pinger.output();
}

TEST_F(StpctlPing, NobodyIsBlamedForANameThatThereIsNot) {
  const auto stpd = serve();
  const auto said = stpctl({"ping", "no-such-host.invalid:3000"});
  EXPECT_EQ(said.exit_status, 1);
  EXPECT_TRUE(contains(said.text, "no host is called 'no-such-host.invalid'")) << said.text;
  EXPECT_FALSE(contains(said.text, "Is its stpd up")) << said.text;
}

TEST_F(StpctlPing, TheFormOfANameIsToldBeforeALinkIsOpened) {
  const auto said = stpctl({"ping", "--link", "iface:nowhere", "localhost"});
  EXPECT_EQ(said.exit_status, 2);
  EXPECT_TRUE(contains(said.text, "'localhost' does not have the form host:port")) << said.text;
  EXPECT_FALSE(contains(said.text, "nowhere")) << said.text;
}

TEST_F(StpctlPing, OfAnAddressInBracketsThatIsNoneItSaysWhatToWrite) {
  for (const auto& [name, status, says] :
       {std::tuple{"[::ffff:10.0.0.5]:3000", 2, "is an IPv4 address: write 10.0.0.5"},
        std::tuple{"[10.0.0.5]:3000", 2, "is an IPv4 address: write 10.0.0.5"},
        std::tuple{"[fe80::1%no-such]:3000", 1, "has an IPv6 address only"},
        std::tuple{"[fe80::1%]:3000", 2, "with the name of an interface"},
        std::tuple{"[no-address]:3000", 2, "is not a MAC address"}}) {
    const auto said = stpctl({"ping", "--link", "loop", name});
    EXPECT_EQ(said.exit_status, status) << name;
    EXPECT_TRUE(contains(said.text, says)) << said.text;
  }
}

TEST_F(StpctlPing, ANameThatIsNoneIsAWrongCommandLine) {
  for (const auto& name : {"10.9.0.2:abc", "fe80::1:3000", "10.9.0.2/99999:3000", "a b:3000"}) {
    const auto said = shell(STPCTL_PATH " ping --link loop '" + std::string(name) + "'");
    EXPECT_EQ(said.exit_status, 2) << said.text;
    EXPECT_TRUE(contains(said.text, "Run with --help")) << said.text;
  }
  const auto said = stpctl({"ping", "--serve", "--link", "loop", ":abc"});
  EXPECT_EQ(said.exit_status, 2) << said.text;
}

TEST_F(StpctlPing, WithoutADaemonItSaysWhichOneItLookedFor) {
  const auto said = stpctl({"ping", ":3000"});
  EXPECT_EQ(said.exit_status, 1);
  EXPECT_TRUE(contains(said.text, socket)) << said.text;
}

}  // namespace
}  // namespace stp::test
