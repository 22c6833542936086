// SPDX-License-Identifier: BSD-3-Clause
#include "tools/files/metadata.h"

#include <gtest/gtest.h>

namespace stp::files {
namespace {

Metadata image() {
  Metadata metadata;
  metadata.size = 5'000'000'000;
  metadata.mode = 0644;
  metadata.modified = {1'700'000'000, 123'456'789};
  metadata.keep_times = true;
  metadata.path = "disks/disk.img";
  return metadata;
}

Metadata link_to(const std::string& target) {
  Metadata metadata;
  metadata.kind = FileKind::kSymbolicLink;
  metadata.size = target.size();
  metadata.path = "link";
  metadata.target = target;
  return metadata;
}

TEST(Metadata, comes_out_as_it_went_in) {
  const auto metadata = decode_metadata(encode(image()));
  ASSERT_TRUE(metadata.has_value());
  EXPECT_EQ(metadata->kind, FileKind::kRegular);
  EXPECT_EQ(metadata->size, 5'000'000'000U);
  EXPECT_EQ(metadata->mode, 0644);
  EXPECT_EQ(metadata->modified.tv_sec, 1'700'000'000);
  EXPECT_EQ(metadata->modified.tv_nsec, 123'456'789);
  EXPECT_TRUE(metadata->keep_times);
  EXPECT_FALSE(metadata->resume);
  EXPECT_EQ(metadata->path, "disks/disk.img");
}

TEST(Metadata, of_a_symbolic_link_says_where_it_points_to) {
  const auto metadata = decode_metadata(encode(link_to("../elsewhere")));
  ASSERT_TRUE(metadata.has_value());
  EXPECT_EQ(metadata->path, "link");
  EXPECT_EQ(metadata->target, "../elsewhere");
}

TEST(Metadata, of_a_further_name_tells_the_number_of_the_first) {
  auto name = image();
  name.first = 70'000;
  name.more_names = true;
  const auto metadata = decode_metadata(encode(name));
  ASSERT_TRUE(metadata.has_value());
  EXPECT_EQ(metadata->first, 70'000U);
  EXPECT_TRUE(metadata->more_names);
  EXPECT_FALSE(decode_metadata(encode(image()))->more_names);
  auto link = link_to("there");
  link.first = 1;
  EXPECT_FALSE(decode_metadata(encode(link)));
}

TEST(Metadata, keeps_a_time_before_1970) {
  auto early = image();
  early.modified = {-1, 999'999'999};
  EXPECT_EQ(decode_metadata(encode(early))->modified.tv_sec, -1);
}

TEST(Metadata, of_every_length_but_its_own_is_refused) {
  for (const auto& metadata : {image(), link_to("there")}) {
    const auto bytes = encode(metadata);
    for (std::size_t length = 0; length < bytes.size(); ++length)
      EXPECT_FALSE(decode_metadata(std::span(bytes).first(length))) << length;
    auto longer = bytes;
    longer.push_back(std::byte{0});
    EXPECT_FALSE(decode_metadata(longer));
  }
}

TEST(Metadata, with_a_field_that_cannot_be_is_refused) {
  struct {
    std::size_t at;
    int value;
    const char* what;
  } const bad[] = {{0, 0, "magic"},        {5, 1, "version"},         {6, 0, "no kind"},
                   {6, 4, "unknown kind"}, {10, 0xff, "path length"}, {12, 0x7f, "nanoseconds"}};
  for (const auto& [at, value, what] : bad) {
    auto bytes = encode(image());
    bytes[at] = static_cast<std::byte>(value);
    EXPECT_FALSE(decode_metadata(bytes)) << what;
  }
}

TEST(Metadata, never_carries_setuid_setgid_or_sticky) {
  auto metadata = image();
  metadata.mode = 07755;
  EXPECT_EQ(decode_metadata(encode(metadata))->mode, 0755);
  auto bytes = encode(image());
  bytes[8] = std::byte{0x0f};
  EXPECT_EQ(decode_metadata(bytes)->mode & ~0777, 0);
}

}  // namespace
}  // namespace stp::files
