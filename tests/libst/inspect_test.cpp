// SPDX-License-Identifier: BSD-3-Clause
// Option payload in connect and accept; inspecting a request before it is answered.
#include <atomic>
#include <chrono>
#include <cstring>
#include <thread>

#include "tests/libst/libst_fixture.h"

namespace stp::test {
namespace {

struct Words {
  explicit Words(char fill) { std::memset(bytes, fill, sizeof bytes); }
  char bytes[ST_OPTION_SIZE];
};

testing::AssertionResult said(const st_peer_t& peer, const Words& words) {
  if (peer.opt_len != ST_OPTION_SIZE) return testing::AssertionFailure() << "no option payload";
  if (std::memcmp(peer.opt_pay, words.bytes, ST_OPTION_SIZE) == 0)
    return testing::AssertionSuccess();
  return testing::AssertionFailure() << "begins with '" << peer.opt_pay[0] << "'";
}

class Inspect : public LibstTest {
 protected:
  void SetUp() override {
    ASSERT_EQ(server_.error(), 0);
    set_option(server_, ST_OPT_INSPECT, 1);
    ASSERT_EQ(st_listen(server_), 0);
  }
  // Connects in another thread. The result is available after join().
  void begin_connect(char words, unsigned patience_ms = 20'000) {
    set_option(client_, ST_OPT_CONNECT_PATIENCE, patience_ms);
    connecting_ = std::thread([this, words] {
      Words const question(words);
      result_ = st_connect_opt(client_, ":3000", question.bytes, &connected_, &answer_);
    });
  }
  int inspect(st_chandle_t& asked, st_peer_t* peer = nullptr) {
    timeval limit{20, 0};
    return st_inspect(server_, &asked, peer, &limit);
  }
  void TearDown() override {
    if (connecting_.joinable()) connecting_.join();
  }

  Endpoint server_{":3000"}, client_;
  std::thread connecting_;
  std::atomic<int> result_ = 1;
  st_chandle_t connected_ = nullptr;
  st_peer_t answer_{};
};
STP_BOTH_WAYS(Inspect);

// protocol: 5.19, 5.27, 5.28
TEST_P(Inspect, TheRequestIsSeenBeforeItIsAnsweredAndBothSidesReadEachOthersWords) {
  begin_connect('q');
  st_chandle_t asked = nullptr;
  st_peer_t peer{};
  ASSERT_EQ(inspect(asked, &peer), 0);
  EXPECT_TRUE(said(peer, Words('q')));
  st_macaddr_t own = 0;
  ASSERT_EQ(st_macaddr(client_, nullptr, &own), 0);
  EXPECT_EQ(peer.macaddr, own);
  EXPECT_EQ(send(asked, header(ST_OP_NOP)), -ENOTCONN);
  st_header_t got;
  EXPECT_EQ(poll(asked, got), -ENOTCONN);
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_EQ(result_, 1) << "nothing has been answered";

  const Words yes('a');
  ASSERT_EQ(st_accept_opt(asked, yes.bytes), 0);
  connecting_.join();
  ASSERT_EQ(result_, 0);
  EXPECT_TRUE(said(answer_, yes));
  EXPECT_EQ(st_accept_opt(asked, nullptr), -EISCONN);
  EXPECT_EQ(st_reject(asked, nullptr), -EISCONN);
  ASSERT_EQ(send(connected_, header(ST_OP_NOP)), 0);
  EXPECT_EQ(receive(asked, got), 0);
  ASSERT_EQ(send(asked, header(ST_OP_NOP)), 0);
  EXPECT_EQ(receive(connected_, got), 0);
  st_peer_t later{};
  ASSERT_EQ(st_getpeer(connected_, &later), 0);
  EXPECT_TRUE(said(later, yes));
  ASSERT_EQ(st_getpeer(asked, &later), 0);
  EXPECT_TRUE(said(later, Words('q')));
}

// protocol: 5.28
TEST_P(Inspect, ARefusalIsConnectionRefusedAndTellsWhy) {
  begin_connect('q');
  st_chandle_t asked = nullptr;
  ASSERT_EQ(inspect(asked), 0);
  const Words no('n');
  ASSERT_EQ(st_reject(asked, no.bytes), 0);
  connecting_.join();
  EXPECT_EQ(result_, -ECONNREFUSED);
  EXPECT_TRUE(said(answer_, no));
  EXPECT_EQ(connected_, nullptr);
  EXPECT_EQ(st_close(asked), -EBADF) << "its handle went with it";
}

// protocol: 5.28
TEST_P(Inspect, ClosingOrDeletingWithoutADecisionRefuses) {
  for (const bool whole : {false, true}) {
    result_ = 1;
    begin_connect('q');
    st_chandle_t asked = nullptr;
    ASSERT_EQ(inspect(asked), 0);
    if (whole)
      server_.reset();
    else
      EXPECT_EQ(st_close(asked), 0);
    connecting_.join();
    EXPECT_EQ(result_, -ECONNREFUSED);
  }
}

TEST_P(Inspect, AcceptTakesWhoeverComesNext) {
  begin_connect('q');
  st_chandle_t accepted = nullptr;
  ASSERT_EQ(st_accept(server_, &accepted), 0);
  connecting_.join();
  EXPECT_EQ(result_, 0);
  EXPECT_EQ(answer_.opt_len, 0u);
}

TEST_P(Inspect, InspectingWaitsNoLongerThanItIsTold) {
  st_chandle_t asked = nullptr;
  timeval moment{0, 10'000}, none{0, 0}, wrong{0, -1};
  EXPECT_EQ(st_inspect(server_, &asked, nullptr, &moment), -EWOULDBLOCK);
  EXPECT_EQ(st_inspect(server_, &asked, nullptr, &none), -EWOULDBLOCK);
  EXPECT_EQ(st_inspect(server_, &asked, nullptr, &wrong), -EINVAL);
  EXPECT_EQ(st_inspect(server_, nullptr, nullptr, &none), -EINVAL);
}

// protocol: 5.31
TEST_P(Inspect, ConnectWaitsAsLongAsItsPatience) {
  begin_connect('q', 100);
  connecting_.join();
  EXPECT_EQ(result_, -ETIMEDOUT);
}

class PlainListener : public LibstTest {};
STP_BOTH_WAYS(PlainListener);

// protocol: 5.19
TEST_P(PlainListener, WhoDoesNotInspectStillReadsWhatCameAlong) {
  Endpoint server(":3000"), client;
  ASSERT_EQ(st_listen(server), 0);
  const Words question('q');
  st_chandle_t connected = nullptr, accepted = nullptr;
  ASSERT_EQ(st_connect_opt(client, ":3000", question.bytes, &connected, nullptr), 0);
  ASSERT_EQ(st_accept(server, &accepted), 0);
  st_peer_t peer{};
  ASSERT_EQ(st_getpeer(accepted, &peer), 0);
  EXPECT_TRUE(said(peer, question));
  EXPECT_EQ(st_accept_opt(accepted, nullptr), -EISCONN);
  timeval none{0, 0};
  EXPECT_EQ(st_inspect(server, &accepted, &peer, &none), -EINVAL);
}

}  // namespace
}  // namespace stp::test
