// SPDX-License-Identifier: BSD-3-Clause
#include "dpdk_port/link/asked_aside.h"

#include <gtest/gtest.h>

#include <future>
#include <new>
#include <optional>
#include <string>

#include "dpdk_port/link/interfaces.h"

namespace stp::port::asked_aside_test {
namespace {

// A kernel whose lock somebody holds until the test lets go of it, or for ten seconds.
class HeldUp {
 public:
  void wait() { (void)held_.wait_for(std::chrono::seconds(10)); }
  void let_go() { lock_.set_value(); }

 private:
  std::promise<void> lock_;
  const std::shared_future<void> held_ = lock_.get_future().share();
};

constexpr Time kLong = 10 * kSecond;

TEST(AskedAside, WhoAsksGoesOnMeanwhile) {
  HeldUp kernel;
  int asked = 0;
  AskedAside<int> question([&] {
    kernel.wait();
    return ++asked;
  });
  EXPECT_EQ(question.take(), std::nullopt) << "nothing was asked";
  question.begin();
  EXPECT_TRUE(question.is_asked());
  EXPECT_EQ(question.take(), std::nullopt);
  EXPECT_EQ(question.take(kMillisecond), std::nullopt);
  kernel.let_go();
  EXPECT_EQ(question.take(kLong), 1);
  EXPECT_FALSE(question.is_asked());
  EXPECT_EQ(question.take(), std::nullopt) << "once";
  question.begin();
  EXPECT_EQ(question.take(kLong), 2);
}

// An exception in its thread would end the program.
TEST(AskedAside, WhereAskingThrowsTheAnswerIsNone) {
  int asked = 0;
  AskedAside<std::optional<int>> question([&]() -> std::optional<int> {
    if (++asked == 1) throw std::bad_alloc();
    return asked;
  });
  question.begin();
  const auto answer = question.take(kLong);
  ASSERT_TRUE(answer);
  EXPECT_EQ(*answer, std::nullopt);
  EXPECT_FALSE(question.is_asked()) << "it may be asked again";
  question.begin();
  EXPECT_EQ(question.take(kLong), 2);
}

TEST(AskedAside, TheLastListOfAddressesCountsUntilTheNextOneIsHere) {
  const auto old = parse_internet_address("10.9.0.1").value();
  HeldUp kernel;
  int asked = 0;
  HostAddresses addresses([&]() -> HostAddresses::List {
    if (++asked == 1) return std::nullopt;
    if (asked == 2) return HostAddresses::Lists{{{old, 1}}, {{"eth7", 7}, {"lan:a", 7}}};
    kernel.wait();
    return HostAddresses::List{std::in_place};
  });
  EXPECT_FALSE(addresses.has(old, 0, 0)) << "the kernel did not tell";
  EXPECT_FALSE(addresses.has(old, 0, 1)) << "and is not asked all the time";
  const Time later = HostAddresses::kPatience;
  EXPECT_TRUE(addresses.has(old, 0, later));
  EXPECT_TRUE(addresses.has(old, 1, later));
  EXPECT_FALSE(addresses.has(old, 2, later));
  for (const char* const zone : {"eth7", "lan:a", "7"})
    EXPECT_EQ(addresses.index_of(zone, later), 7U) << zone;
  for (const char* const zone : {"lo", "eth", "1", "7 ", "", "a:b", "not-a-name-of-the-kernel"})
    EXPECT_EQ(addresses.index_of(zone, later), 0U) << zone;
  kernel.let_go();
}

TEST(AskedAside, NamesOfInterfacesAreNotKnownBeforeTheKernelTells) {
  HeldUp kernel;
  HostAddresses addresses([&]() -> HostAddresses::List {
    kernel.wait();
    return HostAddresses::Lists{{}, {{"eth7", 7}}};
  });
  EXPECT_EQ(addresses.index_of("eth7", 0), std::nullopt);
  kernel.let_go();
}

TEST(AskedAside, TheListsHaveTheInterfacesOfThisHost) {
  HostAddresses addresses;
  EXPECT_EQ(addresses.index_of("lo", 0), ::if_nametoindex("lo"));
  EXPECT_EQ(addresses.index_of(std::to_string(::if_nametoindex("lo")), 0), ::if_nametoindex("lo"));
}

}  // namespace
}  // namespace stp::port::asked_aside_test
