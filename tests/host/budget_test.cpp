// SPDX-License-Identifier: BSD-3-Clause
// How users share what there is, and that all of it comes back.
#include "libst/host/budgets.h"

#include <gtest/gtest.h>

#include <list>
#include <thread>
#include <vector>

#include "tests/host/usage.h"

namespace stp::host {
namespace {

constexpr uid_t kAlice = 1'001, kBob = 1'002, kCarol = 1'003;
constexpr auto kThing = Resource::kClients;

TEST(ShareOf, AUserAloneHasAHalfTheSecondASixthTheThirdATwelfth) {
  EXPECT_EQ(share_of(1'200, 0, 1, 50), 600U);
  EXPECT_EQ(share_of(1'200, 600, 2, 50), 200U);
  EXPECT_EQ(share_of(1'200, 800, 3, 50), 100U);
}

TEST(ShareOf, AnybodyMayHaveOneOf256WhileThereIsSomething) {
  EXPECT_EQ(share_of(65'536, 65'000, 100, 50), 256U);
  EXPECT_EQ(share_of(65'536, 65'500, 100, 50), 36U);
  EXPECT_EQ(share_of(65'536, 65'536, 100, 50), 0U);
  EXPECT_EQ(share_of(10, 9, 100, 50), 1U);
}

TEST(ShareOf, TheOperatorChoosesWhatOneWhoIsAloneMayHave) {
  EXPECT_EQ(share_of(1'000, 0, 1, 100), 1'000U);
  EXPECT_EQ(share_of(1'000, 0, 1, 10), 100U);
  EXPECT_EQ(share_of(1'000, 100, 2, 10), 81U);
}

TEST(ShareOf, IsExactForLargeNumbersAndWithoutABoundThereIsNone) {
  constexpr auto kHuge = std::uint64_t{1} << 62;
  EXPECT_EQ(share_of(kHuge, 0, 1, 50), kHuge / 2);
  EXPECT_EQ(share_of(kNoBound, kHuge, 7, 50), kNoBound);
  EXPECT_EQ(share_of(100, 200, 1, 50), 0U);  // the total was lowered since
}

class BudgetsTest : public testing::Test {
 protected:
  BudgetsTest() { budgets->set_total(kThing, 256); }
  // As many as it may have, one by one.
  std::size_t take_all(const Account& account) {
    std::size_t count = 0;
    for (Reservation one; account.reserve(kThing, 1, one); ++count) held.push_back(std::move(one));
    return count;
  }
  const std::shared_ptr<Budgets> budgets = std::make_shared<Budgets>();
  std::list<Reservation> held;
};

TEST_F(BudgetsTest, WhateverSomeTakeAnotherUserFindsSomething) {
  const auto alice = budgets->account(kAlice, false), bob = budgets->account(kBob, false);
  EXPECT_EQ(take_all(alice), 128U);
  EXPECT_EQ(take_all(bob), 42U);
  for (uid_t uid = 2'000; uid < 2'020; ++uid)
    EXPECT_GE(take_all(budgets->account(uid, false)), 1U) << uid;
}

// As of a daemon that may have 256 files open.
TEST_F(BudgetsTest, OfFewFilesSomeTakeAllTheyGetAndAnotherUserHasEnoughForAProgram) {
  budgets->set_total(Resource::kFiles, 84);
  std::vector<Account> accounts;
  std::vector<Reservation> held;
  for (uid_t uid = 1'001; uid <= 1'003; ++uid) {
    accounts.push_back(budgets->account(uid, false));
    Reservation one;
    while (accounts.back().reserve(Resource::kFiles, 1, one)) held.push_back(std::move(one));
  }
  const auto another = budgets->account(1'004, false);
  Reservation program;
  EXPECT_TRUE(another.reserve(Resource::kFiles, kFilesOfAProgram, program)) << held.size();
}

TEST_F(BudgetsTest, AllProgramsOfAUserShareOneBudget) {
  const auto one = budgets->account(kAlice, false), other = budgets->account(kAlice, false);
  EXPECT_EQ(take_all(one) + take_all(other), 128U);
}

TEST_F(BudgetsTest, OneWhoHasMoreThanItsShareKeepsItAndGetsNoMore) {
  const auto alice = budgets->account(kAlice, false), bob = budgets->account(kBob, false);
  take_all(alice);
  EXPECT_EQ(take_all(bob), 42U);
  Reservation one;
  EXPECT_FALSE(alice.reserve(kThing, 1, one));
  EXPECT_EQ(used(*budgets, kThing), 170U);
}

TEST_F(BudgetsTest, TheTrustedAreHeldByTheWholeOnly) {
  const auto root = budgets->account(0, true), alice = budgets->account(kAlice, false);
  EXPECT_EQ(take_all(root), 256U);
  Reservation one;
  EXPECT_FALSE(root.reserve(kThing, 1, one));
  EXPECT_FALSE(alice.reserve(kThing, 1, one));
}

TEST_F(BudgetsTest, WhatGoesIsGivenBackAndAUserWithoutAnythingIsForgotten) {
  {
    const auto alice = budgets->account(kAlice, false);
    Reservation first, second;
    ASSERT_TRUE(alice.reserve(kThing, 100, first));
    EXPECT_FALSE(alice.reserve(kThing, 29, second));
    EXPECT_EQ(second.amount(kThing), 0U);
    EXPECT_EQ(used(*budgets, kThing), 100U);
    first = {};
    EXPECT_EQ(used(*budgets, kThing), 0U);
    ASSERT_TRUE(alice.reserve(kThing, 60, first));
    ASSERT_TRUE(alice.reserve(kThing, 60, second));
    first.join(std::move(second));
    EXPECT_EQ(first.amount(kThing), 120U);
    EXPECT_EQ(second.amount(kThing), 0U);
    first.shrink(kThing, 200);
    EXPECT_EQ(first.amount(kThing), 120U);
    first.shrink(kThing, 110);
    EXPECT_EQ(used(*budgets, kThing), 110U);
    ASSERT_TRUE(alice.reserve(kThing, 10, second));
    first.join(std::move(second));
    auto moved = std::move(first);
    EXPECT_EQ(used(*budgets, kThing), 120U);
    EXPECT_EQ(users(*budgets), 1U);
  }
  EXPECT_EQ(used(*budgets, kThing), 0U);
  EXPECT_EQ(users(*budgets), 0U);
}

TEST_F(BudgetsTest, AnObjectHoldsWhatItTakesOfEachResourceInOneReservation) {
  const auto alice = budgets->account(kAlice, false);
  {
    Reservation held;
    ASSERT_TRUE(alice.reserve(kThing, 100, held));
    ASSERT_TRUE(alice.reserve(Resource::kMx, 3, held));
    ASSERT_TRUE(alice.reserve(kThing, 20, held));
    EXPECT_FALSE(alice.reserve(kThing, 9, held));  // keeps what it has
    EXPECT_EQ(held.amount(kThing), 120U);
    held.shrink(kThing, 50);
    EXPECT_EQ(used(*budgets, kThing), 50U);
    EXPECT_EQ(used(*budgets, Resource::kMx), 3U);
  }
  EXPECT_EQ(used(*budgets, kThing), 0U);
  EXPECT_EQ(used(*budgets, Resource::kMx), 0U);
}

TEST_F(BudgetsTest, AReservationOutlivesItsAccount) {
  Reservation one, nothing;
  {
    const auto alice = budgets->account(kAlice, false);
    ASSERT_TRUE(alice.reserve(kThing, 5, one));
    ASSERT_TRUE(alice.reserve(kThing, 0, nothing));
  }
  one = {};
  EXPECT_EQ(users(*budgets), 1U);
  nothing = {};
  EXPECT_EQ(users(*budgets), 0U);
}

TEST_F(BudgetsTest, ARefusalSaysWhatHowMuchAndTheRemedy) {
  const auto alice = budgets->account(kAlice, false);
  take_all(alice);
  EXPECT_EQ(alice.refusal(kThing),
            "uid 1001 has 128 of 256 places of programs, more exceeds its limit: raise "
            "--max-clients or --user-share");
  // A reply has room for it.
  budgets->set_total(Resource::kTableBytes, std::uint64_t{1} << 40);
  for (std::size_t i = 0; i < kResources; ++i)
    EXPECT_LT(alice.refusal(static_cast<Resource>(i)).size(), 128U + 20U) << i;
}

TEST_F(BudgetsTest, WhoHasWhatIsListedByUser) {
  const auto bob = budgets->account(kBob, false), alice = budgets->account(kAlice, false);
  const auto root = budgets->account(0, true);
  Reservation some, more;
  ASSERT_TRUE(alice.reserve(kThing, 10, some));
  ASSERT_TRUE(bob.reserve(kThing, 20, more));
  const auto first = budgets->after(std::nullopt);
  ASSERT_TRUE(first);
  EXPECT_EQ(first->uid, 0U);
  EXPECT_TRUE(first->trusted);
  EXPECT_EQ(first->most[0], 226U);
  const auto second = budgets->after(0U);
  ASSERT_TRUE(second);
  EXPECT_EQ(second->uid, kAlice);
  EXPECT_EQ(second->used[0], 10U);
  EXPECT_EQ(second->most[0], 78U);  // a third of what bob has left
  EXPECT_EQ(budgets->after(kAlice)->uid, kBob);
  EXPECT_FALSE(budgets->after(kCarol));
}

TEST_F(BudgetsTest, SeveralThreadsTakeAndGiveBack) {
  std::vector<std::thread> threads;
  for (uid_t uid = kAlice; uid <= kCarol; ++uid)
    threads.emplace_back([&, uid] {
      for (int i = 0; i < 2'000; ++i) {
        const auto account = budgets->account(uid, false);
        Reservation one;
        EXPECT_TRUE(account.reserve(kThing, 3, one));
      }
    });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(used(*budgets, kThing), 0U);
  EXPECT_EQ(users(*budgets), 0U);
}

}  // namespace
}  // namespace stp::host
