// SPDX-License-Identifier: BSD-3-Clause
#include "libst/managed/pool.h"

#include <cerrno>

#include "tests/managed/scripted_link.h"

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

}  // namespace
}  // namespace stp::managed
