// SPDX-License-Identifier: BSD-3-Clause
#include "libst/service/allowances.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <new>
#include <stdexcept>
#include <string>
#include <vector>

#include "libst/service/limits.h"

namespace stp::service {
namespace {

constexpr uid_t kUser = 4'711, kOther = 4'712;

TEST(Allowances, ARefusalOfARequestHasItsTextInTheReply) {
  Allowances allow(nullptr, 0, 1);
  Reply reply{};
  EXPECT_EQ(allow.answer(reply, [&] { return allow.over_quota("max-regions", 5); }), -EDQUOT);
  EXPECT_EQ(reply.result, -EDQUOT);
  EXPECT_EQ(text_of(reply.text),
            "this program has all that --max-regions 5 of stpd allows: raise it, then SIGHUP");
}

// For example of a listener's stock of channels, which is refilled between two requests.
TEST(Allowances, ARefusalOutsideOfARequestLeavesNoTextForTheNextOne) {
  Allowances allow(nullptr, 0, 1);
  EXPECT_EQ(allow.over_quota("max-queues", 5), -EDQUOT);
  Reply reply{};
  allow.answer(reply, [] { return -EDQUOT; });
  EXPECT_EQ(text_of(reply.text), "");
}

TEST(Allowances, TheTextOfOneRequestIsNotSeenInTheNext) {
  Allowances allow(nullptr, 0, 1);
  Reply first{}, second{};
  allow.answer(first, [&] { return allow.over_tables(7); });
  EXPECT_NE(text_of(first.text), "");
  allow.answer(second, [] { return -EDQUOT; });
  EXPECT_EQ(text_of(second.text), "");
}

TEST(Allowances, AnExceptionIsAnErrorOfTheRequestThatCausedIt) {
  Allowances allow(nullptr, 0, 1);
  Reply reply{};
  EXPECT_EQ(allow.answer(reply, []() -> int { throw std::bad_alloc(); }), -ENOMEM);
  EXPECT_EQ(allow.answer(reply, []() -> int { throw std::runtime_error("any"); }), -EIO);
  EXPECT_EQ(allow.answer(reply, [] { return 0; }), 0);
}

TEST(Allowances, AUserPaysFromItsBudgetAndIsToldTheOperatorsOption) {
  Allowances allow(nullptr, 0, 1);
  Quotas quotas;
  quotas.total_regions = 8;
  allow.set_quotas(quotas);
  const auto payer = allow.payer(kUser), other = allow.payer(kOther);
  Reservation half, more, of_other;
  Reply reply{};
  EXPECT_EQ(allow.reserve(payer, Resource::kRegions, 4, half), 0);
  EXPECT_EQ(allow.answer(reply, [&] { return allow.reserve(payer, Resource::kRegions, 1, more); }),
            -EDQUOT);
  EXPECT_NE(text_of(reply.text).find("--total-regions"), std::string_view::npos);
  EXPECT_EQ(allow.reserve(other, Resource::kRegions, 1, of_other), 0);
}

TEST(Allowances, RootMayTakeTheWholeTotal) {
  Allowances allow(nullptr, 0, 1);
  Quotas quotas;
  quotas.total_regions = 8;
  allow.set_quotas(quotas);
  const auto payer = allow.payer(0);
  Reservation all;
  EXPECT_EQ(allow.reserve(payer, Resource::kRegions, 8, all), 0);
}

// A user may have half of the link's Ports, but not all Ports of one shard.
TEST(Allowances, AUserGetsItsShareOfAShardsPortsAndIsToldTheShard) {
  Allowances allow(std::make_shared<Budgets>(), 1, 4);
  const auto payer = allow.payer(kUser);
  std::vector<Reservation> ports(limits::kTotalPorts / 4 / 2 + 1);
  Reply reply{};
  for (std::size_t i = 0; i + 1 < ports.size(); ++i)
    ASSERT_EQ(allow.reserve_port(payer, ports[i]), 0) << i;
  EXPECT_EQ(allow.answer(reply, [&] { return allow.reserve_port(payer, ports.back()); }), -EDQUOT);
  EXPECT_TRUE(text_of(reply.text).starts_with("shard 2: ")) << text_of(reply.text);
}

TEST(Allowances, NoFileOfTheReserveIsKept) {
  Allowances allow(nullptr, 0, 1);
  EXPECT_EQ(allow.check_file(1'000), 0);
  allow.reserve_files_from(100);
  EXPECT_EQ(allow.check_file(99), 0);
  EXPECT_EQ(allow.check_file(100), -EMFILE);
}

}  // namespace
}  // namespace stp::service
