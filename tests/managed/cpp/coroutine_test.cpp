// SPDX-License-Identifier: BSD-3-Clause
// <stp/coroutine.hpp>, as a program uses it.
#include <stp/coroutine.hpp>

#include <array>
#include <string>

#include "tests/managed/cpp/ends.h"

namespace stp {
namespace {

using test::kPatience;

// One Loop for both ends.
class Coroutines : public testing::Test {
 protected:
  Task<> serve(Connection connection) {
    Mailbox news(loop_);
    std::vector<char> bytes(100);
    const auto memory = register_memory(domain_, bytes, STM_LOCAL_WRITE);
    accept(connection, connection_attr(loop_, news.context()));
    try {
      for (;;) {
        const auto received = co_await loop_.receive(connection, {memory, bytes});
        co_await loop_.send(connection, {memory, {bytes.data(), received.length}}, received.tag);
      }
    } catch (const Error& end) {
      ends_.push_back(end.code());
    }
  }
  Task<> listen_for(int sessions) {
    Mailbox requests(loop_);
    const auto listener = listen(domain_, ":4701", loop_, requests.context());
    for (; sessions > 0; --sessions) {
      auto event = co_await requests.next();
      sessions_.start(serve(std::move(std::get<Request>(event).connection)));
    }
  }
  Task<std::string> ask(std::string text) {
    Mailbox news(loop_);
    const auto connection = make_connection(domain_, connection_attr(loop_, news.context()));
    if (!co_await connected(connection, news, "127.0.0.1:4701", kPatience)) co_return "refused";
    std::vector<char> bytes(100);
    text.copy(bytes.data(), bytes.size());
    const auto memory = register_memory(domain_, bytes, STM_LOCAL_WRITE);
    co_await loop_.send(connection, {memory, {bytes.data(), text.size()}}, 5);
    const auto received = co_await loop_.receive(connection, {memory, bytes});
    EXPECT_EQ(received.tag, 5U);
    disconnect(connection);
    const auto event = co_await news.next();
    EXPECT_TRUE(std::holds_alternative<Disconnected>(event));
    co_return std::string(bytes.data(), received.length);
  }

  Domain domain_ = open_domain("loop");
  Loop loop_{domain_, 1000};
  std::vector<std::error_code> ends_;
  Tasks sessions_;
};

TEST_F(Coroutines, SeveralClientsAreServedAtOnce) {
  auto server = listen_for(3);
  auto one = ask("one"), two = ask("two"), three = ask("three");
  EXPECT_EQ(loop_.run_until(three), "three");
  EXPECT_EQ(loop_.run_until(two), "two");
  EXPECT_EQ(loop_.run_until(one), "one");
  loop_.run_until(server);
  while (ends_.size() < 3) loop_.run(std::chrono::milliseconds(1));
  for (const auto& end : ends_) EXPECT_EQ(end, std::errc::not_connected);
}

TEST_F(Coroutines, WhatATaskThrowsReachesWhoWaitsForIt) {
  auto task = [](Loop& loop, stm_domain_t domain) -> Task<int> {
    Mailbox news(loop);
    const auto connection = make_connection(domain, connection_attr(loop, news.context()));
    const auto nested = [&]() -> Task<> {
      co_await connected(connection, news, "127.0.0.1:4799", kPatience);
    };
    try {
      co_await nested();
    } catch (const Error& error) {
      co_return error.code().value();
    }
    co_return 0;
  }(loop_, domain_);
  EXPECT_EQ(loop_.run_until(task), ECONNREFUSED);
}

TEST_F(Coroutines, ATaskThatIsDestroyedTakesItsOperationBack) {
  Mailbox requests(loop_), theirs(loop_), ours(loop_);
  const auto listener = listen(domain_, ":4701", loop_, requests.context());
  const auto client = make_connection(domain_, connection_attr(loop_, ours.context()));
  connect(client, "127.0.0.1:4701", kPatience);
  const auto accept_one = [&]() -> Task<Connection> {
    auto event = co_await requests.next();
    auto connection = std::move(std::get<Request>(event).connection);
    accept(connection, connection_attr(loop_, theirs.context()));
    co_return connection;
  };
  auto accepted = accept_one();
  const auto server = loop_.run_until(accepted);
  std::array<char, 8> first{}, second{};
  std::string text = "text";
  const auto to_first = register_memory(domain_, first, STM_LOCAL_WRITE);
  const auto to_second = register_memory(domain_, second, STM_LOCAL_WRITE);
  const auto from = register_memory(domain_, text, STM_LOCAL_READ);
  const auto receive = [&](Part to) -> Task<> { co_await loop_.receive(server, to); };
  {
    auto dropped = receive({to_first, first});
    EXPECT_FALSE(dropped.done());
  }
  auto received = receive({to_second, second});
  auto sent = loop_.send(client, {from, text});
  loop_.run_until(received);
  sent.wait(kPatience);
  EXPECT_STREQ(second.data(), "text");
  EXPECT_STREQ(first.data(), "");
}

TEST_F(Coroutines, ATaskThatAwaitsAnEventCanBeDestroyed) {
  Mailbox box(loop_);
  const auto await = [](Mailbox& in) -> Task<> { co_await in.next(); };
  { auto dropped = await(box); }
  auto waiting = await(box);
  ASSERT_EQ(stm_queue_post(loop_, box.context()), 0);
  loop_.run_until(waiting);
}

TEST_F(Coroutines, EventsOfTheProgramWakeAMailbox) {
  Mailbox box(loop_);
  auto task = [](Loop& loop, Mailbox& in) -> Task<> {
    const auto event = co_await in.next();
    EXPECT_TRUE(std::holds_alternative<UserEvent>(event));
    loop.stop();
  }(loop_, box);
  ASSERT_EQ(stm_queue_post(loop_, box.context()), 0);
  loop_.run();
  EXPECT_TRUE(task.done());
}

}  // namespace
}  // namespace stp
