// SPDX-License-Identifier: BSD-3-Clause
// An endpoint's own address is the one that its link has at present.
#include <chrono>
#include <thread>

#include "tests/libfabric/fi_fixture.h"
#include "tests/libst/libst_fixture.h"
#include "tests/service/test_port.h"

namespace stp::test::link_test {
namespace {

in_addr_t name_of(fid& id) {
  sockaddr_in name{};
  auto length = sizeof name;
  EXPECT_EQ(fi_getname(&id, &name, &length), 0);
  return ntohl(name.sin_addr.s_addr);
}

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
