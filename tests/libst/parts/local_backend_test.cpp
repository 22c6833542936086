// SPDX-License-Identifier: BSD-3-Clause
#include <fcntl.h>

#include <optional>

#include "libst/os/unique_fd.h"
#include "tests/libst/libst_fixture.h"
#include "tests/libst/parts/few_files.h"

namespace stp::test {
namespace {

rlim_t lowest_free() {
  const os::UniqueFd free(::fcntl(0, F_DUPFD_CLOEXEC, 0));
  return static_cast<rlim_t>(free.get());
}

TEST(LocalBackend, ALackOfDescriptorsIsReportedAsOne) {
#if defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "UndefinedBehaviorSanitizer needs descriptors to look at the type of an object";
#endif
  const UseLink loop("loop");
  for (rlim_t limit = lowest_free();; ++limit) {
    std::optional<FewFiles> few(limit);
    const Endpoint endpoint;
    few.reset();
    if (endpoint.error() == 0) break;
    EXPECT_EQ(endpoint.error(), -EMFILE) << limit << ": " << st_strerror(endpoint.error());
    ASSERT_LT(limit, 1000U);
  }
}

}  // namespace
}  // namespace stp::test
