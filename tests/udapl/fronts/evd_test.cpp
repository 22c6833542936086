// SPDX-License-Identifier: BSD-3-Clause
// dat_evd_wait, with a case for each promise of its page. CNOs.
#include <pthread.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <thread>
#include <vector>

#include "tests/udapl/fronts/front_fixture.h"

namespace stp::test {
namespace {

class FrontEvd : public LibstTest {
 protected:
  void post(int count) {
    DAT_EVENT made{};
    made.event_number = DAT_SOFTWARE_EVENT;
    for (int i = 0; i < count; ++i) {
      made.event_data.software_event_data.pointer =
          reinterpret_cast<DAT_PVOID>(std::intptr_t{i + 1});
      ASSERT_EQ(name_of(dat_evd_post_se(evd, &made)), "DAT_SUCCESS");
    }
  }
  std::string wait(DAT_TIMEOUT timeout, DAT_COUNT threshold = 1) {
    return name_of(dat_evd_wait(evd, timeout, threshold, &event, &nmore));
  }
  // Waits in a thread. Calls `act` when that thread sleeps.
  template <typename Act>
  std::string waited(Act act, DAT_COUNT threshold = 1, DAT_TIMEOUT timeout = kPatience) {
    std::string result;
    std::thread waiter([&] { result = wait(timeout, threshold); });
    DAT_EVENT other;
    while (dat_evd_dequeue(evd, &other) != DAT_INVALID_STATE) std::this_thread::yield();
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    act(waiter);
    waiter.join();
    return result;
  }

  Side side;
  DAT_EVD_HANDLE evd = side.evd(8, DAT_EVD_SOFTWARE_FLAG);
  DAT_EVENT event{};
  DAT_COUNT nmore = -1;
};
STP_BOTH_WAYS(FrontEvd);

TEST_P(FrontEvd, TheFirstEventIsRemovedAndNmoreTellsTheRest) {
  post(3);
  EXPECT_EQ(wait(0), "DAT_SUCCESS");
  EXPECT_EQ(event.event_number, DAT_SOFTWARE_EVENT);
  EXPECT_EQ(event.evd_handle, evd);
  EXPECT_EQ(event.event_data.software_event_data.pointer, reinterpret_cast<DAT_PVOID>(1));
  EXPECT_EQ(nmore, 2);
}

TEST_P(FrontEvd, ThresholdsAgainstQueueLength) {
  EXPECT_EQ(wait(0, 9), "DAT_INVALID_PARAMETER");
  EXPECT_EQ(wait(0, 0), "DAT_INVALID_PARAMETER");
  EXPECT_EQ(wait(0, -1), "DAT_INVALID_PARAMETER");
  EXPECT_EQ(wait(0, 8), "DAT_TIMEOUT_EXPIRED");
}

TEST_P(FrontEvd, ATimeoutDequeuesNothingAndReturnsNmore) {
  post(2);
  EXPECT_EQ(wait(1000, 3), "DAT_TIMEOUT_EXPIRED");
  EXPECT_EQ(nmore, 2);
  EXPECT_EQ(wait(0, 2), "DAT_SUCCESS");
}

TEST_P(FrontEvd, AThresholdOtherThanOneWhereTheConsumerControlsNotificationIsAnInvalidState) {
  for (const auto flag : {DAT_COMPLETION_UNSIGNALLED_FLAG, DAT_COMPLETION_SOLICITED_WAIT_FLAG}) {
    const Side controlled(flag);
    controlled.make_ep();
    EXPECT_EQ(name_of(dat_evd_wait(controlled.recv, 0, 2, &event, &nmore)), "DAT_INVALID_STATE");
    EXPECT_EQ(name_of(dat_evd_wait(controlled.recv, 0, 1, &event, &nmore)), "DAT_TIMEOUT_EXPIRED");
  }
}

TEST_P(FrontEvd, AWaiterIsWokenByTheThresholdAndHasTheEvdForItself) {
  const auto result = waited(
      [&](auto&) {
        DAT_EVENT other;
        DAT_COUNT more;
        EXPECT_EQ(dat_evd_wait(evd, 0, 1, &other, &more), DAT_INVALID_STATE);
        EXPECT_EQ(dat_evd_dequeue(evd, &other), DAT_INVALID_STATE);
        post(3);
      },
      3);
  EXPECT_EQ(result, "DAT_SUCCESS");
  EXPECT_EQ(nmore, 2);
}

TEST_P(FrontEvd, AnUnwaitableEvdIsAnInvalidStateBeforeAndDuringAWait) {
  EXPECT_EQ(waited([&](auto&) { dat_evd_set_unwaitable(evd); }), "DAT_INVALID_STATE");
  EXPECT_EQ(wait(0), "DAT_INVALID_STATE");
  ASSERT_EQ(dat_evd_clear_unwaitable(evd), DAT_SUCCESS);
  EXPECT_EQ(wait(0), "DAT_TIMEOUT_EXPIRED");
}

TEST_P(FrontEvd, DestroyingTheEvdOrClosingTheIaEndsAWaitWithAbort) {
  EXPECT_EQ(waited([&](auto&) { EXPECT_EQ(dat_evd_free(evd), DAT_SUCCESS); }), "DAT_ABORT");
  EXPECT_EQ(wait(0), "DAT_INVALID_HANDLE");
  evd = side.evd(8, DAT_EVD_SOFTWARE_FLAG);
  EXPECT_EQ(
      waited([&](auto&) { EXPECT_EQ(dat_ia_close(side.ia, DAT_CLOSE_DEFAULT), DAT_SUCCESS); }),
      "DAT_ABORT");
}

TEST_P(FrontEvd, ASignalInterruptsAWait) {
  struct sigaction action {};
  action.sa_handler = [](int) {};
  ASSERT_EQ(::sigaction(SIGUSR1, &action, nullptr), 0);
  const auto interrupt = [](std::thread& waiter) {
    ::pthread_kill(waiter.native_handle(), SIGUSR1);
  };
  EXPECT_EQ(waited(interrupt), "DAT_INTERRUPTED_CALL");
}

TEST_P(FrontEvd, QueryTellsStateFlagsAndLength) {
  ASSERT_EQ(dat_evd_disable(evd), DAT_SUCCESS);
  ASSERT_EQ(dat_evd_resize(evd, 20), DAT_SUCCESS);
  DAT_EVD_PARAM param{};
  ASSERT_EQ(dat_evd_query(evd, DAT_EVD_FIELD_ALL, &param), DAT_SUCCESS);
  EXPECT_EQ(param.ia_handle, side.ia);
  EXPECT_EQ(param.evd_qlen, 20);
  EXPECT_EQ(param.evd_state, DAT_EVD_STATE_DISABLED | DAT_EVD_STATE_WAITABLE);
  EXPECT_EQ(param.evd_flags, DAT_EVD_SOFTWARE_FLAG);
  EXPECT_EQ(param.cno_handle, DAT_HANDLE_NULL);
}

TEST_P(FrontEvd, AFullQueueRefusesASoftwareEvent) {
  post(8);
  DAT_EVENT made{};
  made.event_number = DAT_SOFTWARE_EVENT;
  EXPECT_EQ(name_of(dat_evd_post_se(evd, &made)), "DAT_QUEUE_FULL");
  made.event_number = DAT_DTO_COMPLETION_EVENT;
  EXPECT_EQ(name_of(dat_evd_post_se(evd, &made)), "DAT_INVALID_PARAMETER");
}

TEST_P(FrontEvd, ACnoTellsWhichEvdHasSomething) {
  DAT_CNO_HANDLE cno = DAT_HANDLE_NULL;
  ASSERT_EQ(dat_cno_create(side.ia, DAT_OS_WAIT_PROXY_AGENT_NULL, &cno), DAT_SUCCESS);
  ASSERT_EQ(dat_evd_modify_cno(evd, cno), DAT_SUCCESS);
  EXPECT_EQ(name_of(dat_cno_free(cno)), "DAT_INVALID_STATE");
  DAT_EVD_HANDLE triggered = DAT_HANDLE_NULL;
  EXPECT_EQ(name_of(dat_cno_wait(cno, 0, &triggered)), "DAT_TIMEOUT_EXPIRED");
  post(1);
  EXPECT_EQ(name_of(dat_cno_wait(cno, kPatience, &triggered)), "DAT_SUCCESS");
  EXPECT_EQ(triggered, evd);
}

TEST_P(FrontEvd, AnAgentIsCalledOnceAndThenNoLongerAssociated) {
  std::atomic<int> calls{0};
  const DAT_OS_WAIT_PROXY_AGENT agent{
      &calls, [](DAT_PVOID data, DAT_EVD_HANDLE) { ++*static_cast<std::atomic<int>*>(data); }};
  DAT_CNO_HANDLE cno = DAT_HANDLE_NULL;
  ASSERT_EQ(dat_cno_create(side.ia, agent, &cno), DAT_SUCCESS);
  DAT_CNO_PARAM param{};
  ASSERT_EQ(dat_cno_query(cno, DAT_CNO_FIELD_ALL, &param), DAT_SUCCESS);
  EXPECT_EQ(agent_of(param).instance_data, &calls);
  ASSERT_EQ(dat_evd_modify_cno(evd, cno), DAT_SUCCESS);
  post(2);
  while (calls == 0) std::this_thread::yield();
  ASSERT_EQ(dat_cno_query(cno, DAT_CNO_FIELD_ALL, &param), DAT_SUCCESS);
  EXPECT_EQ(agent_of(param).proxy_agent_func, nullptr);
  ASSERT_EQ(dat_cno_modify_agent(cno, agent), DAT_SUCCESS);
  post(1);
  while (calls < 2) std::this_thread::yield();
  EXPECT_EQ(calls, 2);
}

class FrontStale : public LibstTest {};
STP_BOTH_WAYS(FrontStale);

TEST_P(FrontStale, AHandleThatOutlivesTheLastIaIsInvalidAndNoCrash) {
  DAT_EVD_HANDLE evd = DAT_HANDLE_NULL;
  for (int i = 0; i < 2; ++i) {
    const Side side;
    EXPECT_EQ(name_of(dat_evd_enable(side.recv)), "DAT_SUCCESS");
    if (i == 0) evd = side.recv;
  }
  DAT_EVENT event;
  EXPECT_EQ(name_of(dat_evd_dequeue(evd, &event)), "DAT_INVALID_HANDLE");
  EXPECT_EQ(name_of(dat_evd_free(evd)), "DAT_INVALID_HANDLE");
}

// As many as the provider makes room for at first, and more.
TEST_P(FrontStale, EachOfManyHandlesIsOfItsOwnEvdUntilThatIsFreed) {
  const Side side;
  std::vector<DAT_EVD_HANDLE> evds(1'200);
  DAT_EVENT event{};
  for (auto& evd : evds) {
    evd = side.evd(1, DAT_EVD_SOFTWARE_FLAG);
    event.event_number = DAT_SOFTWARE_EVENT;
    event.event_data.software_event_data.pointer = &evd;
    ASSERT_EQ(name_of(dat_evd_post_se(evd, &event)), "DAT_SUCCESS");
  }
  for (auto& evd : evds) {
    ASSERT_EQ(name_of(dat_evd_dequeue(evd, &event)), "DAT_SUCCESS");
    EXPECT_EQ(event.event_data.software_event_data.pointer, &evd);
    EXPECT_EQ(event.evd_handle, evd);
  }
  for (auto* const evd : evds) ASSERT_EQ(name_of(dat_evd_free(evd)), "DAT_SUCCESS");
  for (auto* const evd : evds)
    EXPECT_EQ(name_of(dat_evd_dequeue(evd, &event)), "DAT_INVALID_HANDLE");
}

TEST_P(FrontStale, AnEvdIsFreedWhileAnotherThreadAsksIt) {
  const Side side;
  for (int i = 0; i < 8; ++i) {
    auto* const evd = side.evd(1, DAT_EVD_SOFTWARE_FLAG);
    std::atomic<bool> asks{false};
    std::thread asking([&] {
      DAT_EVENT event;
      while (dat_evd_dequeue(evd, &event) == static_cast<DAT_RETURN>(DAT_QUEUE_EMPTY)) asks = true;
      EXPECT_EQ(name_of(dat_evd_dequeue(evd, &event)), "DAT_INVALID_HANDLE");
      asks = true;
    });
    while (!asks) std::this_thread::yield();
    EXPECT_EQ(name_of(dat_evd_free(evd)), "DAT_SUCCESS");
    asking.join();
  }
}

}  // namespace
}  // namespace stp::test
