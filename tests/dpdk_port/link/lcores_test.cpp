// SPDX-License-Identifier: BSD-3-Clause
#include "dpdk_port/link/lcores.h"

#include <gtest/gtest.h>

#include <numeric>

namespace stp::port {
namespace {

bool any_cpu(unsigned) {
  return true;
}

std::vector<unsigned> cpus_up_to(unsigned last) {
  std::vector<unsigned> cpus(last + 1);
  std::iota(cpus.begin(), cpus.end(), 0U);
  return cpus;
}

TEST(Lcores, OneMayRunOnAllCpusOfTheProgram) {
  EXPECT_EQ(make_lcores({0, 1, 2, 5, 7, 8}, any_cpu).list, "0@(0-2,5,7-8)");
  EXPECT_EQ(make_lcores({200}, any_cpu).list, "0@(200)");
  EXPECT_FALSE(make_lcores({200}, any_cpu).foreign);
}

TEST(Lcores, OfCpusThatDpdkDoesNotKnowNoneIsNamed) {
  EXPECT_EQ(make_lcores(cpus_up_to(2'047), any_cpu).list, "0@(0-1023)");
  EXPECT_EQ(make_lcores({1, 2, 3, 4}, [](unsigned cpu) { return cpu != 3; }).list, "0@(1-2,4)");
}

// DPDK starts there if the system lets it, and says why if not.
TEST(Lcores, WithoutAnyThatDpdkKnowsAnotherOneIsTried) {
  const Lcores beyond = make_lcores({1'500}, [](unsigned cpu) { return cpu >= 4; });
  EXPECT_EQ(beyond.list, "0@4");
  EXPECT_TRUE(beyond.foreign);
  EXPECT_EQ(make_lcores({}, any_cpu).list, "0@0");
  EXPECT_EQ(make_lcores({}, [](unsigned) { return false; }).list, "0@0");
}

TEST(Lcores, AnErrorSaysWhyDpdkKnowsNoCpu) {
  EXPECT_TRUE(why_foreign({1'500, 1'501}).ends_with("(the first is 1500): permit one below 1024"));
  EXPECT_NE(why_foreign({200}).find("not in /sys/devices/system/cpu"), std::string::npos);
}

}  // namespace
}  // namespace stp::port
