// SPDX-License-Identifier: BSD-3-Clause
// Unsignalled completions, and the threads of CNOs.
#include <poll.h>
#include <condition_variable>
#include <thread>

#include "tests/udapl/udapl_fixture.h"

namespace stp::test {
namespace {

using namespace udapl;

class Completions : public Dat {
 protected:
  void connect_with(Flags recv, Flags request) {
    server.attr.recv_flags = recv;
    client.attr.request_flags = request;
    connect();
  }
  void send(std::uint64_t cookie, Flags flags) {
    const LmrTriplet from[] = {client.at(0, 8)};
    ASSERT_EQ(held(client.ep)->post_send(from, cookie, flags), Result::kSuccess);
  }
  void post(std::uint64_t cookie, Flags flags) {
    const LmrTriplet into[] = {server.at(0, 8)};
    ASSERT_EQ(held(server.ep)->post_recv(into, cookie, flags), Result::kSuccess);
  }
  // Waits for an event of `from`, which has none, in a thread. Calls `act` when that thread sleeps.
  template <typename Act>
  Result waited(Evd& from, std::uint32_t timeout, Act act) {
    auto result = Result::kSuccess;
    Event other;
    std::thread waiter([&] { result = from.wait(timeout, 1, event, more); });
    while (dequeue(from, other) != Result::kInvalidState) std::this_thread::yield();
    act();
    waiter.join();
    return result;
  }

  Event event;
  int more = -1;
};
STP_BOTH_WAYS(Completions);

TEST_P(Completions, AnUnsignalledRequestWakesNobodyAndIsThereForWhoLooks) {
  connect_with(0, kUnsignalled);
  for (std::uint64_t i = 1; i <= 3; ++i) post(i, 0);
  const auto slept = waited(*client.request, 500'000, [&] { send(1, kUnsignalled); });
  EXPECT_EQ(slept, Result::kTimeoutExpired);
  EXPECT_EQ(more, 1);
  ASSERT_EQ(dequeue(*client.request, event), Result::kSuccess);
  EXPECT_EQ(event.cookie, 1U);
}

TEST_P(Completions, ASignalledRequestWakesTheWaiterBehindUnsignalledOnes) {
  connect_with(0, kUnsignalled);
  for (std::uint64_t i = 1; i <= 2; ++i) post(i, 0);
  const auto woken = waited(*client.request, kPatience, [&] {
    send(1, kUnsignalled);
    send(2, 0);
  });
  EXPECT_EQ(woken, Result::kSuccess);
  EXPECT_EQ(event.cookie, 1U);
  EXPECT_EQ(DatSide::next(*client.request).cookie, 2U);
}

TEST_P(Completions, AnUnsignalledReceiveWakesNobody) {
  connect_with(kUnsignalled, 0);
  post(1, kUnsignalled);
  post(2, 0);
  EXPECT_EQ(waited(*server.recv, 500'000, [&] { send(1, 0); }), Result::kTimeoutExpired);
  EXPECT_EQ(more, 1);
  ASSERT_EQ(dequeue(*server.recv, event), Result::kSuccess);
  EXPECT_EQ(waited(*server.recv, kPatience, [&] { send(2, 0); }), Result::kSuccess);
}

TEST_P(Completions, AnUnsignalledRequestThatFailsWakesTheWaiter) {
  connect_with(0, kUnsignalled);
  const LmrTriplet data[] = {client.at(0, 8)};
  const auto woken = waited(*client.request, kPatience, [&] {
    ASSERT_EQ(held(client.ep)->post_rdma_write(data, 1, {0, 8, 0xdead}, kUnsignalled),
              Result::kSuccess);
  });
  EXPECT_EQ(woken, Result::kSuccess);
  EXPECT_EQ(event.status, DtoStatus::kRemoteAccess);
}

TEST_P(Completions, UnsignalledNeedsTheAttributeOfTheEp) {
  connect_with(0, 0);
  const LmrTriplet from[] = {client.at(0, 8)};
  EXPECT_EQ(held(client.ep)->post_send(from, 1, kUnsignalled), Result::kInvalidParameter);
  EXPECT_EQ(held(server.ep)->post_recv({}, 1, kUnsignalled), Result::kInvalidParameter);
}

// Records the calls of an agent. It may be called until the IA closes.
struct Calls {
  void add(void* evd) {
    std::lock_guard const guard(mutex);
    last = evd;
    ++count;
    changed.notify_all();
  }
  bool await(int wanted) {
    std::unique_lock lock(mutex);
    return changed.wait_for(lock, std::chrono::seconds(20), [&] { return count >= wanted; });
  }
  std::mutex mutex;
  std::condition_variable changed;
  void* last = nullptr;
  int count = 0;
};

TEST_P(Completions, AnAgentIsCalledThoughNobodyWaits) {
  const auto calls = std::make_shared<Calls>();
  std::shared_ptr<Cno> cno;
  ASSERT_EQ(Cno::create(
                *server.ia, [calls](void* evd) { calls->add(evd); }, cno),
            Result::kSuccess);
  ASSERT_EQ(server.recv->modify_cno(cno), Result::kSuccess);
  int handle = 0;
  server.recv->set_handle(&handle);
  connect_with(0, 0);
  post(1, 0);
  send(1, 0);
  ASSERT_TRUE(calls->await(1));
  EXPECT_EQ(calls->last, &handle);
  ASSERT_EQ(dequeue(*server.recv, event), Result::kSuccess);
  EXPECT_EQ(event.cookie, 1U);
}

TEST_P(Completions, AnAgentMayBeReplacedAndTakenAway) {
  const auto before = std::make_shared<Calls>(), after = std::make_shared<Calls>();
  std::shared_ptr<Cno> cno;
  ASSERT_EQ(Cno::create(
                *server.ia, [before](void* evd) { before->add(evd); }, cno),
            Result::kSuccess);
  const auto evd = server.evd(4, kStreamSoftware);
  ASSERT_EQ(evd->modify_cno(cno), Result::kSuccess);
  ASSERT_EQ(evd->post_software(nullptr), Result::kSuccess);
  ASSERT_TRUE(before->await(1));
  ASSERT_EQ(cno->modify_agent([after](void* given) { after->add(given); }), Result::kSuccess);
  ASSERT_EQ(evd->post_software(nullptr), Result::kSuccess);
  ASSERT_TRUE(after->await(1));
  ASSERT_EQ(cno->modify_agent({}), Result::kSuccess);
  ASSERT_EQ(evd->post_software(nullptr), Result::kSuccess);
  void* triggered = nullptr;
  EXPECT_EQ(cno->wait(kPatience, triggered), Result::kSuccess);
  EXPECT_EQ(before->count, 1);
  EXPECT_EQ(after->count, 1);
}

TEST_P(Completions, ADescriptorIsReadableWhileATriggerWaits) {
  int fd = -1;
  std::shared_ptr<Cno> cno;
  ASSERT_EQ(Cno::create_with_fd(*server.ia, fd, cno), Result::kSuccess);
  ASSERT_EQ(server.recv->modify_cno(cno), Result::kSuccess);
  connect_with(0, 0);
  pollfd waiting{fd, POLLIN, 0};
  EXPECT_EQ(::poll(&waiting, 1, 0), 0);
  post(1, 0);
  send(1, 0);
  EXPECT_EQ(::poll(&waiting, 1, 20'000), 1);
  void* triggered = nullptr;
  EXPECT_EQ(cno->take_trigger(triggered), Result::kSuccess);
  EXPECT_EQ(::poll(&waiting, 1, 0), 0);
  EXPECT_EQ(cno->take_trigger(triggered), Result::kQueueEmpty);
}

}  // namespace
}  // namespace stp::test
