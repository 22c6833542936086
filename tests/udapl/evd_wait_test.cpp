// SPDX-License-Identifier: BSD-3-Clause
// dat_evd_wait: a case for each promise of its page.
#include <pthread.h>

#include <csignal>
#include <thread>

#include "tests/udapl/udapl_fixture.h"

namespace stp::test {
namespace {

using namespace udapl;
using std::chrono::milliseconds;

class EvdWait : public LibstTest {
 protected:
  void post(int count) {
    for (int i = 0; i < count; ++i)
      ASSERT_EQ(evd->post_software(reinterpret_cast<void*>(std::intptr_t{i + 1})),
                Result::kSuccess);
  }
  Result wait(std::uint32_t timeout, int threshold = 1) {
    return evd->wait(timeout, threshold, event, nmore);
  }
  // Waits in a thread. Calls `act` when that thread sleeps.
  template <typename Act>
  Result waited(Act act, int threshold = 1, std::uint32_t timeout = kPatience) {
    auto result = Result::kSuccess;
    std::thread waiter([&] { result = wait(timeout, threshold); });
    Event other;
    while (dequeue(*evd, other) != Result::kInvalidState) std::this_thread::yield();
    std::this_thread::sleep_for(milliseconds(20));
    act(waiter);
    waiter.join();
    return result;
  }

  DatSide side;
  std::shared_ptr<Evd> evd = side.evd(8, kStreamSoftware);
  Event event;
  int nmore = -1;
};
STP_BOTH_WAYS(EvdWait);

TEST_P(EvdWait, RemovesTheFirstEventOfTheQueue) {
  post(3);
  for (std::intptr_t i = 1; i <= 3; ++i) {
    ASSERT_EQ(wait(0), Result::kSuccess);
    EXPECT_EQ(event.number, EventNumber::kSoftware);
    EXPECT_EQ(event.pointer, reinterpret_cast<void*>(i));
    EXPECT_EQ(nmore, 3 - i);
  }
}

TEST_P(EvdWait, ATimeoutDequeuesNothingAndReturnsNmore) {
  post(2);
  EXPECT_EQ(wait(1000, 3), Result::kTimeoutExpired);
  EXPECT_EQ(nmore, 2);
  EXPECT_EQ(wait(0, 2), Result::kSuccess);
}

TEST_P(EvdWait, AThresholdLargerThanTheQueueLengthIsAnInvalidParameter) {
  EXPECT_EQ(wait(0, 9), Result::kInvalidParameter);
  EXPECT_EQ(wait(0, 8), Result::kTimeoutExpired);
  ASSERT_EQ(evd->resize(9), Result::kSuccess);
  EXPECT_EQ(wait(0, 9), Result::kTimeoutExpired);
}

TEST_P(EvdWait, ANonPositiveThresholdIsAnInvalidParameter) {
  post(1);
  EXPECT_EQ(wait(0, 0), Result::kInvalidParameter);
  EXPECT_EQ(wait(0, -1), Result::kInvalidParameter);
}

TEST_P(EvdWait, AThresholdOtherThanOneIsAnInvalidStateWhereTheConsumerControlsNotification) {
  for (const auto flag : {kUnsignalled, kSolicitedWait}) {
    DatSide controlled(flag);
    const auto ep = controlled.make_ep();
    EXPECT_EQ(controlled.recv->wait(0, 2, event, nmore), Result::kInvalidState);
    EXPECT_EQ(controlled.recv->wait(0, 1, event, nmore), Result::kTimeoutExpired);
  }
  DatSide controlled(0, kUnsignalled);
  const auto ep = controlled.make_ep();
  EXPECT_EQ(controlled.request->wait(0, 2, event, nmore), Result::kInvalidState);
}

TEST_P(EvdWait, ReturnsOnceTheThresholdIsReachedWithNmoreAtLeastThresholdMinusOne) {
  EXPECT_EQ(waited([&](auto&) { post(3); }, 3), Result::kSuccess);
  EXPECT_EQ(event.pointer, reinterpret_cast<void*>(1));
  EXPECT_EQ(nmore, 2);
}

TEST_P(EvdWait, AWaiterOwnsTheEvdAndOtherDequeuesAreAnInvalidState) {
  const auto result = waited([&](auto&) {
    Event other;
    int more = 0;
    EXPECT_EQ(evd->wait(0, 1, other, more), Result::kInvalidState);
    EXPECT_EQ(dequeue(*evd, other), Result::kInvalidState);
    post(1);
  });
  EXPECT_EQ(result, Result::kSuccess);
}

TEST_P(EvdWait, AnUnwaitableEvdIsAnInvalidState) {
  post(1);
  ASSERT_EQ(evd->set_waitable(false), Result::kSuccess);
  EXPECT_EQ(wait(0), Result::kInvalidState);
  EXPECT_EQ(dequeue(*evd, event), Result::kSuccess);
  post(1);
  ASSERT_EQ(evd->set_waitable(true), Result::kSuccess);
  EXPECT_EQ(wait(0), Result::kSuccess);
}

TEST_P(EvdWait, BecomingUnwaitableEndsAWaitWithInvalidState) {
  EXPECT_EQ(waited([&](auto&) { evd->set_waitable(false); }), Result::kInvalidState);
}

TEST_P(EvdWait, DestroyingTheEvdEndsAWaitWithAbort) {
  EXPECT_EQ(waited([&](auto&) { EXPECT_EQ(evd->free(), Result::kSuccess); }), Result::kAbort);
  EXPECT_EQ(wait(0), Result::kInvalidHandle);
}

TEST_P(EvdWait, ClosingTheIaEndsAWaitWithAbort) {
  EXPECT_EQ(waited([&](auto&) { EXPECT_EQ(side.ia->close(true), Result::kSuccess); }),
            Result::kAbort);
}

TEST_P(EvdWait, ASignalInterruptsAndNmoreIsDefined) {
  struct sigaction action {};
  action.sa_handler = [](int) {};
  ASSERT_EQ(::sigaction(SIGUSR1, &action, nullptr), 0);
  const auto interrupt = [&](std::thread& waiter) {
    post(1);
    ::pthread_kill(waiter.native_handle(), SIGUSR1);
  };
  const auto result = waited(interrupt, 2);
  EXPECT_EQ(result, Result::kInterruptedCall);
  EXPECT_EQ(nmore, 1);
}

TEST_P(EvdWait, ATimeoutDoesNotRestartWhenAnEventWakesTheWaiter) {
  const auto begin = std::chrono::steady_clock::now();
  const auto result = waited(
      [&](auto&) {
        for (int i = 0; i < 5; ++i) {
          post(1);
          std::this_thread::sleep_for(milliseconds(60));
        }
      },
      8, 200'000);
  EXPECT_EQ(result, Result::kTimeoutExpired);
  EXPECT_GE(std::chrono::steady_clock::now() - begin, milliseconds(200));
}

TEST_P(EvdWait, WaitersOnSeveralEvdsAreEachWokenByTheirOwn) {
  const auto other = side.evd(8, kStreamSoftware);
  auto result = Result::kTimeoutExpired;
  std::thread second([&] {
    Event theirs;
    int more = 0;
    result = other->wait(kPatience, 1, theirs, more);
  });
  EXPECT_EQ(waited([&](auto&) {
              other->post_software(nullptr);
              post(1);
            }),
            Result::kSuccess);
  second.join();
  EXPECT_EQ(result, Result::kSuccess);
}

TEST_P(EvdWait, TheCnoIsNotTriggeredWhileAConsumerWaits) {
  std::shared_ptr<Cno> cno;
  ASSERT_EQ(Cno::create(*side.ia, {}, cno), Result::kSuccess);
  ASSERT_EQ(evd->modify_cno(cno), Result::kSuccess);
  EXPECT_EQ(waited([&](auto&) { post(1); }), Result::kSuccess);
  void* triggered = nullptr;
  EXPECT_EQ(cno->wait(0, triggered), Result::kTimeoutExpired);
  post(1);
  EXPECT_EQ(cno->wait(0, triggered), Result::kSuccess);
}

TEST_P(EvdWait, WhoDoesNotSleepIsNotInTheWayOfOthers) {
  constexpr int kRounds = 20'000;
  const auto looks = [&](auto look) {
    for (int i = 0; i < kRounds; ++i) ASSERT_EQ(look(), Result::kSuccess);
  };
  const auto fine = [](Result result) {
    const auto empty = result == Result::kTimeoutExpired || result == Result::kQueueEmpty;
    return empty ? Result::kSuccess : result;
  };
  std::thread waits([&] { looks([&] { return fine(wait(0)); }); });
  std::thread dequeues([&] {
    Event other;
    looks([&] { return fine(dequeue(*evd, other)); });
  });
  for (int i = 0; i < kRounds; ++i) static_cast<void>(evd->post_software(nullptr));
  waits.join();
  dequeues.join();
}

TEST_P(EvdWait, AnEventThatOverflowsTheQueueIsToldAsynchronously) {
  const auto small = side.evd(1, kStreamDto);
  side.recv = small;
  const auto ep = side.make_ep();
  ASSERT_EQ(held(ep)->post_recv({}, 1, 0), Result::kSuccess);
  ASSERT_EQ(held(ep)->post_recv({}, 2, 0), Result::kSuccess);
  ASSERT_EQ(ep->free(), Result::kSuccess);  // flushes both
  EXPECT_EQ(DatSide::next(*side.async).number, EventNumber::kEvdOverflow);
}

}  // namespace
}  // namespace stp::test
