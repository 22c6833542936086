// SPDX-License-Identifier: BSD-3-Clause
#include "libst/libfabric/memory.h"

#include <gtest/gtest.h>

#include <array>
#include <set>
#include <vector>

namespace stp::test::memory_test {
namespace {

using fi::Registrations;
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

class FiRegistrations : public testing::Test {
 protected:
  FiRegistrations() {
    stm_domain_attr_t attr{};
    attr.size = sizeof attr;
    attr.link = "loop";
    EXPECT_EQ(stm_domain_open(&attr, &domain_), 0);
    registrations_.set_domain(domain_);
  }
  ~FiRegistrations() override { stm_domain_close(domain_); }
  Registrations::Shared* take(std::size_t length, unsigned access) {
    Registrations::Shared* taken = nullptr;
    EXPECT_EQ(registrations_.take({bytes_.data(), length, access}, taken), 0);
    return taken;
  }

  stm_domain_t domain_ = nullptr;
  Registrations registrations_;
  std::array<std::byte, 4096> bytes_{};
};

TEST_F(FiRegistrations, OfTheSameBytesForTheSameAccessThereIsOne) {
  auto* const first = take(4096, STM_LOCAL_READ);
  EXPECT_EQ(take(4096, STM_LOCAL_READ), first);
  auto* const shorter = take(4000, STM_LOCAL_READ);
  EXPECT_NE(shorter, first);
  auto* const written = take(4096, STM_LOCAL_WRITE);
  EXPECT_NE(written, first);
  EXPECT_EQ(registrations_.size(), 3U);
  first->give_back();
  EXPECT_EQ(registrations_.size(), 3U) << "another one uses it";
  EXPECT_EQ(registrations_.released(), 0U);
  for (auto* const each : {first, shorter, written}) each->give_back();
  EXPECT_EQ(registrations_.size(), 0U);
  EXPECT_EQ(registrations_.released(), 3U);
}

TEST_F(FiRegistrations, OneThatIsRefusedLeavesNothing) {
  Registrations::Shared* none = nullptr;
  EXPECT_LT(registrations_.take({nullptr, 4096, STM_LOCAL_READ}, none), 0);
  EXPECT_EQ(registrations_.size(), 0U);
}

}  // namespace
}  // namespace stp::test::memory_test
