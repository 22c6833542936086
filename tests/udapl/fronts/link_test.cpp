// SPDX-License-Identifier: BSD-3-Clause
// What a program of DAT is told of its IA's link.
#include <netinet/in.h>

#include <chrono>
#include <memory>
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

std::unique_ptr<Side> side_on(const std::string& link) {
  const UseLink use(link);
  return std::make_unique<Side>();
}

// Where `side` is at present, for others.
sockaddr_in place_of(const Side& side) {
  DAT_IA_ATTR attr{};
  EXPECT_EQ(dat_ia_query(side.ia, nullptr, DAT_IA_FIELD_ALL, &attr, 0, nullptr), DAT_SUCCESS);
  return *reinterpret_cast<const sockaddr_in*>(attr.ia_address_ptr);
}

in_port_t port_of(DAT_IA_ADDRESS_PTR address) {
  return ntohs(reinterpret_cast<const sockaddr_in*>(address)->sin_port);
}

// The client connects to that address, and the server's CR is told to `request`.
void expect_reached(Side& client, Side& server, sockaddr_in at, DAT_CR_PARAM& request) {
  client.ep = client.make_ep();
  server.ep = server.make_ep();
  ASSERT_EQ(
      name_of(dat_ep_connect(client.ep, reinterpret_cast<DAT_IA_ADDRESS_PTR>(&at), kPort, kPatience,
                             0, nullptr, DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG)),
      "DAT_SUCCESS");
  const auto arrived = Side::next(server.requests);
  ASSERT_EQ(arrived.event_number, DAT_CONNECTION_REQUEST_EVENT);
  const auto cr = arrived.event_data.cr_arrival_event_data.cr_handle;
  ASSERT_EQ(dat_cr_query(cr, DAT_CR_FIELD_ALL, &request), DAT_SUCCESS);
  ASSERT_EQ(dat_cr_accept(cr, server.ep, 0, nullptr), DAT_SUCCESS);
  EXPECT_EQ(Side::next(client.connect).event_number, DAT_CONNECTION_EVENT_ESTABLISHED);
  EXPECT_EQ(Side::next(server.connect).event_number, DAT_CONNECTION_EVENT_ESTABLISHED);
}

TEST(FrontLink, OverUdpThePortOfAnAddressIsTheUdpPort) {
  const auto server = side_on("udp:127.0.0.1,port=0");
  const auto client = side_on("udp:127.0.0.1,port=0,mtu=1500");
  DAT_PSP_HANDLE psp = DAT_HANDLE_NULL;
  ASSERT_EQ(dat_psp_create(server->ia, kPort, server->requests, DAT_PSP_CONSUMER_FLAG, &psp),
            DAT_SUCCESS);
  const auto there = place_of(*server), here = place_of(*client);
  EXPECT_NE(there.sin_port, here.sin_port);
  DAT_CR_PARAM request{};
  expect_reached(*client, *server, there, request);
  EXPECT_EQ(port_of(request.remote_ia_address_ptr), ntohs(here.sin_port));
  DAT_EP_PARAM asked{}, answered{};
  ASSERT_EQ(dat_ep_query(client->ep, DAT_EP_FIELD_ALL, &asked), DAT_SUCCESS);
  ASSERT_EQ(dat_ep_query(server->ep, DAT_EP_FIELD_ALL, &answered), DAT_SUCCESS);
  EXPECT_EQ(port_of(asked.remote_ia_address_ptr), ntohs(there.sin_port));
  EXPECT_EQ(port_of(answered.remote_ia_address_ptr), ntohs(here.sin_port));
}

// A UDP port that is free at 127.0.0.1.
std::string free_udp_port() {
  return std::to_string(ntohs(place_of(*side_on("udp:127.0.0.1,port=0")).sin_port));
}

// Many consumers write it there.
TEST(FrontLink, AQualifierInThePlaceOfThePortIsNoUdpPort) {
  const auto port = free_udp_port();
  const auto server = side_on("udp:127.0.0.2,port=" + port);
  const auto client = side_on("udp:127.0.0.1,port=" + port);
  DAT_PSP_HANDLE psp = DAT_HANDLE_NULL;
  ASSERT_EQ(dat_psp_create(server->ia, kPort, server->requests, DAT_PSP_CONSUMER_FLAG, &psp),
            DAT_SUCCESS);
  auto there = place_of(*server);
  there.sin_port = htons(kPort);
  DAT_CR_PARAM request{};
  expect_reached(*client, *server, there, request);
}

}  // namespace
}  // namespace stp::test
