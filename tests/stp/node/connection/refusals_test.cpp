// SPDX-License-Identifier: BSD-3-Clause
#include "stp/node/connection/refusals.h"

#include <gtest/gtest.h>

#include <array>

namespace stp::test::refusals_test {
namespace {

constexpr Time kMemory = Refusals::kMemory;

PeerName peer(std::uint32_t key) {
  return {.mac = MacAddr::from_u64(0x020000000001), .port = 7, .key = key};
}
OptionPayload words(std::uint8_t first) {
  std::array<std::byte, wire::kOptionSize> bytes{};
  bytes[0] = std::byte{first};
  return bytes;
}

// protocol: 5.29
TEST(Refusals, a_repeated_request_finds_the_words_of_the_first_answer) {
  Refusals refusals;
  EXPECT_EQ(refusals.find(peer(1), 0), nullptr);
  refusals.remember(peer(1), words(11), 100);
  refusals.remember(peer(2), words(22), 100);
  refusals.remember(peer(1), words(33), 200);  // the same request, answered once more
  ASSERT_NE(refusals.find(peer(1), 200), nullptr);
  EXPECT_EQ(refusals.find(peer(1), 200)->value()[0], std::byte{11});
  ASSERT_NE(refusals.find(peer(2), 200), nullptr);
  EXPECT_EQ(refusals.find(peer(2), 200)->value()[0], std::byte{22});
  EXPECT_NE(refusals.find(peer(1), 100 + kMemory - 1), nullptr);
  EXPECT_EQ(refusals.find(peer(1), 100 + kMemory), nullptr);
}

// protocol: 5.29
TEST(Refusals, where_there_is_no_room_the_oldest_is_forgotten) {
  Refusals refusals;
  const auto most = static_cast<std::uint32_t>(Refusals::kCapacity);
  for (std::uint32_t key = 0; key <= most; ++key) refusals.remember(peer(key), {}, 0);
  EXPECT_EQ(refusals.find(peer(0), 0), nullptr);
  EXPECT_NE(refusals.find(peer(1), 0), nullptr);
  EXPECT_NE(refusals.find(peer(most), 0), nullptr);
}

}  // namespace
}  // namespace stp::test::refusals_test
