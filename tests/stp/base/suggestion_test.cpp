// SPDX-License-Identifier: BSD-3-Clause
#include "stp/base/suggestion.h"

#include <gtest/gtest.h>

namespace stp {
namespace {

TEST(Suggestion, FindsWhatASlipOfTheFingersHasChanged) {
  const std::vector<std::string_view> words{"mtu", "mac", "queues", "congestion"};
  EXPECT_EQ(similar_word("mut", words), "mtu") << "swapped";
  EXPECT_EQ(similar_word("mt", words), "mtu") << "missing";
  EXPECT_EQ(similar_word("mtuu", words), "mtu") << "too many";
  EXPECT_EQ(similar_word("nac", words), "mac") << "wrong";
  EXPECT_EQ(similar_word("MTU", words), "mtu") << "capitals";
  EXPECT_EQ(similar_word("qeueus", words), "queues") << "two slips in a long word";
  EXPECT_EQ(similar_word("conjestoin", words), "congestion");
}

TEST(Suggestion, IsNotMadeWhereItWouldBeAGuess) {
  const std::vector<std::string_view> words{"mtu", "mac", "queues"};
  EXPECT_EQ(similar_word("", words), "");
  EXPECT_EQ(similar_word("speed", words), "");
  EXPECT_EQ(similar_word("mtc", words), "") << "mtu and mac are both one slip away";
  EXPECT_EQ(similar_word(std::string(100'000, 'q'), words), "");
}

}  // namespace
}  // namespace stp
