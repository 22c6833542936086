// SPDX-License-Identifier: BSD-3-Clause
// <stp/managed.hpp>, as a program uses it: two ends on the link `loop`.
#include <gtest/gtest.h>
#include <stp/managed.hpp>

#include <array>
#include <string>

#include "tests/managed/cpp/ends.h"

namespace stp {
namespace {

using namespace std::chrono_literals;
using test::CppEnds;
using test::kPatience;

class Cpp : public CppEnds<PostQueue> {};

TEST(CppOwners, AFailureIsThrownOrGivenAsAnErrorCode) {
  EXPECT_THROW(open_domain("nothing:of/the/kind"), Error);
  std::error_code error;
  EXPECT_EQ(open_domain("nothing:of/the/kind", error), nullptr);
  EXPECT_TRUE(error) << "it says why";
  const auto domain = open_domain("loop", error);
  EXPECT_FALSE(error) << "and is cleared by a success";
  EXPECT_EQ(make_queue(domain, 0, error), nullptr);
  EXPECT_EQ(error, std::errc::invalid_argument);
}

TEST(CppOwners, BytesAreThoseOfAnyContiguousThing) {
  std::vector<std::uint32_t> words(3);
  const std::string text = "four";
  EXPECT_EQ(Writable(words).size(), 12U);
  EXPECT_EQ(Writable(words).data(), words.data());
  EXPECT_EQ(Readable(text).size(), 4U);
  static_assert(!std::is_constructible_v<Writable, const std::string&>, "what may not be written");
}

TEST_F(Cpp, ARequestThatNobodyAcceptsIsRejected) {
  auto client = ask();
  {
    const auto event = await_event(here_);
    ASSERT_NE(std::get_if<Request>(&event), nullptr);
  }
  const auto event = await_event(there_);
  ASSERT_NE(std::get_if<Refused>(&event), nullptr);
  EXPECT_EQ(std::get<Refused>(event).connection, stm_connection_t(client));
}

TEST_F(Cpp, PrivateDataAndAnEndInGoodOrderAreTold) {
  auto client = ask("please");
  auto event = await_event(here_);
  const auto server = std::move(std::get<Request>(event).connection);
  const auto said = private_data(server);
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(said.data()), said.size()), "please");
  accept(server, connection_attr(here_, 7));
  EXPECT_EQ(std::get<Connected>(await_event(here_)).context, 7U);
  EXPECT_TRUE(std::holds_alternative<Connected>(await_event(there_)));
  EXPECT_EQ(info_of(server).state, STM_UP);
  disconnect(client);
  EXPECT_FALSE(std::get<Disconnected>(await_event(here_)).reason);
}

TEST_F(Cpp, OperationsAreWaitedForInAnyOrder) {
  connect_both();
  std::array<char, 16> got{};
  std::string text = "hello";
  const auto from = register_memory(there_domain_, text, STM_LOCAL_READ);
  const auto to = register_memory(here_domain_, got, STM_LOCAL_WRITE);
  auto receive = here_.receive(server_, {to, got});
  EXPECT_FALSE(receive.done());
  auto send = there_.send(client_, {from, text}, 42);
  const auto received = receive.wait(kPatience);
  EXPECT_EQ(received.length, 5U);
  EXPECT_EQ(received.tag, 42U);
  EXPECT_STREQ(got.data(), "hello");
  EXPECT_EQ(send.wait(kPatience).message, 1U);
}

TEST_F(Cpp, PutsGetsAndFetchesReachARegion) {
  connect_both();
  alignas(8) std::array<std::uint64_t, 2> words{5, 6}, mine{};
  const auto theirs =
      register_memory(here_domain_, words, STM_REMOTE_READ | STM_REMOTE_WRITE | STM_REMOTE_ATOMIC);
  const auto region =
      open_region(theirs, words, STM_REMOTE_READ | STM_REMOTE_WRITE | STM_REMOTE_ATOMIC);
  const auto own = register_memory(there_domain_, mine, STM_LOCAL_WRITE);
  const auto key = region.remote.key;
  there_.get(client_, {own, mine}, key, 0).wait(kPatience);
  EXPECT_EQ(mine[1], 6U);
  mine[0] = 9;
  there_.put(client_, {own, {mine.data(), 8}}, key, 0).wait(kPatience);
  there_.fetch(client_, STM_FETCH_ADD, 3, 0, {own, {&mine[1], 8}}, key, 0).wait(kPatience);
  EXPECT_EQ(mine[1], 9U);
  EXPECT_EQ(words[0], 12U);
  auto beyond = there_.put(client_, {own, mine}, key, 8);
  EXPECT_THROW(beyond.wait(kPatience), Error);
  std::error_code error;
  beyond.wait(kPatience, error);
  EXPECT_EQ(error, std::errc::result_out_of_range);
}

TEST_F(Cpp, AReadIsServed) {
  connect_both();
  std::array<char, 4> got{};
  std::string text = "data";
  const auto to = register_memory(there_domain_, got, STM_LOCAL_WRITE);
  const auto from = register_memory(here_domain_, text, STM_LOCAL_READ);
  auto read = there_.read(client_, {to, got});
  const auto request = std::get<ReadRequest>(await_event(here_));
  EXPECT_EQ(request.length, 4U);
  here_.serve(server_, request, {from, text}).wait(kPatience);
  read.wait(kPatience);
  EXPECT_EQ(std::string(got.data(), 4), "data");
}

TEST_F(Cpp, AnOperationThatIsDestroyedIsTakenBackFirst) {
  connect_both();
  std::array<char, 16> first{}, second{};
  std::string text = "hello";
  const auto from = register_memory(there_domain_, text, STM_LOCAL_READ);
  const auto to = register_memory(here_domain_, first, STM_LOCAL_WRITE);
  const auto also = register_memory(here_domain_, second, STM_LOCAL_WRITE);
  { const auto dropped = here_.receive(server_, {to, first}); }
  auto receive = here_.receive(server_, {also, second});
  auto send = there_.send(client_, {from, text});
  receive.wait(kPatience);
  EXPECT_STREQ(second.data(), "hello");
  EXPECT_STREQ(first.data(), "");
}

TEST_F(Cpp, AnOperationThatIsNotDoneInTimeGoesOn) {
  connect_both();
  std::array<char, 16> got{};
  std::string text = "late";
  const auto from = register_memory(there_domain_, text, STM_LOCAL_READ);
  const auto to = register_memory(here_domain_, got, STM_LOCAL_WRITE);
  auto receive = here_.receive(server_, {to, got});
  std::error_code error;
  receive.wait(1us, error);
  EXPECT_EQ(error, std::errc::operation_would_block);
  EXPECT_THROW(receive.wait(1us), Error);
  there_.send(client_, {from, text}).wait(kPatience);
  EXPECT_EQ(receive.wait(kPatience).length, 4U);
}

TEST_F(Cpp, WhatCannotBePostedIsEmpty) {
  connect_both();
  std::string text = "text";
  const auto from = register_memory(there_domain_, text, STM_LOCAL_READ);
  std::error_code error;
  EXPECT_FALSE(there_.send(client_, {from, text}, 0, STM_QUIET, error)) << "it would tell nothing";
  EXPECT_EQ(error, std::errc::invalid_argument);
  EXPECT_FALSE(there_.receive(client_, {from, text}, error)) << "it may not be written";
  EXPECT_EQ(error, std::errc::permission_denied);
  EXPECT_THROW((void)there_.receive(client_, {from, text}), Error);
}

// A PostQueue takes the events of all, and keeps those that somebody else asks for.
TEST_F(Cpp, WaitingForOneOperationLosesNoEvent) {
  connect_both();
  std::array<char, 16> got{};
  std::string text = "x";
  const auto from = register_memory(there_domain_, text, STM_LOCAL_READ);
  const auto to = register_memory(here_domain_, got, STM_LOCAL_WRITE);
  ASSERT_EQ(stm_queue_post(here_, 99), 0);
  ASSERT_EQ(stm_receive(server_, 1234, to, got.data(), got.size()), 0);
  auto second = here_.receive(server_, {to, got});
  auto a = there_.send(client_, {from, text}), b = there_.send(client_, {from, text});
  second.wait(kPatience);
  EXPECT_EQ(std::get<UserEvent>(await_event(here_)).context, 99U);
  EXPECT_EQ(std::get<Received>(await_event(here_)).context, 1234U) << "posted by the call of C";
}

TEST_F(Cpp, ReceivesOfAPoolAreForEveryConnection) {
  std::array<char, 16> got{};
  std::string text = "hello";
  const auto from = register_memory(there_domain_, text, STM_LOCAL_READ);
  const auto to = register_memory(here_domain_, got, STM_LOCAL_WRITE);
  const auto pool = make_pool(here_domain_, 10);
  post(pool, 17, to, got);
  connect_both(pool);
  auto send = there_.send(client_, {from, text}, 3);
  const auto received = std::get<Received>(await_event(here_));
  EXPECT_EQ(received.context, 17U);
  EXPECT_EQ(received.tag, 3U);
  std::error_code error;
  EXPECT_FALSE(here_.receive(server_, {to, got}, error)) << "it has a pool";
  server_.reset();  // before its pool
}

}  // namespace
}  // namespace stp
