// SPDX-License-Identifier: BSD-3-Clause
// What a program of DAT is told of its IA's link.
#include <netinet/in.h>

#include <chrono>
#include <thread>

#include "tests/host/test_port.h"
#include "tests/udapl/fronts/front_fixture.h"

namespace stp::test {
namespace {

struct ServedLink {
  TestPort* const port = new TestPort;
  Daemon daemon{std::unique_ptr<port::Port>(port)};
  UseLink link{daemon.link()};
};

in_addr_t ipv4_of(DAT_IA_ADDRESS_PTR address) {
  return ntohl(reinterpret_cast<const sockaddr_in*>(address)->sin_addr.s_addr);
}

in_addr_t address_of(const Side& side) {
  DAT_IA_ATTR attr{};
  EXPECT_EQ(dat_ia_query(side.ia, nullptr, DAT_IA_FIELD_ALL, &attr, 0, nullptr), DAT_SUCCESS);
  return ipv4_of(attr.ia_address_ptr);
}

TEST(FrontLink, AddressesAreThePresentOnes) {
  const ServedLink link;
  Side side;
  side.ep = side.make_ep();
  EXPECT_EQ(address_of(side), 0x0a090001U);
  link.port->address = 0x0a090009;
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (address_of(side) != 0x0a090009 && std::chrono::steady_clock::now() < until)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  DAT_EP_PARAM param{};
  ASSERT_EQ(dat_ep_query(side.ep, DAT_EP_FIELD_ALL, &param), DAT_SUCCESS);
  EXPECT_EQ(ipv4_of(param.local_ia_address_ptr), 0x0a090009U);
}

TEST(FrontLink, TheEndOfTheLinkIsAnAsynchronousEventOfTheIa) {
  ServedLink link;
  const Side side;
  link.daemon.stop();
  const auto event = Side::next(side.async);
  EXPECT_EQ(event.event_number, DAT_ASYNC_ERROR_IA_CATASTROPHIC);
  EXPECT_EQ(event.event_data.asynch_error_event_data.reason, DAT_IA_CATASTROPHIC_ERROR);
}

}  // namespace
}  // namespace stp::test
