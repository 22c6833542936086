// SPDX-License-Identifier: BSD-3-Clause
#include "libst/service/poll_places.h"

#include <gtest/gtest.h>

namespace stp::service {
namespace {

using Cpus = std::vector<std::vector<unsigned>>;

TEST(PollPlaces, OneShardHasAllCpusThatWereChosen) {
  const auto places = poll_places(PollPolicy::kBusy, 1, {2, 3}, 8);
  EXPECT_EQ(places.cpus, (Cpus{{2, 3}}));
  EXPECT_EQ(places.policy, PollPolicy::kBusy);
  EXPECT_FALSE(places.crowded);
  EXPECT_EQ(places.note, "");
}

TEST(PollPlaces, EachOfSeveralHasACpuOfItsOwn) {
  const auto places = poll_places(PollPolicy::kBusy, 3, {2, 3, 6, 7}, 8);
  EXPECT_EQ(places.cpus, (Cpus{{2}, {3}, {6}}));
  EXPECT_EQ(places.policy, PollPolicy::kBusy);
  EXPECT_FALSE(places.crowded);
  EXPECT_EQ(places.note, "");
}

TEST(PollPlaces, WithFewerCpusTheyShareAndNobodyIsBusyForEver) {
  const auto places = poll_places(PollPolicy::kBusy, 3, {2, 3}, 8);
  EXPECT_EQ(places.cpus, (Cpus{{2}, {3}, {2}}));
  EXPECT_EQ(places.policy, PollPolicy::kAdaptive);
  EXPECT_TRUE(places.crowded);
  EXPECT_NE(places.note.find("3 shards share 2 CPUs"), std::string::npos) << places.note;
  EXPECT_NE(places.note.find("adaptive"), std::string::npos) << places.note;
}

TEST(PollPlaces, WithoutAChoiceTheyRunAnywhereAndTheMachineHasToHaveEnough) {
  EXPECT_EQ(poll_places(PollPolicy::kInterrupt, 2, {}, 2).cpus, (Cpus{{}, {}}));
  EXPECT_FALSE(poll_places(PollPolicy::kInterrupt, 2, {}, 2).crowded);
  const auto places = poll_places(PollPolicy::kInterrupt, 4, {}, 2);
  EXPECT_TRUE(places.crowded);
  EXPECT_EQ(places.policy, PollPolicy::kInterrupt);
  EXPECT_EQ(places.note.find("adaptive"), std::string::npos) << places.note;
}

}  // namespace
}  // namespace stp::service
