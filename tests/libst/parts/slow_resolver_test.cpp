// SPDX-License-Identifier: BSD-3-Clause
// A resolver that takes longer than st_connect waits for an answer. The clock of this program is
// the test's (time/clock.h).
#include <thread>

#include "tests/libst/libst_fixture.h"
#include "tests/libst/parts/resolver.h"

namespace stp::test {
namespace {

TEST(SlowResolver, LeavesTimeToConnect) {
  const UseLink loop("loop");
  Endpoint server(":3000"), client;
  set_option(server, ST_OPT_INSPECT, 1);
  ASSERT_EQ(st_listen(server), 0);
  st_chandle_t accepted = nullptr, connected = nullptr;
  std::thread accepting([&] {
    if (st_inspect(server, &accepted, nullptr, nullptr) == 0) st_accept_opt(accepted, nullptr);
  });
  resolver_takes = 60 * kSecond;
  const auto error = st_connect(client, "127.0.0.1:3000", &connected);
  resolver_takes = 0;
  EXPECT_EQ(error, 0) << st_strerror(error);
  if (error != 0) server.reset();
  accepting.join();
}

}  // namespace
}  // namespace stp::test
