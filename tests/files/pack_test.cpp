// SPDX-License-Identifier: BSD-3-Clause
#include "tools/files/pack.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace stp::files {
namespace {

// Appends a file of `length` bytes that all have the value `fill`.
void append(std::vector<std::byte>& pack, std::uint32_t file, std::size_t length, std::byte fill) {
  Digest digest{};
  digest.fill(std::to_integer<std::uint8_t>(fill));
  const auto at = pack.size();
  pack.resize(at + kPackHead + length, fill);
  put_pack_head(std::span(pack).subspan(at, kPackHead), file, length, digest);
}

TEST(Pack, FilesComeOutAsTheyWentIn) {
  std::vector<std::byte> pack;
  append(pack, 7, 3, std::byte{0x11});
  append(pack, 0xfffffffe, 0, std::byte{0x22});
  append(pack, 9, kMostPacked, std::byte{0x33});
  std::span<const std::byte> rest(pack);
  for (const auto& [number, length, fill] : {std::tuple{7U, std::size_t{3}, 0x11},
                                             {0xfffffffeU, std::size_t{0}, 0x22},
                                             {9U, kMostPacked, 0x33}}) {
    const auto file = take_packed(rest);
    ASSERT_TRUE(file);
    EXPECT_EQ(file->file, number);
    EXPECT_EQ(file->content.size(), length);
    EXPECT_EQ(std::count(file->content.begin(), file->content.end(), std::byte(fill)),
              static_cast<std::ptrdiff_t>(length));
    EXPECT_EQ(std::count(file->digest.begin(), file->digest.end(), fill),
              static_cast<std::ptrdiff_t>(file->digest.size()));
  }
  EXPECT_TRUE(rest.empty());
}

// Other implementations write them as well.
TEST(Pack, AHeadIsBigEndian) {
  std::vector<std::byte> pack;
  append(pack, 0x01020304, 5, std::byte{0xff});
  const std::array head{std::byte{1}, std::byte{2}, std::byte{3}, std::byte{4},
                        std::byte{0}, std::byte{0}, std::byte{0}, std::byte{5}};
  EXPECT_TRUE(std::equal(head.begin(), head.end(), pack.begin()));
}

TEST(Pack, WhatIsCutIsRefused) {
  std::vector<std::byte> pack;
  append(pack, 1, 10, std::byte{1});
  for (std::size_t size = 0; size < pack.size(); ++size) {
    auto cut = std::span<const std::byte>(pack).first(size);
    EXPECT_FALSE(take_packed(cut)) << size;
  }
}

TEST(Pack, ALengthBeyondThePackIsRefused) {
  for (const std::size_t length : {std::size_t{11}, std::size_t{0xffffffff}}) {
    std::vector<std::byte> pack;
    append(pack, 1, 10, std::byte{1});
    put_pack_head(std::span(pack).first(kPackHead), 1, length, {});
    std::span<const std::byte> rest(pack);
    EXPECT_FALSE(take_packed(rest)) << length;
  }
}

}  // namespace
}  // namespace stp::files
