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

using Path = std::vector<std::string>;

TEST(Name, a_path_below_the_directory_is_accepted) {
  EXPECT_EQ(accepted_path("file.iso"), Path{"file.iso"});
  EXPECT_EQ(accepted_path("a/b/c"), (Path{"a", "b", "c"}));
  EXPECT_EQ(accepted_path("a b\xc3\xa4"), Path{"a b\xc3\xa4"});
}

TEST(Name, no_path_leads_out_of_the_directory) {
  for (const auto* path :
       {"", "/", ".", "..", "/etc/passwd", "../up", "a/../../up", "a/./b", "a//b", "a/"})
    EXPECT_EQ(accepted_path(path), std::nullopt) << path;
}

TEST(Name, control_characters_are_refused) {
  EXPECT_EQ(accepted_path("a\nb"), std::nullopt);
  EXPECT_EQ(accepted_path("dir/a\x1b[2J"), std::nullopt);
  EXPECT_EQ(accepted_path("a\x7f/b"), std::nullopt);
  EXPECT_EQ(accepted_path(std::string_view("a\0b", 3)), std::nullopt);
}

TEST(Name, the_longest_names_are_accepted_and_longer_ones_refused) {
  EXPECT_TRUE(accepted_path(std::string(255, 'x')).has_value());
  EXPECT_EQ(accepted_path(std::string(256, 'x')), std::nullopt);
  std::string path = "x";
  while (path.size() + 2 <= kMaxPathLength) path += "/x";
  EXPECT_TRUE(accepted_path(path).has_value());
  EXPECT_EQ(accepted_path(path + "/x"), std::nullopt);
}

TEST(Name, a_sender_cannot_name_a_temporary_file_of_the_receiver) {
  EXPECT_EQ(accepted_path(".stp-recv.123.0.part"), std::nullopt);
  EXPECT_EQ(accepted_path("dir/.stp-recv.123.0.part"), std::nullopt);
  EXPECT_TRUE(accepted_path(".bashrc").has_value());
}

TEST(Name, the_base_name_is_the_last_component) {
  EXPECT_EQ(base_name("/etc/passwd"), "passwd");
  EXPECT_EQ(base_name("dir/"), "dir");
  EXPECT_EQ(base_name("file"), "file");
  for (const auto* nameless : {"", "/", ".", "..", "a/.."}) EXPECT_EQ(base_name(nameless), "");
}

unsigned changed(const char* text, std::uint16_t mode, bool is_directory = false) {
  const auto changes = ModeChanges::parse(text);
  return changes ? changes->apply(mode, is_directory) : 07777U;
}

TEST(ModeChanges, are_octal_or_symbolic) {
  EXPECT_EQ(changed("640", 0777), 0640U);
  EXPECT_EQ(changed("u=rwx,go=rx", 0), 0755U);
  EXPECT_EQ(changed("a+r", 0200), 0644U);
  EXPECT_EQ(changed("+r", 0200), 0644U);
  EXPECT_EQ(changed("go-w", 0666), 0644U);
  EXPECT_EQ(changed("g=", 0777), 0707U);
  EXPECT_EQ(changed("o=r,g=w", 0777), 0724U);
}

TEST(ModeChanges, may_be_for_directories_or_files_alone) {
  EXPECT_EQ(changed("D755,F644", 0, true), 0755U);
  EXPECT_EQ(changed("D755,F644", 0, false), 0644U);
  EXPECT_EQ(changed("Dg+w", 0755, false), 0755U);
}

TEST(ModeChanges, of_x_for_directories_and_programs_only) {
  EXPECT_EQ(changed("a=rX", 0600, true), 0555U);
  EXPECT_EQ(changed("a+rX", 0600, false), 0644U);
  EXPECT_EQ(changed("a+rX", 0700, false), 0755U);
  EXPECT_EQ(changed("a-X", 0711, false), 0600U);
}

TEST(ModeChanges, that_are_none_are_refused) {
  for (const auto* text : {"", "D", "888", "7777", "u", "u+q", "z+r", "644,", ",644", "64x", "+s"})
    EXPECT_FALSE(ModeChanges::parse(text)) << text;
}

}  // namespace
}  // namespace stp::files
