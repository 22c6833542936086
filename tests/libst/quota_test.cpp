// SPDX-License-Identifier: BSD-3-Clause
// The errors that a program gets when it has reached a limit of stpd.
#include <sys/mman.h>

#include <algorithm>
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

// They may be more than the machine has.
TEST(Quotas, NoPagesAreMadeForMemoryThatIsMoreThanStpdPermits) {
  constexpr std::size_t kSize = std::size_t{32} << 20, kPage = 4096;
  Daemon daemon;
  daemon.limit_mapped(kSize / 2);
  const UseLink link(daemon.link());
  Endpoint endpoint;
  ASSERT_EQ(endpoint.error(), 0);
  auto* const memory = ::mmap(nullptr, kSize, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  st_mhandle_t mapped = nullptr;
  EXPECT_EQ(st_map(endpoint, ST_MAP_TX, memory, kSize, 0, -1, &mapped, nullptr), -EDQUOT);
  EXPECT_NE(std::string(st_strerror(-EDQUOT)).find("--max-mapped"), std::string::npos)
      << st_strerror(-EDQUOT);
  std::vector<unsigned char> made(kSize / kPage);
  ASSERT_EQ(::mincore(memory, kSize, made.data()), 0);
  EXPECT_EQ(std::ranges::count(made, 0), static_cast<std::ptrdiff_t>(made.size()));
  ::munmap(memory, kSize);
}

}  // namespace
}  // namespace stp::test
