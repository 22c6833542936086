// SPDX-License-Identifier: BSD-3-Clause
// Whatever is passed as a handle, the answer is an error and never a crash.
#include <algorithm>
#include <chrono>
#include <thread>

#include "tests/libst/libst_fixture.h"

namespace stp::test {
namespace {

class Handles : public ConnectedTest {
 protected:
  // Makes every call with `bad` as its handle.
  static void expect_refused_everywhere(void* bad) {
    const auto ehandle = static_cast<st_ehandle_t>(bad);
    const auto chandle = static_cast<st_chandle_t>(bad);
    unsigned value = 0;
    int mx = 0;
    st_header_t header{};
    st_macaddr_t mac = 0;
    st_chandle_t made = nullptr;
    st_mhandle_t region = nullptr;
    timeval now{0, 0};
    EXPECT_EQ(st_delete(ehandle), -EBADF);
    EXPECT_EQ(st_getopt(bad, ST_OPT_BUFSIZE_LOCAL, &value), -EBADF);
    EXPECT_EQ(st_setopt(bad, ST_OPT_BUFSIZE_LOCAL, &value), -EBADF);
    EXPECT_EQ(st_listen(ehandle), -EBADF);
    EXPECT_EQ(st_accept(ehandle, &made), -EBADF);
    EXPECT_EQ(st_connect(ehandle, ":3000", &made), -EBADF);
    EXPECT_EQ(st_close(chandle), -EBADF);
    EXPECT_EQ(st_macaddr(ehandle, nullptr, &mac), -EBADF);
    EXPECT_EQ(st_map(ehandle, ST_MAP_TX, &value, 1, 0, -1, &region, nullptr), -EBADF);
    EXPECT_EQ(st_unmap(bad), -EBADF);
    EXPECT_EQ(st_mx_alloc(chandle, bad, &mx), -EBADF);
    EXPECT_EQ(st_mx_free(chandle, 1), -EBADF);
    EXPECT_EQ(st_tx(bad, &header, nullptr, 0, 0, 0), -EBADF);
    EXPECT_EQ(st_rx(bad, &header, nullptr, &now), -EBADF);
    EXPECT_EQ(st_flush(bad), -EBADF);
  }
};
STP_BOTH_WAYS(Handles);

TEST_P(Handles, NullIsNoHandle) {
  expect_refused_everywhere(nullptr);
}

TEST_P(Handles, PointersOfTheProgramAreNoHandles) {
  alignas(64) char bytes[64] = {};
  for (auto& byte : bytes) expect_refused_everywhere(&byte);
  expect_refused_everywhere(reinterpret_cast<void*>(~std::uintptr_t{0}));
  expect_refused_everywhere(reinterpret_cast<void*>(std::uintptr_t{5}));
}

TEST_P(Handles, NeighboursOfALiveHandleAreNoHandles) {
  const auto live = reinterpret_cast<std::uintptr_t>(static_cast<st_ehandle_t>(client_));
  for (unsigned bit = 0; bit < 64; ++bit) {
    auto* const neighbour = reinterpret_cast<void*>(live ^ std::uintptr_t{1} << bit);
    if (neighbour != static_cast<st_ehandle_t>(server_)) expect_refused_everywhere(neighbour);
  }
}

TEST_P(Handles, AHandleOfAnotherKindIsRefused) {
  Buffer memory(1 << 16);
  st_mhandle_t region = nullptr;
  ASSERT_EQ(st_map(client_, ST_MAP_TX, memory.data(), memory.length(), 0, -1, &region, nullptr), 0);
  st_header_t header{};
  int mx = 0;
  timeval now{0, 0};
  EXPECT_EQ(st_rx(client_, &header, nullptr, &now), -EBADF);
  EXPECT_EQ(st_rx(region, &header, nullptr, &now), -EBADF);
  EXPECT_EQ(st_unmap(connected_), -EBADF);
  EXPECT_EQ(st_unmap(client_), -EBADF);
  EXPECT_EQ(st_flush(region), -EBADF);
  EXPECT_EQ(st_close(reinterpret_cast<st_chandle_t>(region)), -EBADF);
  EXPECT_EQ(st_delete(reinterpret_cast<st_ehandle_t>(connected_)), -EBADF);
  EXPECT_EQ(st_mx_alloc(connected_, connected_, &mx), -EBADF);
  EXPECT_EQ(st_unmap(region), 0);
}

TEST_P(Handles, AClosedHandleIsNoneFromThenOn) {
  ASSERT_EQ(st_close(connected_), 0);
  expect_refused_everywhere(connected_);
  const auto stale = static_cast<st_ehandle_t>(server_);
  server_.reset();
  expect_refused_everywhere(stale);
  // The handle stays invalid when its place is reused.
  for (int i = 0; i < 2'000; ++i) {
    Endpoint another;
    ASSERT_NE(static_cast<st_ehandle_t>(another), stale);
    ASSERT_NE(static_cast<void*>(static_cast<st_ehandle_t>(another)),
              static_cast<void*>(connected_));
  }
}

TEST_P(Handles, OfThreadsThatCloseTheSameHandleOneSucceeds) {
  std::vector<int> results(4, 1);
  std::vector<std::thread> threads;
  for (auto& result : results) threads.emplace_back([&] { result = st_close(connected_); });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(std::count(results.begin(), results.end(), 0), 1);
  EXPECT_EQ(std::count(results.begin(), results.end(), -EBADF), 3);
}

// ---- waiting calls and the end of what they wait for ----

void let_it_wait() {
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
}

TEST_P(Handles, ClosingWakesAReceiverWithAnError) {
  int result = 1;
  std::thread waiting([&] {
    st_header_t header;
    result = st_rx(connected_, &header, nullptr, nullptr);
  });
  let_it_wait();
  EXPECT_EQ(st_close(connected_), 0);
  waiting.join();
  EXPECT_TRUE(result == -ECANCELED || result == -EBADF) << result;
}

TEST_P(Handles, DeletingWakesWhoAcceptsOrReceives) {
  int accepted = 1, received = 1;
  std::thread accepting([&] {
    st_chandle_t chandle;
    accepted = st_accept(server_, &chandle);
  });
  std::thread receiving([&] {
    st_header_t header;
    received = st_rx(accepted_, &header, nullptr, nullptr);
  });
  let_it_wait();
  server_.reset();
  accepting.join();
  receiving.join();
  EXPECT_TRUE(accepted == -ECANCELED || accepted == -EBADF) << accepted;
  EXPECT_TRUE(received == -ECANCELED || received == -EBADF) << received;
}

TEST_P(Handles, ClosingWakesASenderThatWaitsForRoom) {
  int result = 0;
  std::thread sending([&] {
    while (result == 0) result = send(connected_, header(ST_OP_NOP));  // the server does not read
  });
  let_it_wait();
  EXPECT_EQ(st_delete(server_), 0);  // queued requests cannot be sent any more
  sending.join();
  EXPECT_LT(result, 0);
}

}  // namespace
}  // namespace stp::test
