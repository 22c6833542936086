// SPDX-License-Identifier: BSD-3-Clause
// A memif whose other side is opened later, or never. The clock of this program is the test's
// (time/clock.h).
#include <stp/managed.h>

#include <atomic>
#include <filesystem>
#include <thread>

#include "libst/client/wait.h"
#include "tests/libst/libst_fixture.h"
#include "tests/libst/parts/resolver.h"
#include "tests/managed/time/clock.h"

namespace stp::test {
namespace {

class LatePeer : public testing::Test {
 protected:
  LatePeer() { std::filesystem::create_directory(folder_); }
  ~LatePeer() override { std::filesystem::remove_all(folder_); }
  [[nodiscard]] std::string link(const std::string& rest) const {
    return "memif:" + socket_ + "," + rest;
  }
  // Asks for the server's address in a thread, while `meanwhile` runs. Returns the result.
  template <typename Meanwhile>
  int ask(Meanwhile meanwhile, const char* host = "10.9.0.2") {
    const UseLink link(this->link("role=client,address=10.9.0.1/24"));
    const Endpoint client;
    EXPECT_EQ(client.error(), 0) << st_strerror(client.error());
    int result = 0;
    std::atomic<bool> over{false};
    std::thread asking([&] {
      result = st_macaddr(client, host, &mac_);
      text_ = st_strerror(result);
      over = true;
    });
    meanwhile(over);
    asking.join();
    return result;
  }
  const std::string folder_ = testing::TempDir() + "late_peer." + std::to_string(::getpid());
  const std::string socket_ = folder_ + "/memif.sock";
  st_macaddr_t mac_ = 0;
  std::string text_;
};

class LateNamedPeer : public LatePeer, public testing::WithParamInterface<const char*> {
 protected:
  ~LateNamedPeer() override { several.clear(); }
};
INSTANTIATE_TEST_SUITE_P(Names, LateNamedPeer, testing::Values("10.9.0.2", "several.test"),
                         [](const auto& info) {
                           return std::string(info.index == 0 ? "OneAddress" : "SeveralAddresses");
                         });

TEST_P(LateNamedPeer, IsAskedWhenItIsThere) {
  several = {"10.9.0.3", "10.9.0.2"};
  const auto late = [&](const auto& over) {
    // Longer than an answer may take. Each step is one that the other thread can see.
    for (int step = 0; step < 30 && !over; ++step) {
      let_pass(100 * kMillisecond);
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    const UseLink link(this->link("role=server,mac=02:00:00:00:09:02,address=10.9.0.2/24"));
    const Endpoint server;
    EXPECT_EQ(server.error(), 0) << st_strerror(server.error());
    while (!over) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  };
  EXPECT_EQ(ask(late, GetParam()), 0) << text_;
  EXPECT_EQ(mac_, 0x020000000902U);
}

TEST_F(LatePeer, IsNamedInTheTextIfItNeverComes) {
  const auto result = ask([](const auto& over) {
    while (!over) {
      let_pass(kSecond);
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  });
  EXPECT_EQ(result, -EHOSTUNREACH);
  EXPECT_NE(text_.find("no memif server has opened " + socket_), std::string::npos) << text_;
}

// A program of the managed API, and its connection.
class LatePeerOfManaged : public LatePeer {
 protected:
  void SetUp() override {
    const auto name = link("role=client,address=10.9.0.1/24");
    stm_domain_attr_t on{};
    on.size = sizeof on;
    on.link = name.c_str();
    ASSERT_EQ(stm_domain_open(&on, &domain), 0);
    ASSERT_EQ(stm_queue_create(domain, 8, &queue), 0);
    stm_connection_attr_t attr{};
    attr.size = sizeof attr;
    attr.events = queue;
    ASSERT_EQ(stm_connection_create(domain, &attr, &connection), 0);
  }
  void TearDown() override { EXPECT_EQ(stm_domain_close(domain), 0); }

  stm_domain_t domain = nullptr;
  stm_queue_t queue = nullptr;
  stm_connection_t connection = nullptr;
};

TEST_F(LatePeerOfManaged, IsWaitedForNoLongerThanTheProgramHasTime) {
  const auto begin = client::now();
  std::atomic<bool> over{false};
  std::thread connecting([&] {
    EXPECT_EQ(stm_connect(connection, "10.9.0.2:1", 2'000'000, nullptr, 0), -EHOSTUNREACH);
    EXPECT_LT(client::now() - begin, 3 * kSecond);
    over = true;
  });
  while (!over) {
    let_pass(100 * kMillisecond);
    std::this_thread::sleep_for(std::chrono::milliseconds(6));
  }
  connecting.join();
  EXPECT_EQ(stm_connection_close(connection), 0);
}

// No time passes here: only the close can end the wait.
TEST_F(LatePeerOfManaged, IsNotWaitedForByAConnectionThatIsClosed) {
  int result = 0;
  std::atomic<bool> over{false};
  std::thread connecting([&] {
    result = stm_connect(connection, "10.9.0.2:1", -1, nullptr, 0);
    over = true;
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(50));  // most likely it asks by then
  EXPECT_FALSE(over);
  EXPECT_EQ(stm_connection_close(connection), 0);
  for (int i = 0; i < 2000 && !over; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  EXPECT_TRUE(over);
  while (!over) let_pass(kSecond);
  connecting.join();
  EXPECT_EQ(result, -ECANCELED);
}

}  // namespace
}  // namespace stp::test
