// SPDX-License-Identifier: BSD-3-Clause
// The table of a connection's states agrees with docs/managed.md. Each side understands what the
// other one sends first.
#include "libst/managed/life.h"

#include <gtest/gtest.h>

#include <array>
#include <fstream>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "libst/managed/memory.h"
#include "stp/managed.h"
#include "tests/managed/two_sessions.h"
#include "tests/markdown_table.h"

namespace stp::managed {
namespace {

using State = ConnectionState;
using Event = ConnectionEvent;

constexpr const char* kStates[] = {"IDLE",      "CONNECTING", "ASKING",    "EXPECTED",
                                   "REQUESTED", "ACCEPTING",  "REJECTING", "UP",
                                   "DRAINING",  "CLOSING",    "ENDING",    "ENDED"};
constexpr const char* kEvents[] = {"connect", "expect", "opened", "request",
                                   "accept",  "reject", "agreed", "disconnect",
                                   "drained", "over",   "let_go"};
static_assert(std::size(kStates) == static_cast<std::size_t>(State::kEnded) + 1);
static_assert(std::size(kEvents) == static_cast<std::size_t>(Event::kLetGo) + 1);

std::string name_of(State state) {
  return kStates[static_cast<std::size_t>(state)];
}
std::string name_of(Event event) {
  return kEvents[static_cast<std::size_t>(event)];
}

using Row = std::tuple<std::string, std::string, std::string>;  // from, event, to

std::set<Row> rows_of_code() {
  std::set<Row> rows;
  for (const auto& row : kConnectionTransitions)
    rows.emplace(name_of(row.from), name_of(row.event), name_of(row.to));
  return rows;
}

// A row without a state belongs to the state above. "each of these" means all states above.
std::set<Row> rows_of_page() {
  std::set<Row> rows;
  std::ifstream page(MANAGED_PAGE);
  std::string line;
  while (std::getline(page, line) && line != "## The states of a connection") {
  }
  std::vector<std::string> above;
  while (std::getline(page, line) && !line.starts_with("## ")) {
    const auto cells = test::cells_of(line);
    if (cells.size() != 4 || cells[0] == "state" || cells[0] == "---") continue;
    const bool each = cells[0] == "each of these";
    if (!each && !cells[0].empty()) above.push_back(cells[0]);
    if (cells[2].empty()) continue;
    const auto event = cells[2].substr(0, cells[2].find(':'));
    for (const auto& state : above)
      if (each || state == above.back()) rows.emplace(state, event, cells[3]);
  }
  return rows;
}

TEST(ConnectionState, each_state_is_reached_from_the_first_and_leads_to_the_last) {
  for (std::size_t i = 0; i < std::size(kStates); ++i) {
    const auto state = static_cast<State>(i);
    EXPECT_TRUE(leads(kConnectionTransitions, State::kIdle, state)) << name_of(state);
    EXPECT_TRUE(leads(kConnectionTransitions, state, State::kEnded)) << name_of(state);
  }
}

TEST(ConnectionState, whatever_is_over_never_comes_back) {
  for (std::size_t i = 0; i < static_cast<std::size_t>(State::kEnding); ++i) {
    const auto state = static_cast<State>(i);
    EXPECT_EQ(next_state(kConnectionTransitions, state, Event::kOver), State::kEnding)
        << name_of(state);
    EXPECT_FALSE(leads(kConnectionTransitions, State::kEnding, state)) << name_of(state);
    EXPECT_FALSE(leads(kConnectionTransitions, State::kEnded, state)) << name_of(state);
  }
}

TEST(ConnectionState, the_page_has_the_same_transitions) {
  EXPECT_EQ(rows_of_page(), rows_of_code());
}

}  // namespace
}  // namespace stp::managed

namespace stp::test {
namespace {

using managed::Hello;
using managed::kHelloHead;

class Hellos : public ::testing::Test {
 protected:
  std::array<std::byte, managed::kHelloSize> room{};

  Bytes encoded(Hello::Kind kind, std::size_t length) {
    Hello hello{kind, std::vector<std::byte>(length, std::byte{7})};
    return {room.data(), managed::encode(hello, room.data())};
  }
  static bool valid(Bytes bytes) {
    Hello out;
    return managed::decode(bytes, out);
  }
};

// protocol: 9.30
TEST_F(Hellos, what_is_written_is_read) {
  for (const auto kind : {Hello::Kind::kRequest, Hello::Kind::kAccept, Hello::Kind::kReject})
    for (const std::size_t length :
         {std::size_t{0}, std::size_t{1}, std::size_t{STM_PRIVATE_DATA}}) {
      const auto bytes = encoded(kind, length);
      EXPECT_EQ(bytes.size(), kHelloHead + length);
      Hello out;
      ASSERT_TRUE(managed::decode(bytes, out));
      EXPECT_EQ(out.kind, kind);
      EXPECT_EQ(out.private_data, std::vector<std::byte>(length, std::byte{7}));
    }
}

// protocol: 9.30
TEST_F(Hellos, what_a_peer_may_write_wrong_is_refused) {
  const auto bytes = encoded(Hello::Kind::kAccept, 10);
  ASSERT_TRUE(valid(bytes));
  EXPECT_FALSE(valid({}));
  EXPECT_FALSE(valid(bytes.first(kHelloHead - 1)));
  EXPECT_FALSE(valid(bytes.first(bytes.size() - 1)));
  EXPECT_FALSE(valid({room.data(), bytes.size() + 1}));
  // A wrong mark, version, kind and length.
  for (const std::size_t at : {0U, 3U, 4U, 5U, 6U, 8U, 11U}) {
    const auto before = room[at];
    room[at] = std::byte{0x55};
    EXPECT_FALSE(valid(bytes)) << at;
    room[at] = before;
  }
  room[7] = std::byte{0};
  EXPECT_FALSE(valid(bytes));
  room[7] = std::byte{4};
  EXPECT_FALSE(valid(bytes));
  room[7] = std::byte{3};
  EXPECT_TRUE(valid(bytes));
  EXPECT_FALSE(valid(encoded(Hello::Kind::kRequest, STM_PRIVATE_DATA + 1)));
}

}  // namespace
}  // namespace stp::test

namespace stp::managed {
namespace {

// A has asked B. The fixture's messages begin after those of the handshake, which does not matter.
class Handshakes : public TwoSessions {
 protected:
  static Hello hello(Hello::Kind kind, std::size_t length) {
    return {kind, std::vector<std::byte>(length, std::byte{7})};
  }
  // What `from` says arrives at `to`.
  const Hello* hear(Handshake& by, Side& from, Side& to) {
    carry(from, to);
    bool begun = false;
    EXPECT_TRUE(by.receive(*to.session, begun));
    EXPECT_TRUE(begun);
    EXPECT_TRUE(by.receive(*to.session, begun));
    EXPECT_FALSE(begun) << "it is received once";
    carry(to, from);
    std::memcpy(to.session->staging.hello_in(), from.session->staging.hello_out(), kHelloSize);
    carry(from, to);
    const auto completions = to.completions();
    EXPECT_EQ(completions.size(), 1U);
    EXPECT_EQ(completions[0].context, context::kHelloIn);
    EXPECT_EQ(completions[0].status, 0);
    return by.on_received(*to.session, completions[0]);
  }

  Handshake asks, answers;
};

// protocol: 9.30
TEST_F(Handshakes, ARequestIsAnswered) {
  asks.connect(hello(Hello::Kind::kRequest, 100), kNever, now + kSecond);
  asks.ask(*a.session, now);
  const auto* const request = hear(answers, a, b);
  ASSERT_NE(request, nullptr);
  EXPECT_EQ(request->kind, Hello::Kind::kRequest);
  EXPECT_EQ(answers.private_data().size(), 100U);
  answers.answer(*b.session, hello(Hello::Kind::kReject, 50), now);
  const auto* const answer = hear(asks, b, a);
  ASSERT_NE(answer, nullptr);
  EXPECT_EQ(answer->kind, Hello::Kind::kReject);
  EXPECT_EQ(asks.private_data(), hello(Hello::Kind::kReject, 50).private_data);
}

TEST_F(Handshakes, EachStepHasADeadline) {
  EXPECT_EQ(asks.deadline(), kNever);
  asks.connect({}, kNever, now + 5);
  EXPECT_EQ(asks.deadline(), now + 5);
  answers.expect(now);
  EXPECT_EQ(answers.deadline(), now + Handshake::kRequestPatience);
  answers.answer(*b.session, hello(Hello::Kind::kAccept, 0), now);
  EXPECT_EQ(answers.deadline(), now + Handshake::kDecisionPatience);
  answers.stop_waiting();
  EXPECT_EQ(answers.deadline(), kNever);
}

TEST_F(Handshakes, AMessageThatIsNoHelloIsRefused) {
  bool begun = false;
  ASSERT_EQ(a.session->sequencer.write(1, {}, kHelloSize + 1), 0);
  carry(a, b);
  EXPECT_FALSE(answers.receive(*b.session, begun)) << "too long";
  Completion c{};
  c.length = kHelloHead;
  std::memset(b.session->staging.hello_in(), 1, kHelloHead);
  EXPECT_EQ(answers.on_received(*b.session, c), nullptr);
  EXPECT_TRUE(answers.private_data().empty());
}

// Its host is alive until the last connection to it is over.
// protocol: 5.23
TEST(LivingPeer, IsOneAsLongAsAConnectionToItIsUp) {
  const auto a = MacAddr::from_u64(1), b = MacAddr::from_u64(2);
  LivingPeers peers;
  EXPECT_FALSE(peers.contains(a));
  peers.add(a);
  peers.add(b);
  peers.add(a);
  peers.remove(a);
  EXPECT_TRUE(peers.contains(a)) << "another connection to it is up";
  peers.remove(a);
  EXPECT_FALSE(peers.contains(a));
  EXPECT_TRUE(peers.contains(b));
}

TEST(SilentPeer, IsOneUntilItAnswersOrThirtySecondsHavePassed) {
  const auto a = MacAddr::from_u64(1);
  SilentPeers peers;
  peers.add(a, kSecond);
  EXPECT_TRUE(peers.contains(a, 2 * kSecond));
  EXPECT_FALSE(peers.contains(a, 31 * kSecond));
  peers.remove(a);
  EXPECT_FALSE(peers.contains(a, 2 * kSecond));
}

TEST(SilentPeer, OfManyTheNewestAreRemembered) {
  SilentPeers peers;
  for (std::uint64_t i = 0; i <= SilentPeers::kMost; ++i) peers.add(MacAddr::from_u64(i), 1);
  EXPECT_FALSE(peers.contains(MacAddr::from_u64(0), 1));
  EXPECT_TRUE(peers.contains(MacAddr::from_u64(1), 1));
  EXPECT_TRUE(peers.contains(MacAddr::from_u64(SilentPeers::kMost), 1));
}

}  // namespace
}  // namespace stp::managed
