// SPDX-License-Identifier: BSD-3-Clause
// fi_getinfo: by node, service and hints.
#include <arpa/inet.h>
#include <dlfcn.h>
#include <netdb.h>
#include <rdma/providers/fi_prov.h>

#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "tests/libfabric/rdm_fixture.h"
#include "tests/libst/libst_fixture.h"

// A host that has several addresses, each of which the resolver names once for each kind of socket.
extern "C" __attribute__((visibility("default"))) int getaddrinfo(const char* host,
                                                                  const char* service,
                                                                  const addrinfo* wanted,
                                                                  addrinfo** found) {
  static const auto real =
      reinterpret_cast<decltype(&getaddrinfo)>(::dlsym(RTLD_NEXT, "getaddrinfo"));
  if (host == nullptr || std::strcmp(host, "several.test") != 0)
    return real(host, service, wanted, found);
  *found = nullptr;
  for (const auto* const each : {"10.1.2.3", "127.0.0.5", "127.0.0.6"}) {
    while (*found != nullptr) found = &(*found)->ai_next;
    if (const auto error = real(each, service, wanted, found); error != 0) return error;
  }
  return 0;
}

namespace stp::test::info_test {
namespace {

TEST(FiInfo, NamesTheLinkAsFabricAndDomain) {
  Info info;
  ASSERT_EQ(get_info(nullptr, nullptr, 0, hints(), info), 0);
  EXPECT_STREQ(info->fabric_attr->name, "loop");
  EXPECT_STREQ(info->domain_attr->name, "loop");
  EXPECT_STREQ(info->fabric_attr->prov_name, "stp");
  EXPECT_EQ(info->ep_attr->type, FI_EP_MSG);
  EXPECT_EQ(info->caps & (FI_MSG | FI_RMA | FI_ATOMIC), FI_MSG | FI_RMA | FI_ATOMIC);
  EXPECT_EQ(info->domain_attr->cq_data_size, 8U);
}

TEST(FiInfo, ANodeIsTheDestinationOrTheSource) {
  Info info;
  ASSERT_EQ(get_info("127.0.0.1", "4711", 0, hints(), info), 0);
  ASSERT_EQ(info->dest_addrlen, sizeof(sockaddr_in));
  const auto* const to = static_cast<const sockaddr_in*>(info->dest_addr);
  EXPECT_EQ(ntohs(to->sin_port), 4711);
  EXPECT_EQ(ntohl(to->sin_addr.s_addr), INADDR_LOOPBACK);
  ASSERT_EQ(get_info("127.0.0.1", "4711", FI_SOURCE, hints(), info), 0);
  EXPECT_EQ(info->dest_addr, nullptr);
  EXPECT_EQ(ntohs(static_cast<const sockaddr_in*>(info->src_addr)->sin_port), 4711);
}

// Where one does not answer, a program goes on with the next entry.
TEST(FiInfo, EachAddressOfANodeIsListedThatALinkMayReach) {
  Info info;
  ASSERT_EQ(get_info("several.test", "4711", 0, hints(), info), 0);
  std::vector<std::string> listed;
  for (const auto* each = info.get(); each != nullptr; each = each->next) {
    const auto* const to = static_cast<const sockaddr_in*>(each->dest_addr);
    EXPECT_EQ(ntohs(to->sin_port), 4711);
    listed.emplace_back(::inet_ntoa(to->sin_addr));
  }
  EXPECT_EQ(listed, (std::vector<std::string>{"127.0.0.5", "127.0.0.6"}));
}

// Its own program needs one.
TEST(FiInfo, ASourceIsTheAddressOfTheNodeThatTheLinkHas) {
  Info info;
  ASSERT_EQ(get_info("several.test", "4711", FI_SOURCE, hints(), info), 0);
  EXPECT_EQ(info->next, nullptr);
  const auto* const from = static_cast<const sockaddr_in*>(info->src_addr);
  EXPECT_EQ(ntohl(from->sin_addr.s_addr), INADDR_LOOPBACK);
}

// Nor is each listed where the destination comes from elsewhere.
TEST(FiInfo, ADestinationOfTheHintsIsListedOnceForAllAddressesOfASource) {
  Info info;
  const auto asked = hints();
  sockaddr_in there{};
  there.sin_family = AF_INET;
  there.sin_port = htons(4712);
  there.sin_addr.s_addr = htonl(INADDR_LOOPBACK + 8);
  asked->addr_format = FI_SOCKADDR_IN;
  asked->dest_addr = std::malloc(sizeof there);
  asked->dest_addrlen = sizeof there;
  std::memcpy(asked->dest_addr, &there, sizeof there);
  ASSERT_EQ(get_info("several.test", "4711", FI_SOURCE, asked, info), 0);
  EXPECT_EQ(info->next, nullptr);
}

TEST(FiInfo, WhatIsNotOfferedIsNoData) {
  Info info;
  const auto refused = [&](const std::function<void(fi_info&)>& change) {
    auto asked = hints();
    change(*asked);
    return get_info(nullptr, nullptr, 0, asked, info) == -FI_ENODATA;
  };
  EXPECT_TRUE(refused([](fi_info& i) { i.caps |= FI_MULTICAST; }));
  EXPECT_TRUE(refused([](fi_info& i) { i.addr_format = FI_SOCKADDR_IN6; }));
  EXPECT_TRUE(refused([](fi_info& i) { i.domain_attr->mr_mode = FI_MR_LOCAL; }));
  EXPECT_TRUE(refused([](fi_info& i) { i.domain_attr->name = ::strdup("iface:none"); }));
  EXPECT_TRUE(refused([](fi_info& i) { i.tx_attr->inject_size = 1 << 20; }));
  EXPECT_TRUE(refused([](fi_info& i) { i.tx_attr->op_flags = FI_COMMIT_COMPLETE; }));
  EXPECT_TRUE(refused([](fi_info& i) { i.ep_attr->max_order_waw_size = 1; }));
  EXPECT_EQ(get_info("10.1.2.3", "1", 0, hints(), info), -FI_ENODATA);
  EXPECT_EQ(get_info(nullptr, "no-port", FI_SOURCE, hints(), info), -FI_ENODATA);
}

// The log names the attribute.
TEST(FiInfo, WhatNoProviderCouldGiveIsRefusedByName) {
  struct Case {
    const char* name;
    std::function<void(fi_info&)> change;
  };
  const auto no_value = [](auto& attribute) {
    // As C may write it, where C++ has no such value.
    const int value = 7;
    static_assert(sizeof attribute == sizeof value);
    std::memcpy(&attribute, &value, sizeof value);
  };
  for (const auto& [name, change] :
       {Case{"domain_attr->threading", [&](fi_info& i) { no_value(i.domain_attr->threading); }},
        Case{"domain_attr->av_type", [&](fi_info& i) { no_value(i.domain_attr->av_type); }},
        Case{"domain_attr->resource_mgmt",
             [&](fi_info& i) { no_value(i.domain_attr->resource_mgmt); }},
        Case{"domain_attr->data_progress",
             [&](fi_info& i) { no_value(i.domain_attr->data_progress); }},
        Case{"domain_attr->control_progress",
             [&](fi_info& i) { no_value(i.domain_attr->control_progress); }},
        Case{"domain_attr->mr_cnt", [](fi_info& i) { i.domain_attr->mr_cnt = 100'000; }},
        Case{"domain_attr->cntr_cnt", [](fi_info& i) { i.domain_attr->cntr_cnt = 100'000; }},
        Case{"domain_attr->max_err_data", [](fi_info& i) { i.domain_attr->max_err_data = 513; }},
        Case{"domain_attr->max_ep_tx_ctx", [](fi_info& i) { i.domain_attr->max_ep_tx_ctx = 2; }},
        Case{"domain_attr->max_ep_rx_ctx", [](fi_info& i) { i.domain_attr->max_ep_rx_ctx = 2; }},
        Case{"tx_attr->comp_order", [](fi_info& i) { i.tx_attr->comp_order = FI_ORDER_STRICT; }},
        Case{"rx_attr->comp_order", [](fi_info& i) { i.rx_attr->comp_order = FI_ORDER_DATA; }},
        Case{"tx_attr->caps",
             [](fi_info& i) {
               i.caps = FI_MSG;
               i.tx_attr->caps = FI_MSG | FI_RMA;
             }},
        Case{"rx_attr->caps", [](fi_info& i) {
               i.caps = FI_MSG;
               i.rx_attr->caps = FI_RECV | FI_REMOTE_READ;
             }}})
    for (const auto& asked : {hints(), rdm_hints()}) {
      SCOPED_TRACE(name);
      change(*asked);
      const Log log;
      Info info;
      EXPECT_EQ(get_info(nullptr, nullptr, 0, asked, info), -FI_ENODATA);
      EXPECT_TRUE(log.says(name));
    }
}

TEST(FiInfo, ACapabilityOfAContextIsOneOfItsEndpoint) {
  Info info;
  const auto asked = hints();
  asked->caps = FI_MSG;
  asked->tx_attr->caps = FI_MSG | FI_SEND;
  asked->rx_attr->caps = FI_MSG | FI_RECV;
  EXPECT_EQ(get_info(nullptr, nullptr, 0, asked, info), 0);
  asked->caps = 0;
  asked->tx_attr->caps = FI_RMA;
  EXPECT_EQ(get_info(nullptr, nullptr, 0, asked, info), 0);
}

TEST(FiInfo, FencesAreACapability) {
  for (const auto& asked : {hints(), rdm_hints()}) {
    Info info;
    asked->caps |= FI_FENCE;
    ASSERT_EQ(get_info(nullptr, nullptr, 0, asked, info), 0);
    EXPECT_NE(info->caps & FI_FENCE, 0U);
    EXPECT_NE(info->tx_attr->caps & FI_FENCE, 0U);
    EXPECT_EQ(info->rx_attr->caps & FI_FENCE, 0U);
  }
}

TEST(FiInfo, EndpointsOfRdmComeAfterThoseOfMsg) {
  Info info;
  auto asked = hints();
  asked->ep_attr->type = FI_EP_UNSPEC;
  asked->caps = FI_MSG;
  ASSERT_EQ(get_info(nullptr, nullptr, 0, asked, info), 0);
  std::vector<fi_ep_type> types;
  for (const auto* each = info.get(); each != nullptr; each = each->next)
    if (std::string(each->fabric_attr->prov_name) == "stp") types.push_back(each->ep_attr->type);
  EXPECT_EQ(types, (std::vector{FI_EP_MSG, FI_EP_RDM}));
}

TEST(FiInfo, EndpointsOfRdmNeedNoModesOfMemoryWithoutAccessToIt) {
  Info info;
  auto asked = rdm_hints();
  asked->domain_attr->mr_mode = 0;
  EXPECT_EQ(get_info(nullptr, nullptr, 0, asked, info), -FI_ENODATA);
  asked->caps = FI_TAGGED | FI_DIRECTED_RECV;
  ASSERT_EQ(get_info(nullptr, nullptr, 0, asked, info), 0);
  EXPECT_EQ(info->domain_attr->mr_mode, 0);
  EXPECT_EQ(info->caps & (FI_TAGGED | FI_SEND | FI_RECV), FI_TAGGED | FI_SEND | FI_RECV);
  EXPECT_EQ(info->tx_attr->inject_size, 4048U);
  asked->caps |= FI_ATOMIC;
  EXPECT_EQ(get_info(nullptr, nullptr, 0, asked, info), -FI_ENODATA);
}

TEST(FiInfo, RegisteringForLocalUseIsAskedForOrNot) {
  Info info;
  auto asked = hints();
  asked->domain_attr->mr_mode = FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
  ASSERT_EQ(get_info(nullptr, nullptr, 0, asked, info), 0);
  EXPECT_EQ(info->domain_attr->mr_mode & FI_MR_LOCAL, 0);
  ASSERT_EQ(get_info(nullptr, nullptr, 0, hints(), info), 0);
  EXPECT_NE(info->domain_attr->mr_mode & FI_MR_LOCAL, 0);
}

TEST(FiInfo, ALinkWithoutAnAddressIsLeftOut) {
  Info info;
  ASSERT_EQ(::setenv("STP_LINK", "memif:/nowhere.sock,role=client", 1), 0);
  EXPECT_EQ(get_info(nullptr, nullptr, 0, hints(), info), -FI_ENODATA);
  ASSERT_EQ(::setenv("STP_LINK", "memif:/nowhere.sock,address=10.9.0.7/24", 1), 0);
  ASSERT_EQ(get_info(nullptr, nullptr, 0, hints(), info), 0);
  const auto* const own = static_cast<const sockaddr_in*>(info->src_addr);
  EXPECT_EQ(ntohl(own->sin_addr.s_addr), 0x0a090007U);
  ::setenv("STP_LINK", "loop", 1);
}

// A Debian host's own name stands for 127.0.1.1.
TEST(FiInfo, ASourceOnThisHostIsTheAddressOfTheLink) {
  Info info;
  ASSERT_EQ(::setenv("STP_LINK", "memif:/nowhere.sock,address=10.9.0.7/24", 1), 0);
  for (const char* const name : {"localhost", "127.0.1.1", "10.9.0.7"}) {
    ASSERT_EQ(get_info(name, "3000", FI_SOURCE, hints(), info), 0) << name;
    const auto* const own = static_cast<const sockaddr_in*>(info->src_addr);
    EXPECT_EQ(ntohl(own->sin_addr.s_addr), 0x0a090007U) << name;
    EXPECT_EQ(ntohs(own->sin_port), 3'000) << name;
  }
  EXPECT_EQ(get_info("10.9.0.8", "3000", FI_SOURCE, hints(), info), -FI_ENODATA);
  ::setenv("STP_LINK", "loop", 1);
}

std::vector<std::uint32_t> formats(const fi_info* list) {
  std::vector<std::uint32_t> all;
  for (const auto* each = list; each != nullptr; each = each->next)
    if (std::string(each->fabric_attr->prov_name) == "stp") all.push_back(each->addr_format);
  return all;
}

in6_addr ip_of(const void* address) {
  sockaddr_in6 six{};
  std::memcpy(&six, address, sizeof six);
  EXPECT_EQ(six.sin6_family, AF_INET6);
  return six.sin6_addr;
}

TEST(FiInfo, ALinkOverUdpHasAddressesOfBothKinds) {
  const UseLink link("udp:");
  Info info;
  ASSERT_EQ(get_info(nullptr, nullptr, 0, hints(), info), 0);
  EXPECT_EQ(formats(info.get()), (std::vector<std::uint32_t>{FI_SOCKADDR_IN, FI_SOCKADDR_IN6}));
  ASSERT_EQ(get_info("127.0.0.1", "4711", 0, hints(), info), 0);
  EXPECT_EQ(formats(info.get()), (std::vector<std::uint32_t>{FI_SOCKADDR_IN}));
  ASSERT_EQ(get_info("::1", "4711", 0, hints(), info), 0);
  EXPECT_EQ(formats(info.get()), (std::vector<std::uint32_t>{FI_SOCKADDR_IN6}));
  ASSERT_EQ(info->dest_addrlen, sizeof(sockaddr_in6));
  const auto to = ip_of(info->dest_addr);
  EXPECT_TRUE(IN6_IS_ADDR_LOOPBACK(&to));
  EXPECT_EQ(ntohs(static_cast<const sockaddr_in6*>(info->dest_addr)->sin6_port), 4711);
}

// Who asks for IPv6 addresses may name hosts that have IPv4 only.
TEST(FiInfo, AFormatThatIsAskedForHoldsOtherAddressesToo) {
  const UseLink link("udp:");
  Info info;
  auto asked = hints();
  asked->addr_format = FI_SOCKADDR_IN6;
  ASSERT_EQ(get_info("127.0.0.1", "4711", 0, asked, info), 0);
  EXPECT_EQ(formats(info.get()), (std::vector<std::uint32_t>{FI_SOCKADDR_IN6}));
  const auto to = ip_of(info->dest_addr);
  EXPECT_TRUE(IN6_IS_ADDR_V4MAPPED(&to));
  asked->addr_format = FI_SOCKADDR_IN;
  EXPECT_EQ(get_info("::1", "4711", 0, asked, info), -FI_ENODATA);
}

TEST(FiInfo, ALinkAtNoAddressAndNoInterfaceIsNotListed) {
  for (const char* none : {"udp:1.2.3", "udp:no-such0", "udp:[10.0.0.5],port=0", "ip:no-such0"}) {
    const UseLink link(none);
    Info info;
    EXPECT_EQ(get_info(nullptr, nullptr, 0, hints(), info), -FI_ENODATA) << none;
  }
}

TEST(FiInfo, ALinkAtOneAddressHasAddressesOfThatKind) {
  Info info;
  auto asked = hints();
  asked->addr_format = FI_SOCKADDR_IN6;
  {
    const UseLink link("udp:127.0.0.1,port=0");
    EXPECT_EQ(get_info(nullptr, nullptr, 0, asked, info), -FI_ENODATA);
    EXPECT_EQ(get_info("::1", "4711", 0, hints(), info), -FI_ENODATA);
  }
  const UseLink link("udp:[::1],port=0");
  ASSERT_EQ(get_info(nullptr, nullptr, 0, hints(), info), 0);
  EXPECT_EQ(formats(info.get()), (std::vector<std::uint32_t>{FI_SOCKADDR_IN6}));
  const auto own = ip_of(info->src_addr);
  EXPECT_TRUE(IN6_IS_ADDR_LOOPBACK(&own));
  ASSERT_EQ(get_info("::1", "4711", FI_SOURCE, hints(), info), 0);
  EXPECT_EQ(get_info("2001:db8::77", "4711", FI_SOURCE, hints(), info), -FI_ENODATA);
}

// It needs no privileges, and nobody has to name it.
TEST(FiInfo, WithoutAnotherLinkThatWillDoThereIsOneOverUdp) {
  const UseLink link("");
  Info info;
  auto asked = hints();
  asked->domain_attr->name = ::strdup("udp:");
  ASSERT_EQ(get_info(nullptr, nullptr, 0, asked, info), 0);
  EXPECT_STREQ(info->fabric_attr->name, "udp:");
  EXPECT_EQ(formats(info.get()), (std::vector<std::uint32_t>{FI_SOCKADDR_IN, FI_SOCKADDR_IN6}));
}

// libfabric asks a provider if its fi_version is not older than what a program asks for.
TEST(FiInfo, ProgramsOfOlderAndNewerApisFindIt) {
  const auto path = std::string(std::getenv("FI_PROVIDER_PATH")) + "/libstp-fi.so";
  void* const library = ::dlopen(path.c_str(), RTLD_NOW);
  ASSERT_NE(library, nullptr) << ::dlerror();
  const auto begin = reinterpret_cast<fi_provider* (*)()>(::dlsym(library, "fi_prov_ini"));
  ASSERT_NE(begin, nullptr);
  const auto* const provider = begin();
  for (const auto version :
       {FI_VERSION(1, 9), FI_VERSION(1, 17), FI_VERSION(1, 20), FI_VERSION(2, 0), FI_VERSION(2, 6)})
    for (const auto& asked : {hints(), rdm_hints()}) {
      EXPECT_GE(provider->fi_version, version);
      // FI_PROGRESS_CONTROL_UNIFIED, which newer programs may ask for.
      if (version >= FI_VERSION(1, 20))
        asked->domain_attr->control_progress = static_cast<fi_progress>(3);
      fi_info* found = nullptr;
      ASSERT_EQ(provider->getinfo(version, nullptr, nullptr, 0, asked.get(), &found), 0);
      EXPECT_EQ(found->fabric_attr->api_version, version);
      EXPECT_EQ(found->ep_attr->type, asked->ep_attr->type);
      EXPECT_EQ(found->domain_attr->control_progress, FI_PROGRESS_MANUAL);
      fi_freeinfo(found);
    }
}

TEST(FiInfo, OfiRxmLayersEndpointsOfRdm) {
  auto asked = hints();
  std::free(asked->fabric_attr->prov_name);
  asked->fabric_attr->prov_name = ::strdup("stp;ofi_rxm");
  asked->ep_attr->type = FI_EP_RDM;
  asked->caps = FI_TAGGED | FI_MSG | FI_RMA;
  Info info;
  ASSERT_EQ(get_info(nullptr, nullptr, 0, asked, info), 0);
  EXPECT_STREQ(info->fabric_attr->prov_name, "stp;ofi_rxm");
}

}  // namespace
}  // namespace stp::test::info_test
