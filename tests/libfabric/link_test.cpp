// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "libst/libfabric/link.h"
#include "tests/libfabric/fi_fixture.h"
#include "tests/libst/libst_fixture.h"
#include "tests/service/test_port.h"

namespace stp::test::link_mutex_test {
namespace {

// Without that, it would have the mutex again before the other one is awake.
TEST(LinkMutex, WhoPollsLetsThoseGoFirstThatWait) {
  fi::LinkMutex mutex;
  for (int i = 0; i < 20; ++i) {
    auto had = false;
    mutex.lock();
    std::thread other([&] {
      fi::LinkLock const lock(mutex);
      had = true;
    });
    while (!mutex.is_awaited()) std::this_thread::yield();
    mutex.unlock();
    {
      fi::PollLock const lock(mutex);
      EXPECT_TRUE(had);
    }
    other.join();
  }
}

}  // namespace
}  // namespace stp::test::link_mutex_test

namespace stp::test::link_test {
namespace {

in_addr_t name_of(fid& id) {
  sockaddr_in name{};
  auto length = sizeof name;
  EXPECT_EQ(fi_getname(&id, &name, &length), 0);
  return ntohl(name.sin_addr.s_addr);
}

// An endpoint's own address is the one that its link has at present.
TEST(FiLink, TheNamesOfEndpointsHaveThePresentAddress) {
  auto* const port = new TestPort;
  const Daemon daemon{std::unique_ptr<port::Port>(port)};
  const UseLink link(daemon.link());
  Info info;
  ASSERT_EQ(get_info(nullptr, nullptr, 0, hints(), info), 0);
  Side side(info);
  fid_pep* made = nullptr;
  ASSERT_EQ(fi_passive_ep(side.fabric.get(), info.get(), &made, nullptr), 0);
  const Fid<fid_pep> pep(made);
  const auto ep = side.endpoint(info.get());
  EXPECT_EQ(name_of(pep->fid), 0x0a090001U);
  port->address = 0x0a090009;
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (name_of(pep->fid) != 0x0a090009 && std::chrono::steady_clock::now() < until)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_EQ(name_of(pep->fid), 0x0a090009U);
  EXPECT_EQ(name_of(ep->fid), 0x0a090009U);
}

}  // namespace
}  // namespace stp::test::link_test
