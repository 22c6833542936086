// SPDX-License-Identifier: BSD-3-Clause
// Connections that never send a request do not keep others from connecting to a listener.
#include "tests/managed/managed_fixture.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

namespace stp::test {
namespace {

class SilentRequesters : public LibstTest, protected TwoSides {
 protected:
  void SetUp() override { listen(); }

  // Whether the client is connected after a few tries. On a busy machine its request may need
  // longer than the second for which a connection may be silent; then it loses its place and asks
  // again.
  bool get_in() {
    constexpr int kTries = 20;
    for (int i = 0; i < kTries; ++i)
      if (try_once()) return true;
    return false;
  }

 private:
  bool try_once() {
    const auto attr = client.attr(1);
    EXPECT_EQ(stm_connection_create(client.domain, &attr, &client.connection), 0);
    EXPECT_EQ(stm_connect(client.connection, ":3000", 5'000'000, nullptr, 0), 0);
    for (;;) {
      stm_event_t event;
      if (stm_queue_wait(server.queue, 1, &event, 1, 1'000) == 1 && event.kind == STM_REQUEST) {
        const auto accepted = server.attr(2);
        stm_accept(event.connection, &accepted, nullptr, 0);
      }
      if (stm_queue_wait(client.queue, 1, &event, 1, 1'000) == 1) {
        if (event.kind == STM_CONNECTED) return true;
        stm_connection_close(client.connection);
        return false;
      }
    }
  }
};
STP_BOTH_WAYS(SilentRequesters);

// How soon: managed/time/patience_test.cpp.
// protocol: 9.40
TEST_P(SilentRequesters, GiveTheirPlacesToWhoAsks) {
  Endpoint silent;
  ASSERT_EQ(silent.error(), 0);
  std::vector<st_chandle_t> connected;
  // As many as the listener has places for undecided connections.
  for (int i = 0; i < 64; ++i) {
    st_chandle_t chandle = nullptr;
    ASSERT_EQ(st_connect(silent, ":3000", &chandle), 0) << i;
    connected.push_back(chandle);
  }
  EXPECT_TRUE(get_in());
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
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(get_in());
  silent.stop();
  RecordProperty("asked", std::to_string(silent.asked()));
}

}  // namespace
}  // namespace stp::test
