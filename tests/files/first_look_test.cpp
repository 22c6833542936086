// SPDX-License-Identifier: BSD-3-Clause
#include "tools/files/first_look.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "tests/temporary_directory.h"
#include "tests/unprivileged.h"

namespace stp::files {
namespace {

class FirstLook : public ::testing::Test {
 protected:
  FirstLook() {
    std::filesystem::create_directories(directory_ / "tree/sub");
    for (const auto* name : {"file", "tree/sub/a"}) std::ofstream(directory_ / name) << name;
    std::filesystem::create_symlink("nowhere", directory_ / "dangling");
    ::mkfifo((directory_ / "fifo").c_str(), 0600);
  }
  // The names that are left, then what has failed.
  std::string look(const std::vector<std::string>& names) {
    sending_.paths.clear();
    for (const auto& name : names)
      sending_.paths.push_back(name == "-" ? name : (directory_ / name).string());
    std::string failures;
    const auto left = first_look(sending_, [&](const std::string& path, const std::string& why) {
      failures += "; " + path.substr(directory_.path().size() + 1) + ": " + why;
    });
    std::string text;
    for (const auto& path : left)
      text += (text.empty() ? "" : " ") +
              (path == "-" ? path : path.substr(directory_.path().size() + 1));
    return text + failures;
  }

  test::TemporaryDirectory directory_;
  Sending sending_;
};

TEST_F(FirstLook, tells_of_what_is_missing_and_of_what_is_no_file) {
  EXPECT_EQ(look({"file", "-"}), "file -");
  EXPECT_EQ(look({"file", "gone", "tree", "fifo"}),
            "file; gone: cannot read it: No such file or directory"
            "; tree: is a directory; send it and all that it holds with -r"
            "; fifo: is no regular file; devices, sockets and FIFOs are not sent");
}

TEST_F(FirstLook, with_trees_takes_directories_and_symbolic_links) {
  sending_.trees = true;
  EXPECT_EQ(look({"tree", "tree/.", "file", "dangling", "gone", "fifo"}),
            "tree tree/. file dangling; gone: cannot read it: No such file or directory"
            "; fifo: is no regular file; devices, sockets and FIFOs are not sent");
}

TEST_F(FirstLook, tells_of_names_that_no_receiver_accepts) {
  sending_.name = "a/../b";
  EXPECT_NE(look({"file"}).find(".. in its path"), std::string::npos);
  sending_.trees = true;
  EXPECT_NE(look({"tree"}).find(".. in its path"), std::string::npos);
}

TEST_F(FirstLook, tells_of_what_is_listed_and_not_there) {
  sending_.trees = true;
  sending_.listed = {"sub/a", "sub/b", "../file", "sub"};
  sending_.rules = {{false, "c"}};
  EXPECT_EQ(look({"tree"}), "tree; tree/../file: leads out of the directory; list paths below it");
  sending_.listed = {"sub/a", "sub/b", "no/b"};
  EXPECT_EQ(look({"tree"}),
            "tree; tree/no/b: cannot read it: No such file or directory"
            "; tree/sub/b: cannot read it: No such file or directory");
  EXPECT_EQ(look({"file"}), "; file: is no directory; --files-from lists what is below one");
}

TEST_F(FirstLook, tells_of_what_this_user_may_not_read) {
  for (const auto* name : {"file", "tree/sub/a", "tree/sub"})
    std::filesystem::permissions(directory_ / name, std::filesystem::perms::none);
  {
    const test::Unprivileged user(directory_.path());
    EXPECT_EQ(look({"file", "dangling"}),
              "; file: cannot read it: Permission denied"
              "; dangling: cannot read it: No such file or directory");
    sending_.trees = true;
    EXPECT_EQ(look({"tree/sub", "file"}),
              "; tree/sub: cannot read it: Permission denied"
              "; file: cannot read it: Permission denied");
    sending_.listed = {"sub"};
    EXPECT_EQ(look({"tree"}), "tree; tree/sub: cannot read it: Permission denied");
  }
  // So that it can be removed.
  std::filesystem::permissions(directory_ / "tree/sub", std::filesystem::perms::owner_all);
}

}  // namespace
}  // namespace stp::files
