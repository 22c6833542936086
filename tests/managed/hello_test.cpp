// SPDX-License-Identifier: BSD-3-Clause
#include "libst/managed/hello.h"

#include <gtest/gtest.h>

#include <array>

#include "libst/managed/staging.h"
#include "stp/managed.h"

namespace stp::test {
namespace {

using managed::Hello;
using managed::kHelloHead;

class Hellos : public ::testing::Test {
 protected:
  std::array<std::byte, managed::kHelloSize> room{};

  Bytes encoded(Hello::Kind kind, std::size_t length) {
    Hello hello{kind, std::vector<std::byte>(length, std::byte{7})};
    return {room.data(), managed::encode(hello, room.data())};
  }
  static bool valid(Bytes bytes) {
    Hello out;
    return managed::decode(bytes, out);
  }
};

// protocol: 9.30
TEST_F(Hellos, what_is_written_is_read) {
  for (const auto kind : {Hello::Kind::kRequest, Hello::Kind::kAccept, Hello::Kind::kReject})
    for (const std::size_t length :
         {std::size_t{0}, std::size_t{1}, std::size_t{STM_PRIVATE_DATA}}) {
      const auto bytes = encoded(kind, length);
      EXPECT_EQ(bytes.size(), kHelloHead + length);
      Hello out;
      ASSERT_TRUE(managed::decode(bytes, out));
      EXPECT_EQ(out.kind, kind);
      EXPECT_EQ(out.private_data, std::vector<std::byte>(length, std::byte{7}));
    }
}

// protocol: 9.30
TEST_F(Hellos, what_a_peer_may_write_wrong_is_refused) {
  const auto bytes = encoded(Hello::Kind::kAccept, 10);
  ASSERT_TRUE(valid(bytes));
  EXPECT_FALSE(valid({}));
  EXPECT_FALSE(valid(bytes.first(kHelloHead - 1)));
  EXPECT_FALSE(valid(bytes.first(bytes.size() - 1)));
  EXPECT_FALSE(valid({room.data(), bytes.size() + 1}));
  // A wrong mark, version, kind and length.
  for (const std::size_t at : {0U, 3U, 4U, 5U, 6U, 8U, 11U}) {
    const auto before = room[at];
    room[at] = std::byte{0x55};
    EXPECT_FALSE(valid(bytes)) << at;
    room[at] = before;
  }
  room[7] = std::byte{0};
  EXPECT_FALSE(valid(bytes));
  room[7] = std::byte{4};
  EXPECT_FALSE(valid(bytes));
  room[7] = std::byte{3};
  EXPECT_TRUE(valid(bytes));
  EXPECT_FALSE(valid(encoded(Hello::Kind::kRequest, STM_PRIVATE_DATA + 1)));
}

}  // namespace
}  // namespace stp::test
