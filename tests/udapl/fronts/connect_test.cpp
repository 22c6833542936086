// SPDX-License-Identifier: BSD-3-Clause
// Connection requests and service points.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <set>

#include "tests/udapl/fronts/front_fixture.h"

namespace stp::test {
namespace {

constexpr in_addr_t kAddress = 0x0a090007;

class FrontConnect : public Front {
 protected:
  FrontConnect() : Front("loop,address=10.9.0.7/24") {
    server.ep = server.make_ep();
    client.ep = client.make_ep();
  }
  static in_addr_t ipv4_of(DAT_IA_ADDRESS_PTR address) {
    EXPECT_EQ(address->sa_family, AF_INET);
    return ntohl(reinterpret_cast<const sockaddr_in*>(address)->sin_addr.s_addr);
  }
  void reserve(DAT_EP_HANDLE ep) {
    ASSERT_EQ(name_of(dat_rsp_create(server.ia, kPort, ep, server.requests, &rsp)), "DAT_SUCCESS");
  }
  // The client sends a request. Returns the server's event.
  DAT_CR_ARRIVAL_EVENT_DATA ask() {
    ask_server({});
    const auto event = Side::next(server.requests);
    EXPECT_EQ(event.event_number, DAT_CONNECTION_REQUEST_EVENT);
    return event.event_data.cr_arrival_event_data;
  }
  DAT_RSP_HANDLE rsp = DAT_HANDLE_NULL;
};
STP_BOTH_WAYS(FrontConnect);

TEST_P(FrontConnect, CrQueryTellsTheAddressAndThePortOfWhoAsks) {
  listen();
  const auto request = ask();
  DAT_CR_PARAM param{};
  ASSERT_EQ(dat_cr_query(request.cr_handle, DAT_CR_FIELD_ALL, &param), DAT_SUCCESS);
  EXPECT_EQ(ipv4_of(param.remote_ia_address_ptr), kAddress);
  EXPECT_EQ(ipv4_of(request.local_ia_address_ptr), kAddress);
  EXPECT_EQ(param.local_ep_handle, DAT_HANDLE_NULL);
  ASSERT_EQ(dat_cr_accept(request.cr_handle, server.ep, 0, nullptr), DAT_SUCCESS);
  await_established();

  // The port qualifiers are those of the connected EPs, at both sides.
  DAT_EP_PARAM asked{}, answered{};
  ASSERT_EQ(dat_ep_query(client.ep, DAT_EP_FIELD_ALL, &asked), DAT_SUCCESS);
  ASSERT_EQ(dat_ep_query(server.ep, DAT_EP_FIELD_ALL, &answered), DAT_SUCCESS);
  EXPECT_NE(param.remote_port_qual, 0U);
  EXPECT_EQ(asked.local_port_qual, param.remote_port_qual);
  EXPECT_EQ(answered.remote_port_qual, param.remote_port_qual);
  EXPECT_EQ(asked.remote_port_qual, kPort);
  EXPECT_EQ(ipv4_of(answered.remote_ia_address_ptr), kAddress);
}

TEST_P(FrontConnect, TwoRequestsOfOneProgramComeFromTwoPorts) {
  listen();
  const auto first = ask();
  client.ep = client.make_ep();
  const auto second = ask();
  DAT_CR_PARAM one{}, other{};
  ASSERT_EQ(dat_cr_query(first.cr_handle, DAT_CR_FIELD_ALL, &one), DAT_SUCCESS);
  ASSERT_EQ(dat_cr_query(second.cr_handle, DAT_CR_FIELD_ALL, &other), DAT_SUCCESS);
  EXPECT_NE(one.remote_port_qual, other.remote_port_qual);
}

TEST_P(FrontConnect, CrQueryOfWhatIsNoRequestIsAnInvalidHandleAndWithoutAPlaceAnInvalidParameter) {
  listen();
  const auto request = ask();
  DAT_CR_PARAM param{};
  EXPECT_EQ(name_of(dat_cr_query(server.ep, DAT_CR_FIELD_ALL, &param)), "DAT_INVALID_HANDLE");
  EXPECT_EQ(name_of(dat_cr_query(request.cr_handle, DAT_CR_FIELD_ALL, nullptr)),
            "DAT_INVALID_PARAMETER");
  ASSERT_EQ(reject(request.cr_handle), DAT_SUCCESS);
  EXPECT_EQ(name_of(dat_cr_query(request.cr_handle, DAT_CR_FIELD_ALL, &param)),
            "DAT_INVALID_HANDLE");
}

TEST_P(FrontConnect, ARequestToAnRspNamesItAndItsEp) {
  reserve(server.ep);
  const auto request = ask();
  EXPECT_EQ(request.sp_handle.rsp_handle, rsp);
  EXPECT_EQ(request.conn_qual, kPort);
  DAT_CR_PARAM param{};
  ASSERT_EQ(dat_cr_query(request.cr_handle, DAT_CR_FIELD_ALL, &param), DAT_SUCCESS);
  EXPECT_EQ(param.local_ep_handle, server.ep);
  ASSERT_EQ(name_of(dat_cr_accept(request.cr_handle, server.ep, 0, nullptr)), "DAT_SUCCESS");
  await_established();
}

TEST_P(FrontConnect, AnRspThatHasHadItsRequestIsFreedOnceAndIsInNobodysWay) {
  reserve(server.ep);
  ASSERT_EQ(reject(ask().cr_handle), DAT_SUCCESS);
  const auto spent = rsp;
  reserve(server.ep);  // its qualifier and its EP are free
  EXPECT_EQ(name_of(dat_rsp_free(spent)), "DAT_SUCCESS");
  EXPECT_EQ(name_of(dat_rsp_free(spent)), "DAT_INVALID_HANDLE");
  EXPECT_EQ(name_of(dat_rsp_free(rsp)), "DAT_SUCCESS");
  ASSERT_EQ(dat_evd_free(server.requests), DAT_SUCCESS);
}

TEST_P(FrontConnect, AnRspThatHasHadItsRequestKeepsNoIaOpen) {
  reserve(server.ep);
  ASSERT_EQ(reject(ask().cr_handle), DAT_SUCCESS);
  ASSERT_EQ(dat_ep_free(server.ep), DAT_SUCCESS);
  ASSERT_EQ(dat_lmr_free(server.lmr), DAT_SUCCESS);
  ASSERT_EQ(dat_pz_free(server.pz), DAT_SUCCESS);
  for (auto* const evd : {server.recv, server.request, server.connect, server.requests})
    ASSERT_EQ(dat_evd_free(evd), DAT_SUCCESS);
  EXPECT_EQ(name_of(dat_ia_close(server.ia, DAT_CLOSE_GRACEFUL_FLAG)), "DAT_SUCCESS");
  EXPECT_EQ(name_of(dat_rsp_free(rsp)), "DAT_INVALID_HANDLE");
}

TEST_P(FrontConnect, AnRspWantsAnEpThatNobodyUsesAndAQualifierThatIsFree) {
  DAT_RSP_HANDLE other = DAT_HANDLE_NULL;
  const auto create = [&](DAT_EP_HANDLE ep, DAT_CONN_QUAL qual) {
    return name_of(dat_rsp_create(server.ia, qual, ep, server.requests, &other));
  };
  reserve(server.ep);
  EXPECT_EQ(create(server.ep, kPort + 1), "DAT_INVALID_STATE");
  auto* const ep = server.make_ep();
  EXPECT_EQ(create(ep, kPort), "DAT_CONN_QUAL_IN_USE");
  EXPECT_EQ(create(server.pz, kPort + 1), "DAT_INVALID_HANDLE");
  EXPECT_EQ(create(ep, kPort + 1), "DAT_SUCCESS");  // the failed calls have not changed it
}

TEST_P(FrontConnect, PrivateDataStaysUntilTheEpIsResetOrFreed) {
  connect();
  const auto established = connected;
  const auto& data = established.event_data.connect_event_data;
  ASSERT_EQ(dat_ep_disconnect(server.ep, DAT_CLOSE_GRACEFUL_FLAG), DAT_SUCCESS);
  EXPECT_EQ(Side::next(client.connect).event_number, DAT_CONNECTION_EVENT_DISCONNECTED);
  EXPECT_STREQ(static_cast<const char*>(data.private_data), "come in");
}

TEST_P(FrontConnect, MorePrivateDataThanTheProviderSaysIsAnInvalidParameter) {
  DAT_PROVIDER_ATTR attr{};
  ASSERT_EQ(
      dat_ia_query(client.ia, nullptr, DAT_IA_FIELD_NONE, nullptr, DAT_PROVIDER_FIELD_ALL, &attr),
      DAT_SUCCESS);
  const auto most = static_cast<std::size_t>(attr.max_private_data_size);
  EXPECT_GE(most, 256U);
  listen();
  std::string const all(most, 'x');
  auto more = all + "x";
  const auto size = static_cast<DAT_COUNT>(more.size());
  EXPECT_EQ(name_of(connect_with(more)), "DAT_INVALID_PARAMETER");
  ask_server(all);
  const auto request = Side::next(server.requests).event_data.cr_arrival_event_data;
  DAT_CR_PARAM param{};
  ASSERT_EQ(dat_cr_query(request.cr_handle, DAT_CR_FIELD_ALL, &param), DAT_SUCCESS);
  EXPECT_EQ(param.private_data_size, attr.max_private_data_size);
  EXPECT_EQ(name_of(dat_cr_accept(request.cr_handle, server.ep, size, more.data())),
            "DAT_INVALID_PARAMETER");
  ASSERT_EQ(dat_cr_accept(request.cr_handle, server.ep, 0, nullptr), DAT_SUCCESS);
  await_established();
  EXPECT_EQ(name_of(dat_ep_dup_connect(client.make_ep(), client.ep, kPatience, size, more.data(),
                                       DAT_QOS_BEST_EFFORT)),
            "DAT_INVALID_PARAMETER");
}

TEST_P(FrontConnect, AnIaThatClosesAbruptlyGivesItsHandlesBack) {
  std::set<DAT_HANDLE> seen;
  bool again = false;
  for (int i = 0; i < 4; ++i) {
    const Side side;
    for (int made = 0; made < 1000; ++made)
      again |= !seen.insert(side.evd(1, DAT_EVD_SOFTWARE_FLAG)).second;
  }
  EXPECT_TRUE(again);
}

// A UDP port that is free now; "": no IPv6 here.
std::string free_port_of_ipv6() {
  const int fd = ::socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  sockaddr_in6 name{};
  name.sin6_family = AF_INET6;
  name.sin6_addr = in6addr_loopback;
  socklen_t length = sizeof name;
  auto* const as_any = reinterpret_cast<sockaddr*>(&name);
  const bool has = fd >= 0 && ::bind(fd, as_any, length) == 0;
  if (has) ::getsockname(fd, as_any, &length);
  if (fd >= 0) ::close(fd);
  return has ? std::to_string(ntohs(name.sin6_port)) : "";
}

TEST(FrontIpv6, AddressesOfIpv6AreThoseOfHostsOverUdp) {
  const auto port = free_port_of_ipv6();
  if (port.empty()) GTEST_SKIP() << "no IPv6 here";
  const UseLink link("udp:[::1],port=" + port);
  Side server, client;
  server.ep = server.make_ep();
  client.ep = client.make_ep();
  DAT_RSP_HANDLE rsp = DAT_HANDLE_NULL;
  ASSERT_EQ(name_of(dat_rsp_create(server.ia, kPort, server.ep, server.requests, &rsp)),
            "DAT_SUCCESS");
  sockaddr_in6 to{};
  to.sin6_family = AF_INET6;
  to.sin6_addr = in6addr_loopback;
  ASSERT_EQ(
      name_of(dat_ep_connect(client.ep, reinterpret_cast<DAT_IA_ADDRESS_PTR>(&to), kPort, kPatience,
                             0, nullptr, DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG)),
      "DAT_SUCCESS");
  const auto request = Side::next(server.requests);
  ASSERT_EQ(request.event_number, DAT_CONNECTION_REQUEST_EVENT);
  ASSERT_EQ(dat_cr_accept(request.event_data.cr_arrival_event_data.cr_handle, DAT_HANDLE_NULL, 0,
                          nullptr),
            DAT_SUCCESS);
  EXPECT_EQ(Side::next(client.connect).event_number, DAT_CONNECTION_EVENT_ESTABLISHED);
}

// A way on which nothing arrives has no result of DAT: what the link knows of it is on stderr.
TEST(FrontUdp, WhyNothingArrivesIsToldOnStderr) {
  const UseLink link("udp:127.0.0.1,port=0");
  Side client;
  client.ep = client.make_ep();
  sockaddr_in to{};
  to.sin_family = AF_INET;
  ASSERT_EQ(::inet_pton(AF_INET, "127.0.0.77", &to.sin_addr), 1);
  constexpr DAT_TIMEOUT kShort = 200'000;
  testing::internal::CaptureStderr();
  ASSERT_EQ(
      name_of(dat_ep_connect(client.ep, reinterpret_cast<DAT_IA_ADDRESS_PTR>(&to), kPort, kShort, 0,
                             nullptr, DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG)),
      "DAT_SUCCESS");
  EXPECT_EQ(Side::next(client.connect).event_number, DAT_CONNECTION_EVENT_TIMED_OUT);
  const std::string told = testing::internal::GetCapturedStderr();
  EXPECT_NE(told.find("daplstp: the connection to 127.0.0.77"), std::string::npos) << told;
  EXPECT_NE(told.find("has no socket for that port"), std::string::npos) << told;
}

}  // namespace
}  // namespace stp::test
