// SPDX-License-Identifier: BSD-3-Clause
// Hosts of the network against two stpd's over UDP that have a connection: nobody there needs a
// program on either host.
#include <fcntl.h>
#include <sched.h>

#include <cstdlib>
#include <sstream>

#include "tests/hostile/hostile_fixture.h"

namespace stp::hostile {
namespace {

// In a network of its own, whose hosts 10.0.0.0/8, or fd00::/8, all lead back here.
class FromTheNetwork : public HostileFixture, public testing::WithParamInterface<bool> {
 protected:
  void SetUp() override {
    before_.reset(::open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC));
    if (::unshare(CLONE_NEWNET) != 0) GTEST_SKIP() << "only root may make network namespaces here";
    if (std::system("ip link set lo up") != 0) GTEST_SKIP() << "no ip(8) here";
    if (std::system(ipv6() ? "ip -6 route add local fd00::/8 dev lo && "
                             "ip address add fd00::1 dev lo && ip address add fd00::2 dev lo"
                           : "ip route add local 10.0.0.0/8 dev lo") != 0)
      GTEST_SKIP() << "no " << (ipv6() ? "IPv6" : "IPv4") << " here";
    const std::string first = ipv6() ? "[fd00::1]" : "127.0.0.1";
    const std::string second = ipv6() ? "[fd00::2]" : "127.0.0.2";
    daemon = std::make_unique<Daemon>(std::vector<std::string>{}, "udp:" + first);
    other_ = std::make_unique<Daemon>(std::vector<std::string>{}, "udp:" + second);
    ASSERT_TRUE(daemon->ready() && other_->ready()) << daemon->log() << other_->log();
    pair = std::make_unique<HonestPair>(daemon->socket(), 3'000, std::nullopt, other_->socket(),
                                        ipv6() ? "fd00::2" : "127.0.0.2");
    ASSERT_EQ(pair->fault(), "") << daemon->log() << other_->log();
    ASSERT_TRUE(pair->trip() && pair->transfer() && pair->is_answered()) << pair->fault();
    before = daemon->usage();
  }
  static bool ipv6() { return GetParam(); }
  // With the addresses of that kind.
  static Hostility over_ip(const std::string& move, uid_t uid = 0,
                           std::vector<std::string> more = {}) {
    more.insert(more.end(), {"--family", ipv6() ? "6" : "4"});
    return {move, uid, more};
  }
  void TearDown() override {
    if (before_) ::setns(before_.get(), CLONE_NEWNET);
  }
  static std::uint64_t counter(const Daemon& of, const std::string& name) {
    test::Program stats({STPCTL, "--socket", of.socket(), "stats", "--all"});
    EXPECT_EQ(stats.wait(), 0) << stats.output();
    std::istringstream lines(stats.output());
    std::string each;
    while (lines >> each)
      if (std::uint64_t value = 0; each == name && lines >> value) return value;
    return 0;
  }

  std::unique_ptr<Daemon> other_;

 private:
  UniqueFd before_;
};

INSTANTIATE_TEST_SUITE_P(Over, FromTheNetwork, testing::Bool(),
                         [](const auto& info) { return info.param ? "Ipv6" : "Ipv4"; });

// protocol: 13.4, 13.7, 13.8
TEST_P(FromTheNetwork, DatagramsSourcesAndReportsOfEveryKindHurtNobody) {
  const auto tally = endure({over_ip("datagrams"), over_ip("sources"), over_ip("reports")}, 1.5);
  for (const auto* each : {daemon.get(), other_.get()}) {
    // Counted, and bounded.
    EXPECT_GT(counter(*each, "udp_rx_datagrams"), 1'000U);
    EXPECT_GT(counter(*each, "bad_key"), 0U);
    EXPECT_GT(counter(*each, "udp_reports") + counter(*each, "udp_report_floods"), 0U);
    EXPECT_LE(counter(*each, "udp_strangers"), 1'024U);
    EXPECT_LE(counter(*each, "udp_peers"), 1U);
    EXPECT_EQ(counter(*each, "tx_dropped"), 0U);
    EXPECT_EQ(counter(*each, "udp_failed"), 0U);
  }
  EXPECT_GE(count_of(outputs_, "sources"), 10'000U / kSlowness) << "all hosts have sent";
  check(tally);
  EXPECT_EQ(other_->end(), "");
}

// What programs do to a stpd on any link, while it serves a peer over UDP; parts of datagrams come,
// frames as another implementation would send them, and what the two have sent themselves.
// protocol: 13.4
TEST_P(FromTheNetwork, ProgramsOfThisHostFragmentsAndFramesHurtNobodyEither) {
  const auto tally = endure({{"flood", kFirst},
                             over_ip("strangers", kSecond),
                             over_ip("fragments", 0, {"--rate", "1000"}),
                             over_ip("frames", 0, {"--rate", "3000"}),
                             over_ip("replays", 0, {"--rate", "2000"})},
                            1.5);
  for (const auto* const move : {"fragments", "frames", "replays"})
    EXPECT_GT(count_of(outputs_, move), 0U) << outputs_;
  EXPECT_GT(counter(*daemon, "bad_peer") + counter(*daemon, "bad_key"), 0U);
  EXPECT_LE(counter(*daemon, "udp_peers"), 65'536U + 1);
  EXPECT_EQ(counter(*daemon, "udp_failed"), 0U);
  check(tally);
  EXPECT_EQ(other_->end(), "");
}

}  // namespace
}  // namespace stp::hostile
