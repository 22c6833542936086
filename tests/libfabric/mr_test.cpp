// SPDX-License-Identifier: BSD-3-Clause
// Memory of the same bytes that is registered and closed again and again, as programs do for each
// message.
#include "tests/libfabric/rdm_fixture.h"

namespace stp::test::mr_test {
namespace {

class MrTest : public RdmTest {
 protected:
  void write(const std::vector<char>& bytes, std::uint64_t key) {
    ASSERT_EQ(fi_write(a_->ep.get(), bytes.data(), bytes.size(), nullptr, to_b_, at_, key, nullptr),
              0);
  }
  void expect_dead(std::uint64_t key) {
    const auto before = there_;
    write(pattern(there_.size(), 99), key);
    EXPECT_EQ(a_->failed(a_->tx.get()).err, FI_EACCES);
    EXPECT_EQ(there_, before);
  }

  std::vector<char> there_ = std::vector<char>(100'000);
  const std::uint64_t at_ = reinterpret_cast<std::uintptr_t>(there_.data());
};

TEST_F(MrTest, TheSameBytesAreRegisteredAgainAndOldKeysAreDead) {
  std::uint64_t old = 0;
  for (unsigned round = 0; round < 4; ++round) {
    const auto memory = b_->memory(there_.data(), there_.size(), FI_REMOTE_READ | FI_REMOTE_WRITE);
    const auto key = fi_mr_key(memory.get());
    if (round > 0) {
      EXPECT_NE(key, old);
      expect_dead(old);
    }
    const auto bytes = pattern(there_.size(), round);
    write(bytes, key);
    a_->completed(a_->tx.get());
    EXPECT_EQ(there_, bytes);
    std::vector<char> back(there_.size());
    ASSERT_EQ(fi_read(a_->ep.get(), back.data(), back.size(), nullptr, to_b_, at_, key, nullptr),
              0);
    a_->completed(a_->tx.get());
    EXPECT_EQ(back, bytes);
    old = key;
  }
  expect_dead(old);
}

}  // namespace
}  // namespace stp::test::mr_test
