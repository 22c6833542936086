// SPDX-License-Identifier: BSD-3-Clause
#include "dpdk_port/link/asked_aside.h"

#include <gtest/gtest.h>

#include <future>

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

TEST(AskedAside, TheLastListOfAddressesCountsUntilTheNextOneIsHere) {
  const auto old = parse_internet_address("10.9.0.1").value();
  HeldUp kernel;
  int asked = 0;
  HostAddresses addresses([&]() -> HostAddresses::List {
    if (++asked == 1) return std::nullopt;
    if (asked == 2) return HostAddresses::List({{old, 1}});
    kernel.wait();
    return HostAddresses::List{std::in_place};
  });
  EXPECT_FALSE(addresses.has(old, 0, 0)) << "the kernel did not tell";
  EXPECT_FALSE(addresses.has(old, 0, 1)) << "and is not asked all the time";
  const Time later = HostAddresses::kPatience;
  EXPECT_TRUE(addresses.has(old, 0, later));
  EXPECT_TRUE(addresses.has(old, 1, later));
  EXPECT_FALSE(addresses.has(old, 2, later));
  kernel.let_go();
}

}  // namespace
}  // namespace stp::port::asked_aside_test
