// SPDX-License-Identifier: BSD-3-Clause
// The errors that a program gets when it has reached a limit of stpd.
#include <vector>

#include "libst/host/budgets.h"
#include "tests/libst/libst_fixture.h"

namespace stp::test {
namespace {

TEST(Quotas, OneThatIsUsedUpIsNamed) {
  const Daemon daemon;
  const UseLink link(daemon.link());
  std::vector<std::unique_ptr<Endpoint>> endpoints;
  do {
    endpoints.push_back(std::make_unique<Endpoint>());
  } while (endpoints.back()->error() == 0);
  EXPECT_EQ(endpoints.back()->error(), -EDQUOT);
  EXPECT_NE(std::string(st_strerror(-EDQUOT)).find("--max-endpoints"), std::string::npos)
      << st_strerror(-EDQUOT);
  EXPECT_EQ(endpoints.size(), host::Quotas{}.endpoints + 1);
}

}  // namespace
}  // namespace stp::test
