// SPDX-License-Identifier: BSD-3-Clause
#include "libst/host/budgets.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <new>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/host/service_fixture.h"

namespace stp::host {
namespace {

constexpr uid_t kUser = 4'711, kOther = 4'712;

TEST(Allowances, ARefusalOfARequestHasItsTextInTheReply) {
  Allowances allow(nullptr, 0, 1);
  allow.set_quotas({.regions = 5});
  ProgramUse use;
  use.regions = 5;
  ipc::ReplyMessage reply;
  EXPECT_EQ(allow.answer(reply, [&] { return allow.within(use, &ProgramUse::regions, 1); }),
            -EDQUOT);
  EXPECT_EQ(reply.head.result, -EDQUOT);
  EXPECT_EQ(reply.why(),
            "this program has all that --max-regions 5 of stpd allows: raise it, then SIGHUP");
}

// Programs allocate what they map, in groups of their own.
TEST(Allowances, TotalsOfMemoryAreThatOfTheMachineWhereOthersAllocateIt) {
  const Totals::Memory memory{.machine = 64'000, .process = 16'000};
  Totals totals;
  EXPECT_EQ(totals.of(Resource::kMappedBytes, memory), 64'000U);
  EXPECT_EQ(totals.of(Resource::kQueueBytes, memory), 4'000U);
  EXPECT_EQ(totals.of(Resource::kTableBytes, memory), 1'000U);
  EXPECT_EQ(totals.of(Resource::kWindowBytes, memory), 1'000U);
  totals[Resource::kQueueBytes] = 50'000;
  EXPECT_EQ(totals.of(Resource::kQueueBytes, memory), 50'000U) << "as the operator has chosen";
}

// For example of a listener's stock of channels, which is refilled between two requests.
TEST(Allowances, ARefusalOutsideOfARequestLeavesNoTextForTheNextOne) {
  Allowances allow(nullptr, 0, 1);
  allow.set_quotas({.queue_bytes = 5});
  EXPECT_EQ(allow.within({}, &ProgramUse::queue_bytes, 6), -EDQUOT);
  ipc::ReplyMessage reply;
  allow.answer(reply, [] { return -EDQUOT; });
  EXPECT_EQ(reply.why(), "");
}

TEST(Allowances, TheTextOfOneRequestIsNotSeenInTheNext) {
  Allowances allow(nullptr, 0, 1);
  ipc::ReplyMessage first, second;
  allow.answer(first, [&] { return allow.within({}, &ProgramUse::mxs, 1'000'000); });
  EXPECT_NE(first.why(), "");
  allow.answer(second, [] { return -EDQUOT; });
  EXPECT_EQ(second.why(), "");
}

// All of it, but no more, and nothing that exceeds 64 bits together with what there is.
TEST(Allowances, EachQuotaIsTheMostAndItsRefusalNamesTheRemedy) {
  Quotas quotas;
  for (const auto& rule : kQuotaRules) quotas.*rule.limit = 7;
  Allowances allow(nullptr, 0, 1);
  allow.set_quotas(quotas);
  for (const auto& rule : kQuotaRules) {
    if (rule.used == nullptr) continue;
    const std::string remedy = rule.option != nullptr ? rule.option : "map fewer buffers";
    ProgramUse use;
    use.*rule.used = 4;
    EXPECT_EQ(allow.within(use, rule.used, 3), 0) << remedy;
    for (const auto more : {std::uint64_t{4}, ~std::uint64_t{0}, ~std::uint64_t{0} - 2}) {
      ipc::ReplyMessage reply;
      EXPECT_EQ(allow.answer(reply, [&] { return allow.within(use, rule.used, more); }), -EDQUOT);
      EXPECT_NE(reply.why().find(remedy), std::string_view::npos) << reply.why();
    }
    // An operator may choose less than a program has.
    use.*rule.used = 8;
    EXPECT_EQ(allow.within(use, rule.used, 0), -EDQUOT) << remedy;
  }
}

TEST(Allowances, AnExceptionIsAnErrorOfTheRequestThatCausedIt) {
  Allowances allow(nullptr, 0, 1);
  ipc::ReplyMessage reply;
  EXPECT_EQ(allow.answer(reply, []() -> int { throw std::bad_alloc(); }), -ENOMEM);
  EXPECT_EQ(allow.answer(reply, []() -> int { throw std::runtime_error("any"); }), -EIO);
  EXPECT_EQ(allow.answer(reply, [] { return 0; }), 0);
}

TEST(Allowances, AUserPaysFromItsBudgetAndIsToldTheOperatorsOption) {
  Allowances allow(nullptr, 0, 1);
  Quotas quotas;
  quotas.totals[Resource::kRegions] = 8;
  allow.set_quotas(quotas);
  const auto payer = allow.payer(kUser), other = allow.payer(kOther);
  Reservation half, more, of_other;
  ipc::ReplyMessage reply;
  EXPECT_EQ(allow.reserve(payer, Resource::kRegions, 4, half), 0);
  EXPECT_EQ(allow.answer(reply, [&] { return allow.reserve(payer, Resource::kRegions, 1, more); }),
            -EDQUOT);
  EXPECT_NE(reply.why().find("--total-regions"), std::string_view::npos);
  EXPECT_EQ(allow.reserve(other, Resource::kRegions, 1, of_other), 0);
}

TEST(Allowances, RootMayTakeTheWholeTotal) {
  Allowances allow(nullptr, 0, 1);
  Quotas quotas;
  quotas.totals[Resource::kRegions] = 8;
  allow.set_quotas(quotas);
  const auto payer = allow.payer(0);
  Reservation all;
  EXPECT_EQ(allow.reserve(payer, Resource::kRegions, 8, all), 0);
}

// A user may have half of the link's Ports, but not all Ports of one shard.
TEST(Allowances, AUserGetsItsShareOfAShardsPortsAndIsToldTheShard) {
  Allowances allow(std::make_shared<Budgets>(), 1, 4);
  const auto payer = allow.payer(kUser);
  std::vector<Reservation> ports(describe(Resource::kConnections).usual / 4 / 2 + 1);
  ipc::ReplyMessage reply;
  for (std::size_t i = 0; i + 1 < ports.size(); ++i)
    ASSERT_EQ(allow.reserve_port(payer, ports[i]), 0) << i;
  EXPECT_EQ(allow.answer(reply, [&] { return allow.reserve_port(payer, ports.back()); }), -EDQUOT);
  EXPECT_TRUE(reply.why().starts_with("shard 2: ")) << reply.why();
}

TEST(Allowances, NoFileOfTheReserveIsKept) {
  Allowances allow(nullptr, 0, 1);
  EXPECT_EQ(allow.check_file(1'000), 0);
  allow.reserve_files_from(100);
  EXPECT_EQ(allow.check_file(99), 0);
  EXPECT_EQ(allow.check_file(100), -EMFILE);
}

}  // namespace

// Who may listen where, and what an operator may choose for each client.

namespace {

// Neither root nor whoever runs this.
constexpr uid_t kSomebody = 54'321;

PortRules rules(const std::vector<std::string>& texts) {
  std::vector<PortRule> parsed;
  for (const auto& text : texts) {
    std::string error;
    const auto rule = PortRules::parse(text, error);
    EXPECT_TRUE(rule) << error;
    if (rule) parsed.push_back(*rule);
  }
  return PortRules(parsed);
}

TEST(PortRulesTest, WithoutARuleEverybodyMayOnEveryPort) {
  EXPECT_TRUE(PortRules().permit(1, kSomebody, {}));
}

TEST(PortRulesTest, WithOneRuleOnlyThoseNamedMay) {
  const auto some = rules({"user:54321:3000-3009", "group:77:4000", "all:5000-5001"});
  EXPECT_TRUE(some.permit(3'000, kSomebody, {}));
  EXPECT_TRUE(some.permit(3'009, kSomebody, {}));
  EXPECT_FALSE(some.permit(3'010, kSomebody, {}));
  EXPECT_FALSE(some.permit(3'000, kSomebody + 1, {}));
  EXPECT_FALSE(some.permit(4'000, kSomebody, {}));
  EXPECT_TRUE(some.permit(4'000, kSomebody, std::vector<gid_t>{5, 77}));
  EXPECT_TRUE(some.permit(5'001, kSomebody + 1, {}));
}

TEST(PortRulesTest, PortsHave32Bits) {
  const auto high = rules({"all:2147483648-4294967295"});
  EXPECT_TRUE(high.permit(0xffff'ffff, kSomebody, {}));
  EXPECT_FALSE(high.permit(0x7fff'ffff, kSomebody, {}));
}

TEST(PortRulesTest, RootAndTheDaemonsUserAlwaysMay) {
  const auto none = rules({"user:54321:1"});
  EXPECT_TRUE(none.permit(3'000, 0, {}));
  EXPECT_TRUE(none.permit(3'000, ::geteuid(), {}));
}

TEST(PortRulesTest, NamesAreThoseOfTheSystem) {
  EXPECT_FALSE(rules({"user:root:1"}).permit(1, kSomebody, {}));
  EXPECT_TRUE(rules({"group:root:1"}).permit(1, kSomebody, std::vector<gid_t>{0}));
}

TEST(PortRulesTest, WhatIsNoRuleIsExplained) {
  for (const std::string text :
       {"", "3000", "all", "all:", "all:x", "all:5-4", "all:0", "all:0-9", "all:root:3000",
        "user:3000", "user::3000", "somebody:root:3000", "all:1-2-3"}) {
    std::string error;
    EXPECT_FALSE(PortRules::parse(text, error)) << text;
    EXPECT_NE(error.find("all:PORTS"), std::string::npos) << error;
  }
  std::string error;
  EXPECT_FALSE(PortRules::parse("user:no-such-user-here:1", error));
  EXPECT_NE(error.find("no user"), std::string::npos) << error;
}

class ChosenQuotasTest : public ServiceFixture {};

TEST_F(ChosenQuotasTest, ListeningTakesARule) {
  come_as(alice, {.pid = 1, .uid = kSomebody, .groups = {}, .administrator = false});
  service.drive()->set_port_rules(rules({"user:54321:4000"}));
  const auto endpoint = open(alice);
  EXPECT_EQ(on_endpoint(alice, ipc::RequestKind::kListen, endpoint), -EACCES);
  EXPECT_STREQ(reply.text,
               "no --listen rule of stpd gives port 3000 to uid 54321: add one, then SIGHUP");
  service.drive()->set_port_rules(rules({"user:54321:3000-4000"}));
  EXPECT_EQ(on_endpoint(alice, ipc::RequestKind::kListen, endpoint), 0);
}

TEST_F(ChosenQuotasTest, APortOfOnesOwnTakesARule) {
  come_as(alice, {.pid = 1, .uid = kSomebody, .groups = {}, .administrator = false});
  service.drive()->set_port_rules(rules({"user:54321:4000"}));
  auto request = request_for(ipc::RequestKind::kOpenEndpoint);
  request.config = usual_config();
  request.config.port = 5'000;
  EXPECT_EQ(ask(alice, request), -EACCES);
}

TEST_F(ChosenQuotasTest, SlotsOfAllConnectionsAreBoundTogether) {
  service.drive()->set_quotas({.slots = 3 * usual_config().slots});
  const auto endpoint = open(alice);
  for (int i = 0; i < 3; ++i)
    EXPECT_EQ(on_endpoint(alice, ipc::RequestKind::kConnect, endpoint), 0) << i;
  const auto last = reply.vc;
  EXPECT_EQ(on_endpoint(alice, ipc::RequestKind::kConnect, endpoint), -EDQUOT);
  EXPECT_STREQ(reply.text,
               "this program has all that --max-slots 192 of stpd allows: raise it, then SIGHUP");
  // They come back.
  EXPECT_EQ(on_vc(alice, ipc::RequestKind::kClose, last, true), 0);
  port->ahead = 60 * kSecond;
  turn();
  EXPECT_EQ(on_endpoint(alice, ipc::RequestKind::kConnect, endpoint), 0);
}

TEST_F(ChosenQuotasTest, ConnectionsAreBound) {
  service.drive()->set_quotas({.connections = 2});
  const auto endpoint = open(alice);
  EXPECT_EQ(on_endpoint(alice, ipc::RequestKind::kConnect, endpoint), 0);
  EXPECT_EQ(on_endpoint(alice, ipc::RequestKind::kConnect, endpoint), 0);
  EXPECT_EQ(on_endpoint(alice, ipc::RequestKind::kConnect, endpoint), -EDQUOT);
  const auto of_bob = open(bob);
  EXPECT_EQ(on_endpoint(bob, ipc::RequestKind::kConnect, of_bob), 0);
}

TEST_F(ChosenQuotasTest, MappedMemoryIsBound) {
  service.drive()->set_quotas({.mapped_bytes = kBuffer});
  const auto endpoint = open(alice);
  const auto keep = std::make_shared<int>();
  EXPECT_EQ(map(alice, endpoint, Direction::kReceive, destination, keep), 0);
  EXPECT_EQ(map(alice, endpoint, Direction::kTransmit, destination, keep), -EDQUOT);
}

}  // namespace
}  // namespace stp::host
