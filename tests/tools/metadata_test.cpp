// SPDX-License-Identifier: BSD-3-Clause
#include "tools/files/metadata.h"

#include <gtest/gtest.h>

namespace stp::files {
namespace {

std::vector<std::uint8_t> good() {
  return encode(Metadata{5'000'000'000, 0644, "disk.img"});
}

TEST(Metadata, comes_out_as_it_went_in) {
  auto const metadata = decode_metadata(good());
  ASSERT_TRUE(metadata.has_value());
  EXPECT_EQ(metadata->size, 5'000'000'000U);
  EXPECT_EQ(metadata->mode, 0644);
  EXPECT_EQ(metadata->name, "disk.img");
}

TEST(Metadata, of_every_length_but_its_own_is_refused) {
  auto const bytes = good();
  for (std::size_t length = 0; length < bytes.size(); ++length)
    EXPECT_FALSE(decode_metadata(std::span(bytes).first(length))) << length;
  auto longer = bytes;
  longer.push_back(0);
  EXPECT_FALSE(decode_metadata(longer));
}

TEST(Metadata, that_says_a_longer_name_than_there_is_is_refused) {
  auto bytes = good();
  bytes[16] = 0xff;
  EXPECT_FALSE(decode_metadata(bytes));
}

TEST(Metadata, of_another_magic_or_version_is_refused) {
  auto bytes = good();
  bytes[0] ^= 1;
  EXPECT_FALSE(decode_metadata(bytes));
  bytes = good();
  bytes[5] = 2;
  EXPECT_FALSE(decode_metadata(bytes));
}

TEST(Metadata, with_a_name_that_no_file_system_takes_is_refused) {
  EXPECT_TRUE(decode_metadata(encode(Metadata{0, 0, std::string(255, 'n')})));
  EXPECT_FALSE(decode_metadata(encode(Metadata{0, 0, std::string(256, 'n')})));
}

TEST(Metadata, never_carries_setuid_setgid_or_sticky) {
  EXPECT_EQ(decode_metadata(encode(Metadata{0, 07755, "f"}))->mode, 0755);
  auto bytes = encode(Metadata{0, 0755, "f"});
  bytes[6] = 0x0f;
  EXPECT_EQ(decode_metadata(bytes)->mode & ~0777, 0);
}

}  // namespace
}  // namespace stp::files
