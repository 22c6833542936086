// SPDX-License-Identifier: BSD-3-Clause
#include "tools/stpctl/counters.h"

#include <gtest/gtest.h>

#include "stp/counters.h"

namespace stp::stpctl {
namespace {

LinkCounters counters_of(const std::string& link, std::vector<CounterValue> counters,
                         const std::string& socket = "/s") {
  LinkCounters of;
  of.link.name = link;
  of.link.socket = socket;
  of.counters = std::move(counters);
  return of;
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(PrometheusText, KeepsTheSamplesOfAMetricTogetherUnderOneHead) {
  const auto text = prometheus_text({counters_of("iface:a", {{"rx_frames", 5}}),
                                     counters_of("loop", {{"rx_frames", 7}, {"looped", 1}})});
  EXPECT_TRUE(contains(text,
                       "# UNIT stp_rx_frames_total frames\n"
                       "# HELP stp_rx_frames_total frames handed to the Node\n"
                       "# TYPE stp_rx_frames_total counter\n"
                       "stp_rx_frames_total{link=\"iface:a\",socket=\"/s\"} 5\n"
                       "stp_rx_frames_total{link=\"loop\",socket=\"/s\"} 7\n"))
      << text;
  EXPECT_TRUE(contains(text, "stp_looped_total{link=\"loop\",socket=\"/s\"} 1\n"));
  EXPECT_FALSE(contains(text, "stp_looped_total{link=\"iface:a\""));
  EXPECT_TRUE(contains(text, "# TYPE stp_connections gauge\n"));
}

TEST(PrometheusText, ExportsWhatFallsAsWellAsAGauge) {
  auto of = counters_of("udp:a", {{.name = "udp_peers", .value = 5, .shards = {2, 3}},
                                  {.name = "udp_displaced", .value = 7, .shards = {7, 0}}});
  of.link.shards.resize(2);
  const auto text = prometheus_text({of});
  EXPECT_TRUE(contains(text,
                       "# TYPE stp_udp_peers gauge\n"
                       "stp_udp_peers{link=\"udp:a\",socket=\"/s\"} 5\n"))
      << text;
  EXPECT_TRUE(contains(text, "# TYPE stp_by_shard_udp_peers gauge\n"));
  EXPECT_TRUE(contains(text, R"(stp_by_shard_udp_peers{link="udp:a",socket="/s",shard="2"} 3)"));
  EXPECT_FALSE(contains(text, "udp_peers_total"));
  EXPECT_TRUE(contains(text, "# TYPE stp_udp_displaced_total counter\n"));
}

TEST(PrometheusText, EscapesALinkThatHasQuotesInItsName) {
  const auto text = prometheus_text({counters_of("vdev:net\"x\\y", {{"rx_frames", 1}})});
  EXPECT_TRUE(contains(text, R"(stp_rx_frames_total{link="vdev:net\"x\\y",socket="/s"} 1)"))
      << text;
}

TEST(PrometheusText, TellsLinksOfOneNameApart) {
  const auto text = prometheus_text({counters_of("iface:eth0", {{"rx_frames", 1}}, "/a"),
                                     counters_of("iface:eth0", {{"rx_frames", 2}}, "/b")});
  EXPECT_TRUE(contains(text, R"(stp_rx_frames_total{link="iface:eth0",socket="/a"} 1)")) << text;
  EXPECT_TRUE(contains(text, R"(stp_rx_frames_total{link="iface:eth0",socket="/b"} 2)")) << text;
}

TEST(PrometheusText, HasTheSumOfALinksShardsAndEachOfThemInAMetricOfItsOwn) {
  auto divided = counters_of(
      "loop",
      {{.name = "rx_frames", .value = 5, .shards = {2, 3}}, {.name = "clients", .value = 7}}, "/a");
  divided.link.shards = {{.connections = 1, .regions = 0}, {.connections = 4, .regions = 9}};
  auto whole = counters_of("loop", {{.name = "rx_frames", .value = 6, .shards = {6}}}, "/b");
  const auto text = prometheus_text({divided, whole});
  EXPECT_TRUE(contains(text,
                       "stp_rx_frames_total{link=\"loop\",socket=\"/a\"} 5\n"
                       "stp_rx_frames_total{link=\"loop\",socket=\"/b\"} 6\n"))
      << text;
  EXPECT_TRUE(contains(text,
                       "# TYPE stp_by_shard_rx_frames_total counter\n"
                       "stp_by_shard_rx_frames_total{link=\"loop\",socket=\"/a\",shard=\"1\"} 2\n"
                       "stp_by_shard_rx_frames_total{link=\"loop\",socket=\"/a\",shard=\"2\"} 3\n"
                       "# "))
      << text;
  EXPECT_FALSE(contains(text, "stp_by_shard_clients_total")) << "which the link has as a whole";
  EXPECT_TRUE(contains(text, R"(stp_by_shard_regions{link="loop",socket="/a",shard="2"} 9)"));
  EXPECT_TRUE(contains(text, R"(stp_shards{link="loop",socket="/b"} 1)"));
  EXPECT_FALSE(contains(prometheus_text({whole}), "by_shard"));
}

TEST(PrometheusText, TellsWhatEachUserHasAndMayHaveOfEachBudget) {
  auto of = counters_of("loop", {});
  of.users = {{.uid = 1'001,
               .trusted = false,
               .budgets = {{"clients", 3, 128}, {"mappings", 7, std::nullopt}}}};
  const auto text = prometheus_text({of});
  EXPECT_TRUE(contains(text,
                       "# TYPE stp_user_used gauge\n"
                       "stp_user_used{link=\"loop\",socket=\"/s\",uid=\"1001\","
                       "budget=\"clients\"} 3\n"))
      << text;
  EXPECT_TRUE(
      contains(text, R"(stp_user_most{link="loop",socket="/s",uid="1001",budget="clients"} 128)"));
  EXPECT_TRUE(contains(text, R"(uid="1001",budget="mappings"} 7)"));
  EXPECT_FALSE(
      contains(text, R"(stp_user_most{link="loop",socket="/s",uid="1001",budget="mappings"})"));
}

TEST(PrometheusText, TellsTheStateOfALinkAndWhatItIs) {
  auto of = counters_of("iface:a", {});
  of.link.state = "no carrier";
  of.link.mac = "02:00:00:00:00:01";
  of.link.address = "10.9.0.1";
  of.link.mtu = 9'000;
  of.link.driver = "af_packet";
  const auto text = prometheus_text({of});
  EXPECT_TRUE(contains(text, R"(stp_link_state{link="iface:a",socket="/s",state="no carrier"} 1)"));
  EXPECT_TRUE(contains(text, R"(stp_link_state{link="iface:a",socket="/s",state="up"} 0)"));
  EXPECT_TRUE(contains(text, R"(stp_link_info{link="iface:a",socket="/s",mac="02:00:00:00:00:01",)"
                             R"(address="10.9.0.1",mtu="9000",driver="af_packet"} 1)"))
      << text;
}

TEST(CounterTexts, SayOfANodesCounterWhatTheNodeSays) {
  EXPECT_EQ(text_of_counter("bad_key"), Counters::description(Counter::kBadKey));
  EXPECT_TRUE(counts_drops("bad_key"));
  EXPECT_FALSE(counts_drops("rx_frames"));
  EXPECT_FALSE(counts_drops("link_rx_missed_by_far"));
  EXPECT_EQ(text_of_counter("no_such_counter"), "");
}

}  // namespace
}  // namespace stp::stpctl
