// SPDX-License-Identifier: BSD-3-Clause
#include "tools/files/receiver.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <stdexcept>
#include <thread>
#include <vector>

namespace stp::files {
namespace {

constexpr auto kLong = std::chrono::hours(1);

// Works whose slices are over after each piece. `hosts`: of each. Returns whose slice each was.
std::vector<std::string> slices_of(const std::vector<std::string>& hosts, std::size_t count) {
  Turns turns(1, Turns::Clock::duration::zero());
  std::vector<std::string> order;  // only who has a slice changes it
  std::atomic<std::size_t> begun{0}, done{0};
  std::vector<std::thread> threads;
  for (const auto& host : hosts)
    threads.emplace_back([&, host] {
      bool first = true;
      const WorkFor whom{turns, host, [&] {
                           if (std::exchange(first, false)) ++begun;
                           return done < count;
                         }};
      Turns::Work work(whom);
      while (work.go_on()) {
        while (begun != hosts.size()) std::this_thread::yield();
        order.push_back(host);
        ++done;
      }
    });
  for (auto& thread : threads) thread.join();
  return order;
}

TEST(Turns, AreOfOneWorkAtATime) {
  Turns turns(1, Turns::Clock::duration::zero());
  std::atomic<int> at_once{0}, most{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&, i] {
      int looks = 0;
      const WorkFor whom{turns, std::to_string(i), [&] { return ++looks < 200; }};
      Turns::Work work(whom);
      for (; work.go_on(); --at_once) most = std::max(most.load(), ++at_once);
    });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(most, 1);
}

TEST(Turns, AreTheSameForHostsWithOneWorkAndWithMany) {
  const auto order = slices_of({"many", "many", "many", "many", "one"}, 400);
  EXPECT_NEAR(static_cast<double>(std::count(order.begin(), order.end(), "one")), 200.0, 20.0);
}

// Or a host that comes again and again would be served before all others.
TEST(Turns, OfHostsThatComeAnewAreNotBeforeThoseThatWait) {
  Turns turns(1, kLong);
  const auto always = [] { return true; };
  const WorkFor holder{turns, "holder", always}, known{turns, "known", always};
  const Turns::Work keeps_it_known(known);
  ASSERT_TRUE(Turns::Work(known).go_on());
  auto held = std::make_unique<Turns::Work>(holder);
  ASSERT_TRUE(held->go_on());
  std::atomic<int> served{0};
  const auto waiting = [&](const std::string& host, int& when) {
    const auto looks = std::make_shared<std::atomic<int>>(0);
    std::thread thread([&, host, looks] {
      const WorkFor whom{turns, host, [looks] { return ++*looks != 0; }};
      Turns::Work work(whom);
      if (work.go_on()) when = ++served;
    });
    while (*looks < 2) std::this_thread::yield();  // it looks again while it waits
    return thread;
  };
  int of_known = 0, of_anew = 0;
  auto anew = waiting("anew", of_anew);
  auto again = waiting("known", of_known);
  held.reset();
  anew.join();
  again.join();
  EXPECT_EQ(of_known, 1);
  EXPECT_EQ(of_anew, 2);
}

TEST(Turns, ASliceLastsForSeveralPieces) {
  Turns turns(1, kLong);
  int looks = 0;
  const WorkFor whom{turns, "host", [&looks] { return ++looks == 1; }};
  Turns::Work work(whom);
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(work.go_on());
  EXPECT_EQ(looks, 1);
}

TEST(Turns, OfWorkThatEndsAreFree) {
  Turns turns(1, kLong);
  const WorkFor whom{turns, "host", [] { return true; }};
  {
    Turns::Work work(whom);
    ASSERT_TRUE(work.go_on());
    // Who waits may end by an exception as well.
    const WorkFor gone{turns, "other", [] {
                         static int looks = 0;
                         if (++looks == 2) throw std::runtime_error("gone");
                         return true;
                       }};
    Turns::Work waiting(gone);
    EXPECT_THROW(static_cast<void>(waiting.go_on()), std::runtime_error);
  }
  Turns::Work next(whom);
  EXPECT_TRUE(next.go_on());
}

}  // namespace
}  // namespace stp::files
