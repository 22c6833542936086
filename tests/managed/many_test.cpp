// SPDX-License-Identifier: BSD-3-Clause
// Many connections that are begun at once, before the first is answered.
#include <vector>

#include "tests/managed/managed_fixture.h"

namespace stp::test {
namespace {

class Many : public LibstTest, protected TwoSides {
 protected:
  // More than a backlog, and than 5.33 lets ask at once. Within one process, more than are visited
  // without fetching ahead.
  [[nodiscard]] static int connections() {
#if defined(__SANITIZE_THREAD__)
    return 24;  // more may not come up within the patience of the tests
#else
    return GetParam() == Way::kInProcess ? 260 : 150;
#endif
  }
  void SetUp() override {
    listen();
  }
  void accept_all() {
    const auto attr = server.attr();
    for (int i = 0; i < connections(); ++i)
      ASSERT_EQ(stm_accept(server.next(STM_REQUEST).connection, &attr, nullptr, 0), 0);
  }
};
STP_BOTH_WAYS(Many);

// protocol: 5.33
TEST_P(Many, AllOfThemComeUp) {
  std::vector<stm_connection_t> all(static_cast<std::size_t>(connections()));
  const auto attr = client.attr();
  for (auto& connection : all) {
    ASSERT_EQ(stm_connection_create(client.domain, &attr, &connection), 0);
    ASSERT_EQ(stm_connect(connection, ":3000", -1, nullptr, 0), 0);
  }
  accept_all();
  for (int i = 0; i < connections(); ++i) ASSERT_EQ(client.next(STM_CONNECTED).status, 0) << i;
}

}  // namespace
}  // namespace stp::test
