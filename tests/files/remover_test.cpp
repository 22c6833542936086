// SPDX-License-Identifier: BSD-3-Clause
#include "tools/files/remover.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>

#include "tests/files/limited_descriptors.h"
#include "tests/temporary_directory.h"
#include "tests/unprivileged.h"
#include "tools/files/metadata.h"
#include "tools/files/tree.h"

namespace stp::files {
namespace {

class RemoverTest : public ::testing::Test {
 protected:
  Directory open() {
    const auto root = directory_.path();
    Directory opened;
    EXPECT_EQ(DirectoriesBelow(root).open({}, opened), 0);
    return opened;
  }
  Removal remove(const std::string& name) {
    Removal removal;
    remove_all(open(), name, stop_, removal);
    return removal;
  }
  [[nodiscard]] bool exists(const std::string& name) const {
    return std::filesystem::exists(std::filesystem::symlink_status(directory_ / name));
  }

  test::TemporaryDirectory directory_;
  std::atomic<bool> stop_{false};
};

TEST_F(RemoverTest, all_names_are_told_and_none_of_unfinished_files) {
  std::vector<std::string> wanted;
  for (int i = 0; i < 300; ++i) {
    wanted.push_back("file-" + std::string(100, 'x') + std::to_string(i));
    std::ofstream(directory_ / wanted.back()) << 1;
  }
  wanted.emplace_back("directory");
  std::filesystem::create_directory(directory_ / "directory");
  std::ofstream(directory_ / ".stp-recv.1.part") << 1;
  std::vector<NameThere> names;
  std::size_t room = 1'000'000;
  unsigned last = 0, messages = 0;
  list_names(open()->get(), [&](std::span<const std::byte> message) {
    const auto is_last = take_names(message, names, room);
    ASSERT_TRUE(is_last);
    last += *is_last ? 1 : 0;
    ++messages;
    EXPECT_LE(message.size(), kMostOfNames + 300);
  });
  EXPECT_EQ(last, 1U);
  EXPECT_GT(messages, 2U);
  std::vector<std::string> found;
  for (const auto& name : names) {
    found.push_back(name.name);
    EXPECT_EQ(name.is_directory, name.name == "directory");
  }
  std::sort(found.begin(), found.end());
  std::sort(wanted.begin(), wanted.end());
  EXPECT_EQ(found, wanted);
}

TEST(Names, that_are_malformed_are_refused) {
  std::vector<NameThere> names;
  std::size_t room = 1'000;
  const auto take = [&](const std::string& text) {
    return take_names(std::as_bytes(std::span(text)), names, room);
  };
  for (const auto& text :
       {std::string(), std::string("\0d", 2), std::string("\0dx", 3), std::string("\0d\0", 3),
        std::string("\0d/\0", 4), std::string("\0\0", 2), std::string("\1-a/b\0", 6)})
    EXPECT_FALSE(take(text)) << text.size();
  // A receiver could go on for ever with messages that hold nothing.
  EXPECT_FALSE(take(std::string("\0", 1)));
  EXPECT_EQ(take(std::string("\0-a\0", 4)), std::optional(false));
  EXPECT_EQ(take(std::string("\1", 1)), std::optional(true));
}

// The shortest ones take a dozen times as much memory as their messages.
TEST(Names, that_take_too_much_memory_are_refused) {
  constexpr std::size_t kRoom = 100'000;
  const std::string text = std::string("\0", 1) + "-a" + std::string("\0", 1);
  std::vector<NameThere> names;
  std::size_t room = kRoom;
  while (take_names(std::as_bytes(std::span(text)), names, room)) {
  }
  EXPECT_LE(names.size() * sizeof(NameThere), kRoom);
  EXPECT_GT(names.size() * sizeof(NameThere), kRoom / 2);
}

TEST(Removal, is_told_as_a_path_and_names) {
  auto message = begin_removal("a/b");
  add_name(message, "c");
  add_name(message, "d");
  EXPECT_EQ(take_removal(message), (std::vector<std::string>{"a/b", "c", "d"}));
  message.pop_back();
  EXPECT_TRUE(take_removal(message).empty());
  EXPECT_TRUE(take_removal({}).empty());
}

// A receiver can name as many as it likes.
TEST(NamesToRemove, are_kept_up_to_a_number_of_bytes) {
  NamesToRemove names;
  const std::string name(kMaxPathLength, 'x');
  std::size_t added = 0;
  while (names.add(name)) ++added;
  EXPECT_EQ(added, NamesToRemove::kMostBytes / (name.size() + 1));
  std::size_t visited = 0;
  names.each([&](std::string_view each) { visited += each == name ? 1 : 0; });
  EXPECT_EQ(visited, added);
}

TEST_F(RemoverTest, a_tree_goes_with_all_that_it_holds_and_no_link_is_followed) {
  std::filesystem::create_directories(directory_ / "tree/a/b");
  std::filesystem::create_directory(directory_ / "other");
  std::ofstream(directory_ / "other/file") << 1;
  std::ofstream(directory_ / "tree/a/file") << 1;
  std::filesystem::create_directory_symlink("../other", directory_ / "tree/link");
  std::filesystem::create_directory_symlink("other", directory_ / "link");
  EXPECT_EQ(remove("tree").removed, 5U);
  EXPECT_FALSE(exists("tree"));
  EXPECT_EQ(remove("link").removed, 1U);
  EXPECT_FALSE(exists("link"));
  EXPECT_TRUE(exists("other/file"));
  EXPECT_EQ(remove("nothing").error, -ENOENT);
}

TEST_F(RemoverTest, a_deep_tree_needs_few_descriptors) {
  std::string path = "tree";
  for (int i = 0; i < 300; ++i) path += "/d";
  std::filesystem::create_directories(directory_ / path);
  const test::LimitedDescriptors limited(SourceDirectory::kMostOpen + 10);
  const auto removal = remove("tree");
  EXPECT_EQ(removal.removed, 301U);
  EXPECT_EQ(removal.error, 0);
  EXPECT_FALSE(exists("tree"));
}

TEST_F(RemoverTest, what_its_owner_may_not_write_goes_too) {
  const test::Unprivileged unprivileged(directory_.path());
  std::filesystem::create_directories(directory_ / "tree/a");
  std::ofstream(directory_ / "tree/a/file") << 1;
  std::filesystem::permissions(directory_ / "tree/a", std::filesystem::perms(0));
  std::filesystem::permissions(directory_ / "tree", std::filesystem::perms(0555));
  EXPECT_EQ(remove("tree").error, 0);
  EXPECT_FALSE(exists("tree"));
}

TEST_F(RemoverTest, it_can_be_stopped) {
  std::filesystem::create_directories(directory_ / "tree/a");
  stop_ = true;
  EXPECT_EQ(remove("tree").error, -ECANCELED);
  EXPECT_TRUE(exists("tree/a"));
}

}  // namespace
}  // namespace stp::files
