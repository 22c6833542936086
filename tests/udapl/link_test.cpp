// SPDX-License-Identifier: BSD-3-Clause
// What an IA tells of its link: the present address, and its end.
#include <chrono>
#include <thread>

#include "tests/host/test_port.h"
#include "tests/udapl/udapl_fixture.h"

namespace stp::test {
namespace {

using namespace udapl;

struct ServedLink {
  TestPort* const port = new TestPort;
  Daemon daemon{std::unique_ptr<port::Port>(port)};
  UseLink link{daemon.link()};
};

TEST(LinkOfAnIa, ItsAddressIsThePresentOne) {
  const ServedLink link;
  const DatSide side;
  EXPECT_EQ(side.ia->info().ipv4, 0x0a090001U);
  link.port->address = 0x0a090009;
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (side.ia->info().ipv4 != 0x0a090009 && std::chrono::steady_clock::now() < until)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_EQ(side.ia->info().ipv4, 0x0a090009U);
}

TEST(LinkOfAnIa, ItsEndIsCatastrophicAndWhatPassesIsNoEvent) {
  ServedLink link;
  const DatSide side;
  link.port->link_state = port::LinkState::kDown;
  // Until the IA has been told: a managed queue is told in the order of the changes.
  stm_link_info_t info{};
  info.size = sizeof info;
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (info.state != STM_LINK_DOWN && std::chrono::steady_clock::now() < until)
    ASSERT_EQ(stm_link_query(side.ia->domain(), &info), 0);
  Event event;
  int more = 0;
  EXPECT_EQ(side.async->wait(50'000, 1, event, more), Result::kTimeoutExpired);
  link.daemon.stop();
  event = DatSide::next(*side.async);
  EXPECT_EQ(event.number, EventNumber::kIaCatastrophic);
  EXPECT_EQ(event.reason, AsyncReason::kCatastrophic);
  EXPECT_EQ(event.handle, side.ia->handle());
}

// No result of DAT names these causes.
TEST(LinkOfAnIa, WhatIsMissingIsToldOnStderr) {
  testing::internal::CaptureStderr();
  std::shared_ptr<Evd> async;
  std::shared_ptr<Ia> none;
  EXPECT_NE(Ia::open("iface:nosuchdevice", 8, async, none), Result::kSuccess);
  const auto told = testing::internal::GetCapturedStderr();
  EXPECT_NE(told.find("nosuchdevice"), std::string::npos) << told;
}

TEST(LinkOfAnIa, APeerThatIsNotThereIsUnreachableAndToldOnStderr) {
  const auto socket = testing::TempDir() + "no_peer." + std::to_string(::getpid());
  const UseLink link("memif:" + socket + ",role=client,address=10.9.0.1/24");
  DatSide side;
  side.ep = side.make_ep();
  testing::internal::CaptureStderr();
  EXPECT_EQ(side.ep->connect("10.9.0.2", 0x0a090002, 3000, 100'000, {}), Result::kSuccess);
  const auto told = testing::internal::GetCapturedStderr();
  EXPECT_EQ(DatSide::next(*side.connect).number, EventNumber::kUnreachable);
  EXPECT_NE(told.find("10.9.0.2"), std::string::npos) << told;
  EXPECT_NE(told.find(socket), std::string::npos) << told;
}

}  // namespace
}  // namespace stp::test
