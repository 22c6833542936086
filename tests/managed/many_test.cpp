// SPDX-License-Identifier: BSD-3-Clause
// Many connections that are begun at once, before the first is answered.
#include <cerrno>
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
  // What posting to the connections of events needs is fetched ahead, unless they are gone.
  Buffer mine(64);
  const auto memory = client.memory(mine.data(), mine.size());
  for (std::size_t i = 0; i < all.size(); ++i) {
    ASSERT_EQ(stm_receive(all[i], i, memory, mine.data(), mine.size()), 0);
    ASSERT_EQ(stm_cancel(all[i], i), 0);
  }
  for (std::size_t i = 0; i < 4; ++i) ASSERT_EQ(stm_connection_close(all[i]), 0);
  for (std::size_t i = 4; i < all.size(); ++i)
    ASSERT_EQ(client.completion(i).status, -ECANCELED) << i;
}

}  // namespace
}  // namespace stp::test
