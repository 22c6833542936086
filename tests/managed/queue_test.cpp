// SPDX-License-Identifier: BSD-3-Clause
// Queues: bounds, waiting, and use in an event loop. Pools.
#include "libst/managed/queue.h"

#include <poll.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <optional>
#include <thread>

#include "dpdk_port/link/link.h"
#include "tests/managed/managed_fixture.h"
#include "tests/managed/scripted_link.h"
#include "tests/managed/two_sessions.h"

namespace stp::test {
namespace {

class Queues : public ManagedApi {};
STP_BOTH_WAYS(Queues);

bool readable(int fd, int milliseconds) {
  pollfd what{fd, POLLIN, 0};
  return ::poll(&what, 1, milliseconds) == 1;
}

TEST_P(Queues, ADomainKnowsItsLink) {
  stm_domain_info_t info{};
  info.size = sizeof info;
  ASSERT_EQ(stm_domain_query(client.domain, &info), 0);
  EXPECT_NE(info.mac, 0U);
  EXPECT_GE(info.mtu, 1'500U);
}

// The thread of a domain that no program thread polls works at once, not only when its sleep ends,
// after 100 ms. On a busy machine some rounds take long all the same.
TEST_P(Queues, ADomainThatIsNotVisitedGoesOnAtOnce) {
  constexpr int kRounds = 500, kEnough = 50;
  Buffer mine(1 << 16);
  const auto source = client.memory(mine.data(), mine.size());
  const auto sink = server.memory(mine.data(), mine.size());
  int quick = 0;
  for (int i = 0; i < kRounds && quick < kEnough; ++i) {
    const auto context = static_cast<std::uint64_t>(i);
    const auto begin = std::chrono::steady_clock::now();
    ASSERT_EQ(stm_send(client.connection, context, STM_QUIET, 0, source, mine.data(), 60'000), 0);
    ASSERT_EQ(stm_receive(server.connection, context, sink, mine.data(), 60'000), 0);
    ASSERT_EQ(server.completion(context).status, 0);
    const auto took = std::chrono::steady_clock::now() - begin;
    if (took < std::chrono::milliseconds(20)) ++quick;
    stm_event_t event;
    stm_queue_poll(client.queue, &event, 1);
  }
  EXPECT_EQ(quick, kEnough);
}

TEST_P(Queues, APostThatWouldFindNoPlaceForItsCompletionIsRefused) {
  Buffer mine(1 << 16);
  const auto memory = client.memory(mine.data(), mine.size());
  stm_queue_t small = nullptr;
  ASSERT_EQ(stm_queue_create(client.domain, 4, &small), 0);
  auto attr = client.attr();
  attr.receives = small;
  stm_connection_t connection = nullptr;
  ASSERT_EQ(stm_connection_create(client.domain, &attr, &connection), 0);
  for (std::uint64_t i = 0; i < 4; ++i)
    ASSERT_EQ(stm_receive(connection, i, memory, mine.data(), 10), 0);
  EXPECT_EQ(stm_receive(connection, 4, memory, mine.data(), 10), -EAGAIN);
  EXPECT_EQ(stm_queue_post(small, 1), -EAGAIN);
  EXPECT_EQ(stm_queue_resize(small, 0), -EINVAL);
  EXPECT_EQ(stm_queue_resize(small, 3), -EINVAL);
  EXPECT_NE(std::string(st_strerror(-EINVAL)).find("capacity"), std::string::npos);
  EXPECT_EQ(stm_queue_resize(small, 5), 0);
  EXPECT_EQ(stm_queue_post(small, 99), 0);
  EXPECT_EQ(stm_queue_destroy(small), -EBUSY);
  ASSERT_EQ(stm_connection_close(connection), 0);
  stm_event_t events[8];
  ASSERT_EQ(stm_queue_poll(small, events, 8), 5);
  EXPECT_EQ(events[0].kind, STM_USER);
  EXPECT_EQ(events[0].context, 99U);
  for (int i = 1; i < 5; ++i) EXPECT_EQ(events[i].status, -ECANCELED);
  EXPECT_EQ(stm_queue_destroy(small), 0);
}

TEST_P(Queues, RequestsThatFindNoPlaceWaitForOne) {
  stm_queue_t small = nullptr;
  ASSERT_EQ(stm_queue_create(server.domain, 1, &small), 0);
  stm_listener_t second = nullptr;
  ASSERT_EQ(stm_listen(server.domain, ":3001", small, 0, 0, &second), 0);
  for (int i = 0; i < 5; ++i) {
    const auto attr = client.attr();
    ASSERT_EQ(stm_connection_create(client.domain, &attr, &client.connection), 0);
    ASSERT_EQ(stm_connect(client.connection, ":3001", -1, nullptr, 0), 0);
  }
  for (int i = 0; i < 5; ++i) {
    stm_event_t event;
    ASSERT_EQ(stm_queue_wait(small, 1, &event, 1, 20'000'000), 1);
    ASSERT_EQ(event.kind, STM_REQUEST);
    ASSERT_EQ(stm_reject(event.connection, nullptr, 0), 0);
  }
  for (int i = 0; i < 5; ++i) client.next(STM_REFUSED);
}

// Each would keep memory and a handle of the server's program until that has looked at it.
TEST_P(Queues, RequestsOfThoseThatHaveGoneBeforeTheyWereToldAreNone) {
  stm_queue_t small = nullptr;
  ASSERT_EQ(stm_queue_create(server.domain, 1, &small), 0);
  stm_listener_t second = nullptr, third = nullptr;
  ASSERT_EQ(stm_listen(server.domain, ":3001", small, 0, 0, &second), 0);
  ASSERT_EQ(stm_listen(server.domain, ":3002", server.queue, 0, 0, &third), 0);
  const auto connect_to = [this](const char* port) {
    const auto attr = client.attr();
    stm_connection_t made = nullptr;
    EXPECT_EQ(stm_connection_create(client.domain, &attr, &made), 0);
    EXPECT_EQ(stm_connect(made, port, -1, nullptr, 0), 0);
    return made;
  };
  // What the client did before has come when this one asks.
  const auto all_has_come = [&] {
    for (int i = 0; i < 2; ++i) {
      auto* const last = connect_to(":3002");
      ASSERT_EQ(stm_reject(server.next(STM_REQUEST).connection, nullptr, 0), 0);
      EXPECT_EQ(client.next(STM_REFUSED).connection, last);
      EXPECT_EQ(stm_connection_close(last), 0);
    }
  };
  connect_to(":3001");  // the only place is its event's
  all_has_come();
  for (int i = 0; i < 5; ++i) {
    auto* const goes = connect_to(":3001");
    all_has_come();
    EXPECT_EQ(stm_connection_close(goes), 0);
  }
  connect_to(":3001");
  all_has_come();
  stm_event_t event;
  int told = 0;
  while (stm_queue_wait(small, 1, &event, 1, told < 2 ? 5'000'000 : 200'000) == 1) {
    ASSERT_EQ(event.kind, STM_REQUEST);
    EXPECT_EQ(stm_reject(event.connection, nullptr, 0), 0);
    ++told;
  }
  EXPECT_EQ(told, 2) << "the first and the last one";
}

TEST_P(Queues, WaitingEndsWithTheThresholdOrTheTime) {
  stm_event_t events[8];
  EXPECT_EQ(stm_queue_wait(client.queue, 1, events, 8, 1'000), -EWOULDBLOCK);
  EXPECT_EQ(stm_queue_wait(client.queue, 1, events, 8, 0), -EWOULDBLOCK);
  EXPECT_EQ(stm_queue_wait(client.queue, 9, events, 8, 0), -EINVAL);
  ASSERT_EQ(stm_queue_post(client.queue, 1), 0);
  ASSERT_EQ(stm_queue_post(client.queue, 2), 0);
  EXPECT_EQ(stm_queue_wait(client.queue, 3, events, 8, 1'000), 2) << "what is there";
  std::thread later([&] {
    for (std::uint64_t i = 0; i < 3; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      EXPECT_EQ(stm_queue_post(client.queue, i), 0);
    }
  });
  EXPECT_EQ(stm_queue_wait(client.queue, 3, events, 8, -1), 3);
  later.join();
}

TEST_P(Queues, TheDescriptorIsReadableExactlyWhileEventsWait) {
  const auto fd = stm_queue_fd(client.queue);
  ASSERT_GE(fd, 0);
  EXPECT_EQ(stm_queue_fd(client.queue), fd);
  EXPECT_FALSE(readable(fd, 0));
  ASSERT_EQ(stm_queue_post(client.queue, 1), 0);
  ASSERT_EQ(stm_queue_post(client.queue, 2), 0);
  EXPECT_TRUE(readable(fd, 0));
  stm_event_t event;
  ASSERT_EQ(stm_queue_poll(client.queue, &event, 1), 1);
  EXPECT_TRUE(readable(fd, 0)) << "one is left";
  ASSERT_EQ(stm_queue_poll(client.queue, &event, 1), 1);
  EXPECT_FALSE(readable(fd, 0));
}

TEST_P(Queues, AServerThatSleepsInEpollIsWokenByAMessage) {
  Buffer from(1 << 16), to(1 << 16);
  const auto source = client.memory(from.data(), from.size());
  const auto sink = server.memory(to.data(), to.size());
  const auto loop = ::epoll_create1(0);
  epoll_event wanted{};
  wanted.events = EPOLLIN;
  ASSERT_EQ(::epoll_ctl(loop, EPOLL_CTL_ADD, stm_queue_fd(server.queue), &wanted), 0);
  for (std::uint64_t round = 0; round < 20; ++round) {
    ASSERT_EQ(stm_receive(server.connection, round, sink, to.data(), to.size()), 0);
    std::thread sender([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
      EXPECT_EQ(stm_send(client.connection, 0, STM_QUIET, 0, source, from.data(),
                         round % 2 == 0 ? 10 : 60'000),
                0);
    });
    epoll_event got{};
    stm_event_t event{};
    do {
      ASSERT_EQ(::epoll_wait(loop, &got, 1, 20'000), 1);
    } while (stm_queue_poll(server.queue, &event, 1) == 0);
    EXPECT_EQ(event.context, round);
    sender.join();
  }
  ::close(loop);
}

TEST_P(Queues, ConnectionsShareTheReceivesOfAPool) {
  Buffer mine(1 << 16, 6), to(1 << 16, 0, false);
  const auto source = client.memory(mine.data(), mine.size());
  const auto sink = server.memory(to.data(), to.size());
  stm_pool_t pool = nullptr;
  ASSERT_EQ(stm_pool_create(server.domain, 8, &pool), 0);
  std::vector<stm_connection_t> clients;
  for (int i = 0; i < 3; ++i) {
    connect();
    clients.push_back(client.connection);
    auto attr = server.attr();
    attr.pool = pool;
    const auto request = server.next(STM_REQUEST).connection;
    ASSERT_EQ(stm_accept(request, &attr, nullptr, 0), 0);
    EXPECT_EQ(stm_receive(request, 1, sink, to.data(), 1), -EINVAL);
    client.next(STM_CONNECTED);
  }
  for (const auto connection : clients)
    for (int i = 0; i < 2; ++i)
      ASSERT_EQ(stm_send(connection, 0, STM_QUIET, 0, source, mine.data(), i == 0 ? 100 : 9'000),
                0);
  EXPECT_EQ(stm_pool_post(pool, 1, source, mine.data(), 1), -EINVAL) << "of another domain";
  EXPECT_EQ(stm_pool_available(pool), 0);
  for (std::uint64_t i = 0; i < 8; ++i)
    ASSERT_EQ(stm_pool_post(pool, 50 + i, sink, to.data() + i * 8'000, i < 6 ? 9'000 : 100), 0);
  for (std::uint64_t i = 0; i < 6; ++i) EXPECT_EQ(server.completion(50 + i).status, 0);
  EXPECT_EQ(stm_pool_available(pool), 2);
  EXPECT_EQ(stm_pool_destroy(pool, nullptr, nullptr), -EBUSY);
  for (const auto connection : clients) stm_connection_close(connection);
  for (int i = 0; i < 3; ++i) server.next(STM_DISCONNECTED);
  std::vector<std::uint64_t> back;
  ASSERT_EQ(stm_pool_destroy(
                pool,
                [](void* user, std::uint64_t context) {
                  static_cast<std::vector<std::uint64_t>*>(user)->push_back(context);
                },
                &back),
            0);
  EXPECT_EQ(back, (std::vector<std::uint64_t>{56, 57}));
}

TEST_P(Queues, ThreadsPostAndWaitAtOnceAndNothingIsLost) {
  constexpr unsigned kThreads = 3, kEach = 200;
  constexpr std::size_t kLongest = 8'192;
  Buffer from(1 << 16), to(kThreads * kEach * kLongest);
  const auto source = client.memory(from.data(), from.size(), STM_LOCAL_READ);
  const auto sink = server.memory(to.data(), to.size());
  for (unsigned i = 0; i < kThreads * kEach; ++i)
    ASSERT_EQ(stm_receive(server.connection, i, sink, to.data() + i * kLongest, kLongest), 0);
  std::atomic<unsigned> received = 0, sent = 0;
  std::vector<std::thread> threads;
  const auto count = [](Side& side, std::atomic<unsigned>& done) {
    stm_event_t events[8];
    while (done < kThreads * kEach) {
      const auto got = stm_queue_wait(side.queue, 1, events, 8, 20'000);
      for (int i = 0; i < got; ++i) EXPECT_EQ(events[i].status, 0);
      if (got > 0) done += static_cast<unsigned>(got);
    }
  };
  for (unsigned t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      for (unsigned i = 0; i < kEach; ++i)
        ASSERT_EQ(
            stm_send(client.connection, i, 0, 0, source, from.data(), i % 4 == 0 ? 8'000 : 64), 0);
    });
    threads.emplace_back([&] { count(server, received); });
    threads.emplace_back([&] { count(client, sent); });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(received, kThreads * kEach);
  EXPECT_EQ(sent, kThreads * kEach);
}

}  // namespace
}  // namespace stp::test

namespace stp::managed {
namespace {

using PostedReceives = OnScriptedLink;

TEST_F(PostedReceives, TakeMessagesUpToTheirLength) {
  PostedReceive receive;
  EXPECT_EQ(receive.refusal(0), 0) << "an empty message needs no memory";
  EXPECT_EQ(receive.refusal(1), -EMSGSIZE);
  receive.memory = MemoryUse(memory(STM_LOCAL_WRITE));
  receive.length = 100;
  EXPECT_EQ(receive.refusal(100), 0);
  EXPECT_EQ(receive.refusal(101), -EMSGSIZE);
  EXPECT_EQ(receive.refusal(~std::uint64_t{0}), -EMSGSIZE);
}

TEST_F(PostedReceives, TakeNothingInMemoryThatTheProgramHasTakenBack) {
  const auto back = memory(STM_LOCAL_WRITE);
  PostedReceive receive;
  receive.memory = MemoryUse(back);
  receive.length = 100;
  back->withdrawn = true;
  EXPECT_EQ(receive.refusal(0), -EACCES);
  EXPECT_EQ(receive.refusal(101), -EACCES) << "the cause that counts";
}

TEST_F(PostedReceives, HoldTheirMemoryWhileTheyArePosted) {
  const auto held = memory(STM_LOCAL_WRITE);
  Pool pool(domain, 2);
  for (int i = 0; i < 2; ++i) {
    PostedReceive receive;
    receive.memory = MemoryUse(held);
    pool.receives.push_back(std::move(receive));
  }
  EXPECT_EQ(held->uses, 2U);
  pool.receives.pop_front();
  EXPECT_EQ(held->uses, 1U);
}

TEST_F(TwoSessions, ReportsNeedPlacesForTheBeginningAndTheEnd) {
  a.reports.close();
  ASSERT_TRUE(a.queue->reserve(kPlaces - 1));
  EXPECT_EQ(a.reports.open(a.outlets()), -EAGAIN);
  EXPECT_FALSE(a.reports.is_open());
  a.queue->release(1);
  auto outlets = a.outlets();
  outlets.context = 9;
  ASSERT_EQ(a.reports.open(std::move(outlets)), 0);
  EXPECT_FALSE(a.queue->reserve(1));
  a.reports.set_handle(0x77);
  a.reports.tell(STM_CONNECTED, 0);
  a.reports.tell(STM_FAILED, -ETIMEDOUT);
  a.reports.tell(STM_FAILED, -EPROTO);  // no place is left for it
  EXPECT_EQ(a.event().kind, unsigned{STM_CONNECTED});
  const auto end = a.event();
  EXPECT_EQ(end.status, -ETIMEDOUT);
  EXPECT_EQ(end.context, 9U);
  EXPECT_EQ(end.connection, reinterpret_cast<stm_connection_t>(0x77));
  EXPECT_EQ(a.event().kind, 0U);
}

TEST_F(TwoSessions, ReportsThatAreClosedLetGoOfQueuesAndPool) {
  const auto pool = std::make_shared<Pool>(a.domain, 8);
  a.reports.close();
  ASSERT_FALSE(a.queue->used());
  auto outlets = a.outlets();
  outlets.pool = pool;
  outlets.context = 9;
  ASSERT_EQ(a.reports.open(std::move(outlets)), 0);
  EXPECT_EQ(pool->users, 1U);
  EXPECT_TRUE(a.queue->used());
  a.reports.close();
  EXPECT_EQ(pool->users, 0U);
  EXPECT_FALSE(a.queue->used());
  EXPECT_TRUE(a.queue->reserve(kPlaces)) << "a place is still reserved";
  EXPECT_EQ(a.reports.context(), 9U) << "the program may still ask for it";
}

using port::LinkState;

class LinkWatches : public OnScriptedLink {
 protected:
  void becomes(LinkState state) const {
    link->page().link_state = static_cast<std::uint32_t>(state);
    ++link->page().link_changes;
  }
  std::shared_ptr<Queue> queue_of(std::size_t places) const {
    return std::make_shared<Queue>(domain, places);
  }
  // The next event, after a look at the link.
  std::optional<stm_event_t> told(Queue& queue) {
    watch.look(*link, link->error());
    stm_event_t event{};
    if (queue.take(&event, 1) == 0) return std::nullopt;
    return event;
  }

  LinkWatch watch;
};

TEST_F(LinkWatches, BeginWithThePresentState) {
  becomes(LinkState::kNoCarrier);
  const auto queue = queue_of(2);
  ASSERT_TRUE(watch.begin(*link, queue, 9));
  const auto event = told(*queue);
  ASSERT_TRUE(event);
  EXPECT_EQ(event->kind, unsigned{STM_LINK});
  EXPECT_EQ(event->context, 9U);
  EXPECT_EQ(event->status, -ENETDOWN);
  EXPECT_EQ(event->tag, unsigned{STM_LINK_NO_CARRIER});
  EXPECT_EQ(event->message, 1U);
  EXPECT_FALSE(told(*queue)) << "nothing has changed";
}

TEST_F(LinkWatches, TellEachChangeOnce) {
  const auto queue = queue_of(2);
  ASSERT_TRUE(watch.begin(*link, queue, 0));
  ASSERT_TRUE(told(*queue));
  for (const auto state : {LinkState::kUp, LinkState::kDown, LinkState::kUp}) {
    becomes(state);
    const auto event = told(*queue);
    ASSERT_TRUE(event);
    EXPECT_EQ(event->status, state == LinkState::kUp ? 0 : -ENETDOWN);
    EXPECT_FALSE(told(*queue));
  }
}

TEST_F(LinkWatches, ThatFindNoPlaceTellThePresentStateLater) {
  const auto queue = queue_of(1);
  ASSERT_TRUE(watch.begin(*link, queue, 0));
  for (const auto state : {LinkState::kDown, LinkState::kNoPeer, LinkState::kUp}) {
    becomes(state);
    watch.look(*link, link->error());
    EXPECT_TRUE(watch.is_behind());
  }
  stm_event_t first{};
  ASSERT_EQ(queue->take(&first, 1), 1);
  const auto event = told(*queue);
  ASSERT_TRUE(event);
  EXPECT_EQ(event->tag, unsigned{STM_LINK_UP});
  EXPECT_EQ(event->message, 3U) << "how often it has changed";
  EXPECT_FALSE(watch.is_behind());
  EXPECT_FALSE(told(*queue));
}

TEST_F(LinkWatches, AQueueWithoutAPlaceChangesNothing) {
  const auto queue = queue_of(2), full = queue_of(1);
  ASSERT_TRUE(full->reserve(1));
  EXPECT_FALSE(watch.begin(*link, full, 1));
  EXPECT_FALSE(full->used());
  ASSERT_TRUE(watch.begin(*link, queue, 2));
  ASSERT_TRUE(told(*queue));
  EXPECT_FALSE(watch.begin(*link, full, 3));
  becomes(LinkState::kDown);
  const auto event = told(*queue);
  ASSERT_TRUE(event);
  EXPECT_EQ(event->context, 2U);
}

TEST_F(LinkWatches, AnotherQueueTakesTheReportsOver) {
  const auto first = queue_of(2), second = queue_of(2);
  ASSERT_TRUE(watch.begin(*link, first, 1));
  ASSERT_TRUE(told(*first));
  ASSERT_TRUE(watch.begin(*link, second, 2));
  EXPECT_FALSE(first->used());
  ASSERT_TRUE(told(*second));
  becomes(LinkState::kDown);
  EXPECT_FALSE(told(*first));
  EXPECT_TRUE(told(*second));
}

TEST_F(LinkWatches, AServiceThatHasGoneIsToldOnceWithItsReason) {
  const auto queue = queue_of(2);
  ASSERT_TRUE(watch.begin(*link, queue, 0));
  ASSERT_TRUE(told(*queue));
  link->lost = -ENODEV;
  const auto event = told(*queue);
  ASSERT_TRUE(event);
  EXPECT_EQ(event->status, -ENODEV);
  becomes(LinkState::kUp);
  EXPECT_FALSE(told(*queue)) << "the page is nobody's any more";
}

TEST_F(LinkWatches, ThatHaveEndedTellNothingAndHoldNoQueue) {
  const auto queue = queue_of(2);
  watch.look(*link, link->error());  // nobody has asked
  ASSERT_TRUE(watch.begin(*link, queue, 0));
  ASSERT_TRUE(told(*queue));
  watch.end();
  becomes(LinkState::kDown);
  EXPECT_FALSE(told(*queue));
  EXPECT_FALSE(queue->used());
  EXPECT_TRUE(queue->reserve(2)) << "no place is held";
}

}  // namespace
}  // namespace stp::managed
