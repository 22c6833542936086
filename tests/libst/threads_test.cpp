// SPDX-License-Identifier: BSD-3-Clause
// Any call from any thread.
#include <algorithm>
#include <atomic>
#include <thread>

#include "tests/libst/libst_fixture.h"

namespace stp::test {
namespace {

class Threads : public ConnectedTest {};
STP_BOTH_WAYS(Threads);

TEST_P(Threads, SeveralSendAndReceiveOnOneConnectionAndNothingIsLostOrDoubled) {
  constexpr unsigned kThreads = 3, kEach = 300;
  std::vector<std::atomic<unsigned>> seen(kThreads * kEach);
  std::atomic<unsigned> received = 0;
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      auto nop = header(ST_OP_NOP);
      for (unsigned i = 0; i < kEach; ++i) {
        nop.s_id = t * kEach + i;
        ASSERT_EQ(send(connected_, nop), 0);
      }
    });
    threads.emplace_back([&] {
      st_header_t got;
      timeval limit{0, 50'000};
      while (received < kThreads * kEach) {
        const auto error = st_rx(accepted_, &got, nullptr, &limit);
        if (error == -EWOULDBLOCK) continue;
        ASSERT_EQ(error, 0);
        ++received;
        ASSERT_LT(got.s_id, seen.size());
        ++seen[got.s_id];
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_TRUE(std::all_of(seen.begin(), seen.end(), [](const auto& n) { return n == 1; }));
}

TEST_P(Threads, APingPongOfTwoThreadsKeepsItsOrder) {
  constexpr unsigned kRounds = 300;
  std::thread echo([&] {
    st_header_t got;
    for (unsigned i = 0; i < kRounds; ++i) {
      ASSERT_EQ(receive(accepted_, got), 0);
      ASSERT_EQ(send(accepted_, got), 0);
    }
  });
  auto nop = header(ST_OP_NOP);
  st_header_t got;
  for (nop.s_id = 1; nop.s_id <= kRounds; ++nop.s_id) {
    ASSERT_EQ(send(connected_, nop), 0);
    ASSERT_EQ(receive(connected_, got), 0);
    ASSERT_EQ(got.s_id, nop.s_id);
  }
  echo.join();
}

TEST_P(Threads, EndpointsComeAndGoWhileOthersTransfer) {
  std::atomic<bool> stop = false;
  std::thread churn([&] {
    while (!stop) {
      Endpoint passing;
      Buffer memory(1 << 14);
      st_mhandle_t region = nullptr;
      EXPECT_EQ(st_map(passing, ST_MAP_RX, memory.data(), memory.length(), 0, -1, &region, nullptr),
                0);
      st_chandle_t nobody = nullptr;
      EXPECT_EQ(st_connect(passing, ":4000", &nobody), -ECONNREFUSED);
      EXPECT_EQ(st_unmap(region), 0);
    }
  });
  st_header_t got;
  for (int i = 0; i < 500; ++i) {
    ASSERT_EQ(send(connected_, header(ST_OP_NOP)), 0);
    ASSERT_EQ(receive(accepted_, got), 0);
  }
  stop = true;
  churn.join();
}

}  // namespace
}  // namespace stp::test
