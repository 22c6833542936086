// SPDX-License-Identifier: BSD-3-Clause
// Connections that never say what they want do not keep a listener from those that do.
#include "tests/managed/managed_fixture.h"

#include <chrono>

namespace stp::test {
namespace {

class SilentRequesters : public LibstTest, protected TwoSides {
 protected:
  void SetUp() override { listen(); }
};
STP_BOTH_WAYS(SilentRequesters);

// protocol: 9.40
TEST_P(SilentRequesters, GiveTheirPlacesToWhoAsks) {
  using Clock = std::chrono::steady_clock;
  Endpoint silent;
  ASSERT_EQ(silent.error(), 0);
  std::vector<st_chandle_t> connected;
  auto const begin = Clock::now();
  // As many as the listener has places for undecided ones.
  for (int i = 0; i < 64; ++i) {
    st_chandle_t chandle = nullptr;
    ASSERT_EQ(st_connect(silent, ":3000", &chandle), 0) << i;
    connected.push_back(chandle);
  }
  connect();
  server.connection = server.next(STM_REQUEST).connection;
  ASSERT_NE(server.connection, nullptr);
  EXPECT_LT(Clock::now() - begin, std::chrono::seconds(9)) << "those that are silent have 10 s";
  auto const attr = server.attr(2);
  ASSERT_EQ(stm_accept(server.connection, &attr, nullptr, 0), 0);
  EXPECT_EQ(client.next(STM_CONNECTED).status, 0);
  for (auto* const chandle : connected) st_close(chandle);
}

}  // namespace
}  // namespace stp::test
