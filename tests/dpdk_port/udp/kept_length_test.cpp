// SPDX-License-Identifier: BSD-3-Clause
#include "dpdk_port/udp/kept_length.h"

#include <gtest/gtest.h>

namespace stp::port::kept_length_test {
namespace {

constexpr std::size_t kMessage = 57'344;

struct Stream {
  // Nanoseconds that a message takes with the short and the long one.
  void run(Time with_short, Time with_long, std::size_t bytes) {
    for (std::size_t done = 0; done < bytes; done += kMessage) {
      const bool is_long = length.bytes() == KeptLength::kLong;
      time += is_long ? with_long : with_short;
      length.came(kMessage, time);
      (is_long ? long_bytes : short_bytes) += kMessage;
    }
  }
  // Until a trial is over for certain.
  void run_for_long(Time with_short, Time with_long) {
    run(with_short, with_long, 2 * KeptLength::kHolds);
  }

  KeptLength length{KeptLength::kLong};
  Time time = kSecond;
  std::size_t short_bytes = 0, long_bytes = 0;
};

TEST(KeptLength, IsTheLongOneWhereThatIsFaster) {
  Stream stream;
  EXPECT_EQ(stream.length.bytes(), KeptLength::kShort);
  stream.run(20'000, 15'000, 2 * (KeptLength::kMeasured + KeptLength::kLong) + 100 * kMessage);
  EXPECT_EQ(stream.length.bytes(), KeptLength::kLong);
  stream.run_for_long(20'000, 15'000);
  EXPECT_GT(stream.long_bytes, 10 * stream.short_bytes);
}

TEST(KeptLength, IsTheShortOneWhereTheOtherGainsLittle) {
  Stream stream;
  stream.run_for_long(10'000, 9'800);
  stream.run_for_long(10'000, 9'800);
  EXPECT_EQ(stream.length.bytes(), KeptLength::kShort);
  EXPECT_GT(stream.short_bytes, 10 * stream.long_bytes);
  EXPECT_GT(stream.long_bytes, 0U) << "it has been tried";
}

TEST(KeptLength, IsAnotherOneSoonAfterWhatTheyGainHasChanged) {
  Stream stream;
  stream.run_for_long(20'000, 15'000);
  ASSERT_EQ(stream.length.bytes(), KeptLength::kLong);
  stream.run_for_long(10'000, 11'000);
  EXPECT_EQ(stream.length.bytes(), KeptLength::kShort);
  stream.run_for_long(20'000, 15'000);
  EXPECT_EQ(stream.length.bytes(), KeptLength::kLong);
}

// What limits them is something else.
TEST(KeptLength, StaysWhereStreamsPause) {
  Stream stream;
  for (unsigned i = 0; i < 200; ++i) {
    stream.run(20'000, 15'000, KeptLength::kMeasured / 2);
    stream.time += 2 * KeptLength::kPause;
  }
  EXPECT_EQ(stream.long_bytes, 0U);
  // In the middle of a trial.
  stream.run(20'000, 15'000, KeptLength::kMeasured + KeptLength::kLong + 2 * kMessage);
  ASSERT_EQ(stream.length.bytes(), KeptLength::kLong);
  stream.time += 2 * KeptLength::kPause;
  stream.run(20'000, 15'000, kMessage);
  stream.run(20'000, 15'000, kMessage);
  EXPECT_EQ(stream.length.bytes(), KeptLength::kShort);
}

}  // namespace
}  // namespace stp::port::kept_length_test
