// SPDX-License-Identifier: BSD-3-Clause
#include <dlfcn.h>
#include <poll.h>
#include <sched.h>

#include <cerrno>
#include <chrono>
#include <utility>

#include "tests/host/eventually.h"
#include "tests/libst/libst_fixture.h"

namespace {

// Of a thread whose core has others to run: its yields take long. How often it has slept itself.
thread_local bool is_crowded = false;
thread_local std::chrono::microseconds next_is_late{0};
thread_local int sleeps = 0;
thread_local bool is_interrupted = false;  // when it sleeps next

}  // namespace

extern "C" __attribute__((visibility("default"))) int sched_yield() {
  static const auto real =
      reinterpret_cast<decltype(&sched_yield)>(::dlsym(RTLD_NEXT, "sched_yield"));
  const auto begin = std::chrono::steady_clock::now();
  auto late = std::exchange(next_is_late, std::chrono::microseconds(0));
  if (is_crowded) late = std::chrono::microseconds(100);
  while (std::chrono::steady_clock::now() - begin < late) {
  }
  return late.count() != 0 ? 0 : real();
}

extern "C" __attribute__((visibility("default"))) int ppoll(pollfd* files, nfds_t count,
                                                            const timespec* timeout,
                                                            const sigset_t* mask) {
  static const auto real = reinterpret_cast<decltype(&ppoll)>(::dlsym(RTLD_NEXT, "ppoll"));
  ++sleeps;
  if (std::exchange(is_interrupted, false)) {  // as if a signal handler had run
    errno = EINTR;
    return -1;
  }
  return real(files, count, timeout, mask);
}

namespace stp::test {
namespace {

class LocalBackend : public ConnectedTest {
 protected:
  // It waits in vain. How often it slept itself.
  int sleeps_of_a_wait(long microseconds = 300) const {
    const auto before = sleeps;
    st_header_t got;
    timeval limit{.tv_sec = 0, .tv_usec = microseconds};
    EXPECT_EQ(st_rx(connected_, &got, nullptr, &limit), -EWOULDBLOCK);
    return sleeps - before;
  }
};
INSTANTIATE_TEST_SUITE_P(Link, LocalBackend, testing::Values(Way::kInProcess), way_name);

// A thread that spins there keeps its core from its peer, and one that has another thread of its
// process wait for the link costs two turns of the scheduler more. On a machine with other work its
// yields may take long before the test begins.
TEST_P(LocalBackend, WhereTheCoreIsCrowdedAThreadSleepsOnTheLinkItself) {
  EXPECT_TRUE(host::eventually([&] { return sleeps_of_a_wait() == 0; }));
  is_crowded = true;
  sleeps_of_a_wait();  // it learns this
  EXPECT_TRUE(host::eventually([&] { return sleeps_of_a_wait() != 0; }));
  is_crowded = false;
}

// Or the signal would be lost: the thread goes on to sleep for as long as it waits.
TEST_P(LocalBackend, WhereTheCoreIsCrowdedASignalEndsAWaitAsWell) {
  is_crowded = true;
  EXPECT_TRUE(host::eventually([&] {
    sleeps_of_a_wait();  // it learns this
    is_interrupted = true;
    st_header_t got;
    timeval limit{.tv_sec = 0, .tv_usec = 5'000};
    const auto error = st_rx(connected_, &got, nullptr, &limit);
    return !std::exchange(is_interrupted, false) && error == -EINTR;
  }));
  is_crowded = false;
}

// The thread that drives the link while no caller does takes the core for a moment, too.
TEST_P(LocalBackend, OneLateYieldIsNoCrowd) {
  EXPECT_TRUE(host::eventually([&] {
    next_is_late = std::chrono::microseconds(100);
    sleeps_of_a_wait();
    return next_is_late.count() == 0 && sleeps_of_a_wait() == 0;
  }));
}

// A program that computes keeps the core for some milliseconds each time that it gets it, but most
// yields give it nothing.
TEST_P(LocalBackend, OneYieldOfMillisecondsIsACrowd) {
  EXPECT_TRUE(host::eventually([&] {
    next_is_late = std::chrono::milliseconds(2);
    sleeps_of_a_wait();
    return next_is_late.count() == 0 && sleeps_of_a_wait() != 0;
  }));
}

// Who waits longer than an answer takes is no different: the thread of its process that drives the
// link instead costs the same turns.
TEST_P(LocalBackend, WhereTheCoreIsCrowdedALongWaitBeginsSo) {
  constexpr long kLong = 5'000;
  EXPECT_TRUE(host::eventually([&] { return sleeps_of_a_wait(kLong) == 0; }));
  is_crowded = true;
  sleeps_of_a_wait();
  EXPECT_TRUE(host::eventually([&] { return sleeps_of_a_wait(kLong) != 0; }));
  is_crowded = false;
}

}  // namespace
}  // namespace stp::test
