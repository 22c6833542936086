// SPDX-License-Identifier: BSD-3-Clause
// The addresses and interfaces of this host, in a network namespace of their own.
#include "dpdk_port/link/interfaces.h"

#include <gtest/gtest.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstdarg>

#include "dpdk_port/link/engine.h"
#include "tests/dpdk_port/network_namespace.h"

// While it is set, the kernel's lock of interfaces is held, for two seconds at most.
static std::atomic<bool> is_held{false};
// The same for answers of the kernel on their way to other threads than the first; and how many
// have begun that way.
static std::atomic<bool> answers_are_held{false};
static std::atomic<unsigned> answers{0};

// In the place of libc's, for this program.
extern "C" int ioctl(int fd, unsigned long what, ...) noexcept {
  va_list rest;
  va_start(rest, what);
  void* const argument = va_arg(rest, void*);
  va_end(rest);
  for (int i = 0; what == SIOCGIFFLAGS && is_held && i < 2'000; ++i) ::usleep(1'000);
  const auto result = static_cast<int>(::syscall(SYS_ioctl, fd, what, argument));
  if (what == SIOCGIFFLAGS && ::gettid() != ::getpid()) {
    ++answers;
    for (int i = 0; answers_are_held && i < 2'000; ++i) ::usleep(1'000);
  }
  return result;
}

namespace stp::port::interfaces_test {
namespace {

TEST(HostAddresses, AreThoseThatTheKernelHasAtThatMoment) {
  const NetworkNamespace here;
  if (!here.missing().empty()) GTEST_SKIP() << here.missing();
  ASSERT_TRUE(NetworkNamespace::make_veth(1500));
  HostAddresses addresses;
  auto ours = parse_internet_address("10.9.0.1").value();
  ours.port = 8181;
  EXPECT_FALSE(addresses.has(ours, 0, 0));
  ASSERT_TRUE(NetworkNamespace::ip("address add 10.9.0.1/24 dev stp0"));
  EXPECT_TRUE(addresses.has(ours, 0, 0));
  EXPECT_TRUE(addresses.has(ours, if_nametoindex("stp0"), 0));
  EXPECT_FALSE(addresses.has(ours, if_nametoindex("stp1"), 0));
  EXPECT_FALSE(addresses.has(parse_internet_address("10.9.0.2").value(), 0, 0));
  ASSERT_TRUE(NetworkNamespace::ip("address del 10.9.0.1/24 dev stp0"));
  EXPECT_FALSE(addresses.has(ours, 0, 0));
}

TEST(HostAddresses, OfOneNetworkOnlyAreTheirInterfacesOwn) {
  const NetworkNamespace here;
  if (!here.missing().empty()) GTEST_SKIP() << here.missing();
  ASSERT_TRUE(NetworkNamespace::make_veth(1500));
  if (!NetworkNamespace::ip("address add fe80::9/64 dev stp0 nodad") ||
      !NetworkNamespace::ip("address add fe80::9/64 dev stp1 nodad"))
    GTEST_SKIP() << "no IPv6 here";
  HostAddresses addresses;
  const auto first = parse_internet_address("fe80::9%stp0").value();
  EXPECT_TRUE(addresses.has(first, 0, 0));
  EXPECT_TRUE(addresses.has(first, if_nametoindex("stp0"), 0));
  EXPECT_FALSE(addresses.has(first, if_nametoindex("stp1"), 0));
  EXPECT_TRUE(addresses.has(parse_internet_address("fe80::9%stp1").value(), 0, 0));
}

TEST(HostAddresses, NamesOfInterfacesMayBeAlternativeOnes) {
  const NetworkNamespace here;
  if (!here.missing().empty()) GTEST_SKIP() << here.missing();
  ASSERT_TRUE(NetworkNamespace::make_veth(1500));
  HostAddresses addresses;
  EXPECT_EQ(addresses.index_of("stp1", 0), if_nametoindex("stp1"));
  if (!NetworkNamespace::ip("link property add dev stp0 altname lan-of-the-laboratory"))
    GTEST_SKIP() << "no alternative names here";
  EXPECT_EQ(addresses.index_of("lan-of-the-laboratory", 0), if_nametoindex("stp0"));
}

// Any user can hold that lock.
TEST(InterfaceWatch, WhoLooksNeverWaitsForTheKernel) {
  const NetworkNamespace here;
  if (!here.missing().empty()) GTEST_SKIP() << here.missing();
  ASSERT_TRUE(NetworkNamespace::make_veth(1500));
  InterfaceWatch watch("stp0");
  EXPECT_EQ(watch.state(), LinkState::kUp);
  ASSERT_TRUE(NetworkNamespace::ip("link set stp0 down"));
  is_held = true;
  EXPECT_FALSE(watch.look(0)) << "it asks";
  EXPECT_FALSE(watch.look(InterfaceWatch::kInterval)) << "and has no answer";
  is_held = false;
  const Time until = now() + 30 * kSecond;
  while (watch.state() != LinkState::kDown && now() < until) watch.look(now());
  EXPECT_EQ(watch.state(), LinkState::kDown);
}

TEST(InterfaceWatch, AnAnswerThatIsOlderThanWhatItKnowsCountsNot) {
  const NetworkNamespace here;
  if (!here.missing().empty()) GTEST_SKIP() << here.missing();
  ASSERT_TRUE(NetworkNamespace::make_veth(1500));
  InterfaceWatch watch("stp0");
  ASSERT_TRUE(NetworkNamespace::ip("link set stp0 down"));
  const Time until = now() + 30 * kSecond;
  answers = 0;
  answers_are_held = true;
  watch.look(0);
  while (answers == 0 && now() < until) ::usleep(100);
  ASSERT_TRUE(NetworkNamespace::ip("link set stp0 up"));
  watch.ask();
  EXPECT_NE(watch.state(), LinkState::kDown);
  answers_are_held = false;
  while (answers < 2 && now() < until) {
    watch.look(now());
    ASSERT_NE(watch.state(), LinkState::kDown);
  }
  EXPECT_EQ(answers, 2U) << "the news has it asked again";
}

}  // namespace
}  // namespace stp::port::interfaces_test
