// SPDX-License-Identifier: BSD-3-Clause
// Connections that never send a request do not keep others from connecting to a listener.
#include "tests/managed/managed_fixture.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <thread>

namespace stp::test {
namespace {

class SilentRequesters : public LibstTest, protected TwoSides {
 protected:
  void SetUp() override { listen(); }
};
STP_BOTH_WAYS(SilentRequesters);

// protocol: 9.40
TEST_P(SilentRequesters, GiveTheirPlacesToWhoAsks) {
  using Clock = std::chrono::steady_clock;
  Endpoint silent;
  ASSERT_EQ(silent.error(), 0);
  std::vector<st_chandle_t> connected;
  const auto begin = Clock::now();
  // As many as the listener has places for undecided connections.
  for (int i = 0; i < 64; ++i) {
    st_chandle_t chandle = nullptr;
    ASSERT_EQ(st_connect(silent, ":3000", &chandle), 0) << i;
    connected.push_back(chandle);
  }
  connect();
  server.connection = server.next(STM_REQUEST).connection;
  ASSERT_NE(server.connection, nullptr);
  EXPECT_LT(Clock::now() - begin, std::chrono::seconds(9)) << "those that are silent have 10 s";
  const auto attr = server.attr(2);
  ASSERT_EQ(stm_accept(server.connection, &attr, nullptr, 0), 0);
  EXPECT_EQ(client.next(STM_CONNECTED).status, 0);
  for (auto* const chandle : connected) st_close(chandle);
}

// Connects and stays silent, 300 times a second, on as many threads as needed.
class Silent {
 public:
  Silent() {
    for (auto& thread : threads_) thread = std::thread([this] { run(); });
  }
  ~Silent() { stop(); }
  Silent(const Silent&) = delete;
  Silent& operator=(const Silent&) = delete;
  void stop() {
    stop_ = true;
    for (auto& thread : threads_)
      if (thread.joinable()) thread.join();
  }
  [[nodiscard]] unsigned asked() const { return asked_; }

 private:
  static constexpr std::size_t kThreads = 30;
  static constexpr auto kPause = std::chrono::milliseconds(1'000 * kThreads / 300);
  void run() {
    Endpoint endpoint;
    auto next = std::chrono::steady_clock::now();
    std::vector<st_chandle_t> made;
    while (!stop_) {
      st_chandle_t chandle = nullptr;
      ++asked_;
      if (st_connect(endpoint, ":3000", &chandle) == 0) made.push_back(chandle);
      // What a busy machine has delayed is not made up for.
      next = std::max(next, std::chrono::steady_clock::now()) + kPause;
      std::this_thread::sleep_until(next);
    }
    for (auto* const chandle : made) st_close(chandle);
  }

  std::atomic<bool> stop_{false};
  std::atomic<unsigned> asked_{0};
  std::array<std::thread, kThreads> threads_;
};

// All of them have the same address as the honest requester.
// protocol: 9.40
TEST_P(SilentRequesters, AtThreeHundredASecondKeepNobodyFromConnecting) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "with a sanitizer thirty threads leave the honest requester no time";
#endif
  Silent silent;
  // More than the listener and the Node have places for.
  while (silent.asked() < 150) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  for (int i = 0; i < 2; ++i) {
    connect();
    server.connection = server.next(STM_REQUEST).connection;
    ASSERT_NE(server.connection, nullptr);
    const auto attr = server.attr(2);
    ASSERT_EQ(stm_accept(server.connection, &attr, nullptr, 0), 0);
    EXPECT_EQ(client.next(STM_CONNECTED).status, 0);
  }
  silent.stop();
  RecordProperty("asked", std::to_string(silent.asked()));
}

}  // namespace
}  // namespace stp::test
