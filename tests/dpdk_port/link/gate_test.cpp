// SPDX-License-Identifier: BSD-3-Clause
#include "dpdk_port/link/gate.h"

#include <gtest/gtest.h>

#include <memory>
#include <thread>
#include <vector>

namespace stp::port {
namespace {

TEST(Gate, IsClosedAtFirst) {
  Gate gate;
  EXPECT_FALSE(gate.enter(3));
  gate.close();  // nobody is inside
  gate.open();
  EXPECT_TRUE(gate.enter(3));
  gate.leave(3);
  gate.close();
  EXPECT_FALSE(gate.enter(3));
}

// The owner takes away what the users look at. ThreadSanitizer and AddressSanitizer see a user that
// is late.
TEST(Gate, NobodyIsInsideWhenItHasClosed) {
  Gate gate;
  std::unique_ptr<unsigned> shared;
  std::atomic<bool> stop{false};
  std::array<std::atomic<unsigned>, 3> visits{};
  std::vector<std::thread> users;
  for (unsigned user = 0; user < visits.size(); ++user) {
    users.emplace_back([&, user] {
      while (!stop) {
        if (gate.enter(user)) {
          visits[user] += *shared;
          gate.leave(user);
        }
        std::this_thread::yield();
      }
    });
  }
  for (int round = 0; round < 20; ++round) {
    shared = std::make_unique<unsigned>(1);
    std::array<unsigned, 3> before{};
    for (unsigned user = 0; user < visits.size(); ++user) before[user] = visits[user];
    gate.open();
    for (unsigned user = 0; user < visits.size(); ++user)
      while (visits[user] == before[user]) std::this_thread::yield();
    gate.close();
    shared.reset();
  }
  stop = true;
  for (auto& user : users) user.join();
}

}  // namespace
}  // namespace stp::port
