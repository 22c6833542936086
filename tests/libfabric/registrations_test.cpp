// SPDX-License-Identifier: BSD-3-Clause
#include "libst/libfabric/registrations.h"

#include <gtest/gtest.h>

#include <array>

namespace stp::test::registrations_test {
namespace {

using fi::Registrations;

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
}  // namespace stp::test::registrations_test
