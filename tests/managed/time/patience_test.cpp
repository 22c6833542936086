// SPDX-License-Identifier: BSD-3-Clause
// The timeouts of the managed layer, with a clock that the test controls.
#include <array>
#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "stp/wire/frame.h"
#include "tests/host/test_port.h"
#include "tests/managed/managed_fixture.h"
#include "tests/managed/time/clock.h"

namespace stp::test {
namespace {

// What happens to the offers (RTS) of the side that was asked for a connection.
enum class Offers { kArrive, kAreLost, kAreSeen };

class Link final : public TestPort {
 public:
  // The Node is not driven: all requests to it wait.
  std::atomic<bool> frozen = false;
  // kAreSeen: the sender only learns by RA that they have arrived.
  std::atomic<Offers> offers = Offers::kArrive;
  // No frame arrives.
  std::atomic<bool> lost = false;
  std::atomic<unsigned> turns = 0;
  std::atomic<std::uint64_t> moved_frames = 0;

  unsigned poll(Node& node, Time now) override {
    const auto moved = frozen ? 0 : TestPort::poll(node, now);
    moved_frames += moved;
    ++turns;
    return moved;
  }

 private:
  static wire::Header header_of(std::vector<std::byte>& frame) {
    return wire::decode(frame.data() + wire::kEthernetSize);
  }
  void disturb(Frames& frames) override {
    Frames arrived;
    if (lost) frames.clear();
    for (auto& frame : frames) {
      const auto header = header_of(frame);
      const bool offer = header.op() == wire::Op::kRequestToSend;
      if (offer && offers == Offers::kArrive) request_ = frame;
      if (!offer || offers == Offers::kArrive)
        arrived.push_back(std::move(frame));
      else if (offers == Offers::kAreSeen)
        arrived.push_back(seen(header));
    }
    frames = std::move(arrived);
  }
  std::vector<std::byte> seen(const wire::Header& offer) {
    auto frame = request_;
    const auto request = header_of(frame);
    wire::encode({.op_flags = wire::op_flags(wire::Op::kRequestAnswer),
                  .d_port = request.d_port,
                  .s_port = request.s_port,
                  .d_key = request.d_key,
                  .d_id = offer.s_id},
                 frame.data() + wire::kEthernetSize);
    frame.resize(wire::kEthernetSize + wire::kHeaderSize);
    frame.resize(60);
    return frame;
  }

  std::vector<std::byte> request_;  // the last offer that arrived, from the requester
};

class Patience : public testing::Test {
 protected:
  static constexpr Time kStep = kSecond / 4;

  // Requests a connection and waits until the server has the event.
  void request() {
    sides_.listen();
    const auto attr = client.attr(1);
    ASSERT_EQ(stm_connection_create(client.domain, &attr, &client.connection), 0);
    ASSERT_EQ(stm_connect(client.connection, ":3000", kHour, nullptr, 0), 0);
    server.connection = server.next(STM_REQUEST).connection;
  }
  void accept() {
    const auto attr = server.attr(2);
    ASSERT_EQ(stm_accept(server.connection, &attr, nullptr, 0), 0);
  }
  // One more connection of the client, and the measurement of its time.
  void dial(const char* peer, std::int64_t timeout) {
    const auto attr = client.attr(7);
    stm_connection_t connection = nullptr;
    ASSERT_EQ(stm_connection_create(client.domain, &attr, &connection), 0);
    start();
    ASSERT_EQ(stm_connect(connection, peer, timeout, nullptr, 0), 0);
  }
  // Waits until nothing of what establishes connections is under way: an end in order would wait
  // for that, too.
  void await_silence() {
    for (int silent = 0; silent < 16; ++silent) {
      const auto before = link->moved_frames.load();
      take_turns();
      if (link->moved_frames != before) silent = 0;
    }
  }
  // Starts the measurement.
  void start() {
    begun_ = port::now();
    passed_ = 0;
  }
  // Advances the time until `over` or for two minutes, slowly enough for all threads to follow.
  template <typename Over>
  void let_pass_until(Over over) {
    while (!over() && port::now() - begun_ < 120 * kSecond) {
      let_pass(kStep);
      passed_ += kStep;
      for (int round = 0; round < 4; ++round) take_turns();
    }
    waited_ = port::now() - begun_;
  }
  // Checks the first event of `side` and that it has come after `waited`.
  void expect(Side& side, unsigned kind, int status, Time waited) {
    let_pass_until([&] { return !side.seen.empty(); });
    ASSERT_FALSE(side.seen.empty());
    EXPECT_EQ(side.seen.front().kind, kind);
    EXPECT_EQ(side.seen.front().status, status);
    expect_waited(waited);
  }
  // The time of a turn may be slightly old, and a step of the clock may exceed the limit. A machine
  // with other work adds time of its own, so only the steps tell that it was not too long.
  void expect_waited(Time expected) const {
    EXPECT_GE(waited_, expected - kMillisecond);
    EXPECT_LE(passed_, expected + 4 * kSecond);
  }

  [[nodiscard]] Time passed() const { return passed_; }
  [[nodiscard]] Time begun() const { return begun_; }

  static constexpr std::int64_t kHour = std::int64_t{3'600} * 1'000'000;
  Link* const link = new Link;

 private:
  void take_turns() {
    const auto until = link->turns + 2;
    while (static_cast<int>(until - link->turns) > 0) std::this_thread::yield();
    for (auto* const side : {&server, &client}) {
      std::array<stm_event_t, 16> events;
      const auto count = stm_queue_poll(side->queue, events.data(), events.size());
      for (int i = 0; i < count; ++i) side->seen.push_back(events[static_cast<std::size_t>(i)]);
    }
  }

  Daemon daemon_{std::unique_ptr<port::Port>(link)};
  UseLink use_{daemon_.link()};
  Time begun_ = 0, waited_ = 0, passed_ = 0;

 protected:
  TwoSides sides_;
  Side &server = sides_.server, &client = sides_.client;
};

// protocol: 10.11
TEST_F(Patience, AnAcceptThatNobodyAnswersIsOfferedForThirtySeconds) {
  request();
  link->offers = Offers::kAreLost;
  start();
  accept();
  expect(server, STM_FAILED, -ETIMEDOUT, 30 * kSecond);
}

TEST_F(Patience, AnAcceptThatIsSeenAndNotTakenIsOfferedForFortyFiveSeconds) {
  request();
  link->offers = Offers::kAreSeen;
  start();
  accept();
  expect(server, STM_FAILED, -ETIMEDOUT, 45 * kSecond);
}

TEST_F(Patience, ARejectThatIsSeenAndNotTakenEndsTheConnectionAfterFortyFiveSeconds) {
  request();
  link->offers = Offers::kAreSeen;
  start();
  ASSERT_EQ(stm_reject(server.connection, nullptr, 0), 0);
  expect(client, STM_FAILED, -ENOTCONN, 45 * kSecond);
}

TEST_F(Patience, WhoAsksAndDoesNotSayHowLongWaitsForThirtySeconds) {
  sides_.listen();
  start();
  sides_.connect();
  server.next(STM_REQUEST);
  expect(client, STM_FAILED, -ETIMEDOUT, 30 * kSecond);
}

// No frame to that station arrives.
constexpr auto kNobody = "[02:00:00:00:00:77]:3000";

TEST_F(Patience, AHostThatDoesNotAnswerIsGivenUpAsOneThatFallsSilent) {
  for (const auto timeout : {std::int64_t{-1}, std::int64_t{STM_WHILE_ALIVE}}) {
    client.seen.clear();
    dial(kNobody, timeout);
    expect(client, STM_FAILED, -ETIMEDOUT, 4'500 * kMillisecond);
  }
}

TEST_F(Patience, WhoSaysHowLongWaitsSoLongForAHostThatDoesNotAnswer) {
  dial(kNobody, 20'000'000);
  expect(client, STM_FAILED, -ETIMEDOUT, 20 * kSecond);
}

TEST_F(Patience, APeerWhoseHostIsAliveMayDecideLate) {
  sides_.listen();
  dial(":3000", STM_WHILE_ALIVE);
  server.connection = server.next(STM_REQUEST).connection;
  let_pass_until([&] { return port::now() >= begun() + 35 * kSecond || !client.seen.empty(); });
  EXPECT_TRUE(client.seen.empty());
  accept();
  EXPECT_EQ(client.next(STM_CONNECTED).status, 0);
}

// A listener that leaves a request unanswered for lack of a place looks like this, too.
TEST_F(Patience, AHostThatAnotherConnectionReachesIsNotSilent) {
  Endpoint undecided(":3001");
  set_option(undecided, ST_OPT_INSPECT, 1);
  ASSERT_EQ(st_listen(undecided), 0);
  dial(":3001", -1);
  expect(client, STM_FAILED, -ETIMEDOUT, 4'500 * kMillisecond);
  client.seen.clear();
  sides_.establish();
  dial(":3001", -1);
  expect(client, STM_FAILED, -ETIMEDOUT, 30 * kSecond);
}

// protocol: 5.23
TEST_F(Patience, AHostThatHasFallenSilentIsGivenUpSoonerByWhoConnectsAgain) {
  sides_.establish();
  await_silence();
  server.seen.clear();
  client.seen.clear();
  link->lost = true;
  start();
  expect(client, STM_FAILED, -ETIMEDOUT, 4'500 * kMillisecond);
  client.seen.clear();
  dial(":3000", STM_WHILE_ALIVE);
  expect(client, STM_FAILED, -ETIMEDOUT, kSecond);
  EXPECT_LT(passed(), 3 * kSecond);
  client.seen.clear();
  dial(":3000", 8'000'000);
  expect(client, STM_FAILED, -ETIMEDOUT, 8 * kSecond);
  link->lost = false;
  client.seen.clear();
  dial(":3000", STM_WHILE_ALIVE);
  server.next(STM_REQUEST);
}

// As one that is stopped, or a listener whose backlog is full.
TEST_F(Patience, WhoFindsAHostSilentThatHasJustAnsweredIsToldSo) {
  sides_.establish();
  link->lost = true;
  Endpoint asks;
  std::string text;
  std::atomic<int> result = 1;
  std::thread asking([&] {
    st_chandle_t none = nullptr;
    const auto error = st_connect(asks, ":3001", &none);
    text = st_strerror(error);
    result = error;
  });
  start();
  let_pass_until([&] { return result != 1; });
  asking.join();
  EXPECT_EQ(result, -ETIMEDOUT);
  EXPECT_NE(text.find("it answered "), std::string::npos) << text;
  EXPECT_NE(text.find(" s ago; its backlog may be full"), std::string::npos) << text;
}

// Who refuses a connection is alive.
// protocol: 5.23
TEST_F(Patience, AHostThatRefusesAfterItHasFallenSilentHasItsTimeAgain) {
  sides_.establish();
  await_silence();
  server.seen.clear();
  client.seen.clear();
  link->lost = true;
  start();
  expect(client, STM_FAILED, -ETIMEDOUT, 4'500 * kMillisecond);
  link->lost = false;
  client.seen.clear();
  dial(":4711", STM_WHILE_ALIVE);
  EXPECT_EQ(client.next(STM_FAILED).status, -ECONNREFUSED);
  link->lost = true;
  client.seen.clear();
  dial(":3000", STM_WHILE_ALIVE);
  expect(client, STM_FAILED, -ETIMEDOUT, 4'500 * kMillisecond);
}

// protocol: 9.40
TEST_F(Patience, WhoConnectsHasTenSecondsToSayWhatItWants) {
  sides_.listen();
  Endpoint silent;
  st_chandle_t chandle = nullptr;
  start();
  ASSERT_EQ(st_connect(silent, ":3000", &chandle), 0);
  st_header_t header;
  int state = 0;
  let_pass_until([&] { return (state = poll(chandle, header)) != -EWOULDBLOCK; });
  EXPECT_EQ(state, -ENOTCONN);
  expect_waited(10 * kSecond);
  st_close(chandle);
}

// protocol: 9.40
TEST_F(Patience, WhoAsksGetsThePlaceOfOneThatHasBeenSilentForASecond) {
  sides_.listen();
  Endpoint silent;
  std::vector<st_chandle_t> connected;
  for (int i = 0; i < 64; ++i) {  // all places of the listener
    st_chandle_t chandle = nullptr;
    ASSERT_EQ(st_connect(silent, ":3000", &chandle), 0) << i;
    connected.push_back(chandle);
  }
  start();
  sides_.connect();
  let_pass_until([&] { return !server.seen.empty(); });
  ASSERT_FALSE(server.seen.empty());
  EXPECT_EQ(server.seen.front().kind, unsigned{STM_REQUEST});
  EXPECT_LE(passed(), 5 * kSecond) << "those that are silent have 10 s";
  for (auto* const chandle : connected) st_close(chandle);
}

// A message that the peer's program does not take, whose Node answers.
TEST_F(Patience, APatientConnectionWaitsForTheProgramOfItsPeer) {
  sides_.listen();
  auto attr = client.attr(1);
  attr.flags = STM_PATIENT;
  ASSERT_EQ(stm_connection_create(client.domain, &attr, &client.connection), 0);
  ASSERT_EQ(stm_connect(client.connection, ":3000", kHour, nullptr, 0), 0);
  server.connection = server.next(STM_REQUEST).connection;
  accept();
  ASSERT_EQ(client.next(STM_CONNECTED).status, 0);
  await_silence();
  link->offers = Offers::kAreLost;
  std::vector<char> bytes(100'000);
  auto* const memory = client.memory(bytes.data(), bytes.size());
  ASSERT_EQ(stm_send(client.connection, 3, 0, 0, memory, bytes.data(), bytes.size()), 0);
  for (int i = 0; i < 15 && client.seen.empty(); ++i) {
    let_pass(3 * kSecond);
    await_silence();
  }
  EXPECT_TRUE(client.seen.empty());
}

TEST_F(Patience, AnEndInOrderThatDoesNotComeAboutIsWaitedForThirtySeconds) {
  sides_.establish();
  await_silence();
  link->frozen = true;
  start();
  ASSERT_EQ(stm_disconnect(client.connection, STM_GRACEFUL), 0);
  expect(client, STM_DISCONNECTED, 0, 30 * kSecond);
  link->frozen = false;
}

}  // namespace
}  // namespace stp::test
