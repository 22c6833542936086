// SPDX-License-Identifier: BSD-3-Clause
// Plays each script of tests/conformance/scripts against a Node.
#include <algorithm>
#include <filesystem>

#include "tests/conformance/conversation/stage.h"

namespace stp::conversation {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> scripts() {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(STP_CONVERSATIONS))
    if (entry.path().extension() == ".conv") names.push_back(entry.path().stem().string());
  std::sort(names.begin(), names.end());
  return names;
}

class Conversations : public ::testing::TestWithParam<std::string> {};

TEST_P(Conversations, goes_as_written) {
  const auto path = std::string(STP_CONVERSATIONS) + "/" + GetParam() + ".conv";
  Stage stage;
  for (const auto& line : read_script(path)) {
    const auto wrong = stage.play(line);
    ASSERT_EQ(wrong, "") << path << ":" << line.number << ": " << line.text;
  }
  ASSERT_EQ(stage.rest(), "") << path << ": at the end";
}

INSTANTIATE_TEST_SUITE_P(scripts, Conversations, ::testing::ValuesIn(scripts()),
                         [](const auto& script) {
                           auto name = script.param;
                           std::ranges::replace(name, '-', '_');
                           return name;
                         });

TEST(ConversationScripts, are_many_enough_to_matter) {
  EXPECT_GE(scripts().size(), 60U);
}

}  // namespace
}  // namespace stp::conversation
