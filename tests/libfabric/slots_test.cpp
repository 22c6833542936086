// SPDX-License-Identifier: BSD-3-Clause
#include "libst/libfabric/slots.h"

#include <gtest/gtest.h>

#include <set>
#include <vector>

namespace stp::test::slots_test {
namespace {

using fi::Slots;
using fi::Span;

class FiSlots : public testing::Test {
 protected:
  FiSlots() {
    stm_domain_attr_t attr{};
    attr.size = sizeof attr;
    attr.link = "loop";
    EXPECT_EQ(stm_domain_open(&attr, &domain_), 0);
    slots_.set_domain(domain_);
  }
  ~FiSlots() override { stm_domain_close(domain_); }

  static constexpr std::size_t kSize = 64, kFirst = 4, kMost = 32;
  stm_domain_t domain_ = nullptr;
  Slots slots_{kSize, kFirst, kMost};
};

// A stpd takes milliseconds for each registration.
TEST_F(FiSlots, ManyTakeFewRegistrations) {
  std::set<stm_memory_t> registered;
  std::set<std::byte*> places;
  std::vector<Span> taken(kFirst + 8 + 16 + 2 * kMost);
  for (auto& each : taken) {
    ASSERT_EQ(slots_.take(each), 0);
    registered.insert(each.memory);
    places.insert(each.data);
  }
  EXPECT_EQ(registered.size(), 5U);
  EXPECT_EQ(places.size(), taken.size());
  EXPECT_TRUE(slots_.has_lent());
  for (auto& each : taken) each.release();
  EXPECT_FALSE(slots_.has_lent());
}

TEST_F(FiSlots, AFewTakeLittleMemory) {
  Span one, other;
  ASSERT_EQ(slots_.take(one), 0);
  for (std::size_t i = 1; i < kFirst; ++i) {
    ASSERT_EQ(slots_.take(other), 0);
    EXPECT_EQ(other.memory, one.memory);
  }
  ASSERT_EQ(slots_.take(other), 0);
  EXPECT_NE(other.memory, one.memory);
}

}  // namespace
}  // namespace stp::test::slots_test
