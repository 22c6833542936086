// SPDX-License-Identifier: BSD-3-Clause
// stpd on a link of several shards: what it says, and what stpctl shows of each shard and of all.
#include <sched.h>
#include <stp/st.h>

#include <cstdlib>
#include <utility>

#include "tests/stpctl/stpctl_fixture.h"
#include "tests/stpd/read_trace.h"

namespace stp::test {
namespace {

class StpctlShards : public StpctlFixture {
 protected:
  StpctlShards() { ::setenv("STP_LINK", ("stpd:" + socket).c_str(), 1); }
  ~StpctlShards() override {
    if (client != nullptr) st_delete(client);
    if (server != nullptr) st_delete(server);
    ::unsetenv("STP_LINK");
  }
  // A listener on the first shard, which is this program's first, and a client on the second.
  void connect() {
    ASSERT_EQ(st_create(":3000", &server), 0);
    ASSERT_EQ(st_listen(server), 0);
    ASSERT_EQ(st_create(nullptr, &client), 0);
    st_chandle_t connected = nullptr, accepted = nullptr;
    ASSERT_EQ(st_connect(client, ":3000", &connected), 0);
    ASSERT_EQ(st_accept(server, &accepted), 0);
    unsigned port = 0;
    ASSERT_EQ(st_getopt(connected, ST_OPT_PORT_LOCAL, &port), 0);
    EXPECT_EQ(port % 3, 1U);
  }

  // One that this process, and so stpd, may run on.
  static std::string first_cpu() {
    cpu_set_t usable;
    CPU_ZERO(&usable);
    EXPECT_EQ(::sched_getaffinity(0, sizeof usable, &usable), 0);
    int cpu = 0;
    while (!CPU_ISSET(cpu, &usable)) ++cpu;
    return std::to_string(cpu);
  }

  st_ehandle_t server = nullptr, client = nullptr;
};

TEST_F(StpctlShards, AreListedWithTheirConnectionsAndInSum) {
  const auto stpd = serve({}, "loop,queues=3");
  EXPECT_TRUE(contains(stpd->output(), "3 shards; no device: shards hand frames to each other"))
      << stpd->output();
  connect();
  const auto links = stpctl({"links"}).text;
  for (const std::string shard : {"  shard 1", "  shard 2", "  shard 3"})
    EXPECT_TRUE(contains(links, shard)) << links;
  EXPECT_TRUE(contains(links, ": steering: no device: shards hand frames to each other")) << links;
  const auto json = stpctl({"--json", "links"}).text;
  EXPECT_TRUE(is_json(json));
  EXPECT_TRUE(contains(json, "\"steering\":\"no device: ")) << json;
  EXPECT_TRUE(contains(json, "\"connections\":2,\"regions\":0,")) << json;
  EXPECT_TRUE(contains(json, "{\"shard\":1,\"connections\":1,")) << json;
  EXPECT_TRUE(contains(json, "{\"shard\":2,\"connections\":1,")) << json;
  EXPECT_TRUE(contains(json, "{\"shard\":3,\"connections\":0,")) << json;
  const auto connections = stpctl({"--json", "connections"}).text;
  EXPECT_TRUE(is_json(connections));
  EXPECT_TRUE(contains(connections, "\"shard\":1,")) << connections;
  EXPECT_TRUE(contains(connections, "\"shard\":2,")) << connections;
  EXPECT_TRUE(contains(stpctl({"connections"}).text, "SHARD")) << "its column";
}

TEST_F(StpctlShards, CountTogetherAndEachOfThem) {
  const auto stpd = serve({}, "loop,queues=3");
  connect();
  const auto sums = stpctl({"stats"}).text;
  EXPECT_FALSE(contains(sums, "SHARD 1")) << sums;
  EXPECT_TRUE(contains(sums, "frames handed to other shards")) << sums;
  const auto each = stpctl({"stats", "--shards"}).text;
  EXPECT_TRUE(contains(each, "SHARD 1  SHARD 2  SHARD 3")) << each;
  const auto json = stpctl({"--json", "stats"}).text;
  EXPECT_TRUE(is_json(json));
  EXPECT_TRUE(contains(json, "\"vc_opened\":2,")) << json;
  EXPECT_TRUE(contains(json, "{\"shard\":3,\"counters\":{\"rx_frames\":0,")) << json;
  const auto text = stpctl({"stats", "--prometheus"}).text;
  EXPECT_TRUE(contains(text, "socket=\"" + socket + "\",shard=\"2\"} 1\n")) << text;
  const auto top = stpctl({"--json", "top", "--count", "1", "--interval", "0.1"}).text;
  EXPECT_TRUE(is_json(top));
  EXPECT_TRUE(contains(top, "{\"shard\":2,\"connections\":1,\"per_second\":{")) << top;
  EXPECT_TRUE(contains(stpctl({"top", "--count", "1", "--interval", "0.1"}).text, "GIVEN/S"));
}

// Each frame once, whichever shard it is on: the RC, the CA, and what follows.
TEST_F(StpctlShards, AreTracedTogether) {
  const auto path = directory.path() + "/all.pcapng";
  const auto stpd = serve({"--pcap", path}, "loop,queues=3");
  connect();
  st_delete(std::exchange(client, nullptr));
  st_delete(std::exchange(server, nullptr));
  stpd->signal(SIGTERM);
  EXPECT_EQ(stpd->wait(), 0) << stpd->output();
  EXPECT_TRUE(contains(stpd->output(), "vc_closed 2\n")) << stpd->output();
  const auto sent = "tx_frames " + std::to_string(read_trace(path).size()) + '\n';
  EXPECT_TRUE(contains(stpd->output(), sent)) << sent << stpd->output();
}

TEST_F(StpctlShards, ALinkThatIsNotDividedShowsNoneOfThis) {
  const auto stpd = serve();
  EXPECT_FALSE(contains(stpd->output(), "shard")) << stpd->output();
  EXPECT_FALSE(contains(stpctl({"links"}).text, "shard"));
  EXPECT_FALSE(contains(stpctl({"connections"}).text, "SHARD"));
  EXPECT_FALSE(contains(stpctl({"stats", "--shards"}).text, "SHARD"));
  EXPECT_FALSE(contains(stpctl({"stats", "--prometheus"}).text, "by_shard"));
}

TEST_F(StpctlShards, ArePinnedToACpuEachAndTheLogSaysWhereTheyShareOne) {
  const auto number = first_cpu();
  const auto stpd = serve({"--cpus", number, "--poll", "busy"}, "loop,queues=2");
  EXPECT_TRUE(contains(stpd->output(), "CPUs " + number + ", " + number + '\n')) << stpd->output();
  EXPECT_TRUE(contains(stpd->output(), "warning: 2 shards share 1 CPU")) << stpd->output();
  EXPECT_TRUE(contains(stpd->output(), "poll=busy behaves as adaptive")) << stpd->output();
  EXPECT_EQ(st_create(":3000", &server), 0) << "and it serves";
}

TEST_F(StpctlShards, AutoIsOneForEachCpuOfThose) {
  const auto stpd = serve({"--cpus", first_cpu()}, "loop,queues=auto");
  EXPECT_FALSE(contains(stpd->output(), "shards")) << stpd->output();
}

TEST_F(StpctlShards, TooManyAreRefusedWithTheNumberThatThereMayBe) {
  const auto said = run({STPD_PATH, "--link", "loop,queues=17", "--socket", socket});
  EXPECT_EQ(said.exit_status, 2);
  EXPECT_TRUE(contains(said.text, "queues=17")) << said.text;
  EXPECT_TRUE(contains(said.text, "16")) << said.text;
}

}  // namespace
}  // namespace stp::test
