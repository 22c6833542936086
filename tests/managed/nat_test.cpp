// SPDX-License-Identifier: BSD-3-Clause
// Connections over UDP through a NAT that gives a host another address in mid-connection: they end
// by their timeouts, nobody takes them over, and new ones are made.
#include "tests/managed/nat.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <future>
#include <memory>
#include <string>

#include "tests/managed/managed_fixture.h"

namespace stp::test {
namespace {

constexpr std::size_t kSize = std::size_t{2} << 20;  // some thousands of datagrams
constexpr std::uint32_t kElsewhere = INADDR_LOOPBACK + 1, kAttacker = INADDR_LOOPBACK + 2;
constexpr std::size_t kLongestControl = 72;

std::uint16_t free_port() {
  return UdpEnd().port();
}

std::unique_ptr<Side> side_at(std::uint16_t port) {
  const UseLink link("udp:127.0.0.1,mtu=1500,port=" + std::to_string(port));
  return std::make_unique<Side>();
}

// A connection, with a region of the server that only it reaches.
struct Joined {
  Side* client;
  stm_connection_t at_client = nullptr, at_server = nullptr;
  std::unique_ptr<Buffer> there = std::make_unique<Buffer>(kSize, 0, false);
  stm_remote_t remote{};
};

class ThroughNat : public testing::Test {
 protected:
  ThroughNat() {
    const int error = stm_listen(server->domain, ":3000", server->queue, 7, 0, &listener_);
    EXPECT_EQ(error, 0) << st_strerror(error);
  }
  // With AddressSanitizer the relay takes seconds for what peers wait seconds for.
  void SetUp() override {
#if defined(__SANITIZE_ADDRESS__)
    GTEST_SKIP() << "peers would be given up before the relay has passed on what they send";
#endif
  }
  // `port`: the UDP port that the client reaches the server at. `context`: of the connection, at
  // both sides.
  Joined join(Side& client, std::uint16_t port, std::uint64_t context) {
    Joined made{&client};
    const auto attr = client.attr(context), at_server = server->attr(context);
    EXPECT_EQ(stm_connection_create(client.domain, &attr, &made.at_client), 0);
    const auto name = "127.0.0.1/" + std::to_string(port) + ":3000";
    EXPECT_EQ(stm_connect(made.at_client, name.c_str(), -1, nullptr, 0), 0);
    made.at_server = server->next(STM_REQUEST).connection;
    EXPECT_EQ(stm_accept(made.at_server, &at_server, nullptr, 0), 0);
    EXPECT_EQ(client.next(STM_CONNECTED).status, 0);
    EXPECT_EQ(server->next(STM_CONNECTED).status, 0);
    const auto memory = server->memory(made.there->data(), kSize, STM_REMOTE_WRITE);
    stm_region_t region = nullptr;
    EXPECT_EQ(stm_region_open(memory, made.there->data(), kSize, STM_REMOTE_WRITE, made.at_server,
                              0, &region, &made.remote),
              0);
    return made;
  }
  // All of `bytes`.
  static void put(const Joined& to, const Buffer& bytes, std::uint64_t context) {
    const auto memory = to.client->memory(bytes.data(), kSize);
    ASSERT_EQ(stm_put(to.at_client, context, 0, memory, bytes.data(), kSize, to.remote.key, 0), 0);
  }
  static void expect_to_work(const Joined& joined, unsigned char seed) {
    const Buffer bytes(kSize, seed);
    put(joined, bytes, kProbe);
    EXPECT_EQ(joined.client->completion(kProbe).status, 0);
    EXPECT_EQ(std::memcmp(joined.there->data(), bytes.data(), kSize), 0);
  }
  // At both sides, with these contexts.
  void expect_timeouts(Side& client, std::vector<std::uint64_t> contexts) {
    for (auto* const side : {&client, server.get()}) {
      std::vector<std::uint64_t> ended;
      for (std::size_t i = 0; i < contexts.size(); ++i) {
        const auto event = side->next(STM_FAILED);
        EXPECT_EQ(event.status, -ETIMEDOUT);
        ended.push_back(event.context);
      }
      std::sort(ended.begin(), ended.end());
      EXPECT_EQ(ended, contexts);
    }
  }

  static constexpr std::uint64_t kProbe = 99, kPut = 98;
  const std::uint16_t port = free_port();
  const std::unique_ptr<Side> server = side_at(port), client = side_at(free_port());
  Nat nat{port};

 private:
  stm_listener_t listener_ = nullptr;
};

enum class Move { kPort, kAddress, kBothSides };
std::string name_of_move(const testing::TestParamInfo<Move>& info) {
  return std::array{"Port", "Address", "BothSides"}[static_cast<std::size_t>(info.param)];
}

class ThroughNatThatForgets : public ThroughNat, public testing::WithParamInterface<Move> {
 protected:
  void move() {
    nat.rebind(GetParam() == Move::kAddress ? kElsewhere : INADDR_LOOPBACK);
    if (GetParam() == Move::kBothSides) nat.rebind_inside();
  }
};
INSTANTIATE_TEST_SUITE_P(Another, ThroughNatThatForgets,
                         testing::Values(Move::kPort, Move::kAddress, Move::kBothSides),
                         name_of_move);

// protocol: 13.4
TEST_P(ThroughNatThatForgets, ConnectionsEndByTheirTimeoutsAndNewOnesAreMade) {
  const auto neighbour = side_at(free_port());
  const auto busy = join(*client, nat.port(), 1), idle = join(*client, nat.port(), 2);
  const auto direct = join(*neighbour, port, 3);
  const Buffer bytes(kSize, 5);
  const auto moved = std::make_shared<std::promise<void>>();
  nat.after(1'000, [this, moved] {
    move();
    moved->set_value();
  });
  put(busy, bytes, kPut);
  ASSERT_EQ(moved->get_future().wait_for(std::chrono::seconds(20)), std::future_status::ready);
  expect_to_work(direct, 6);
  const auto anew = join(*client, nat.port(), 4);
  expect_to_work(anew, 7);
  EXPECT_EQ(client->completion(kPut).status, -ETIMEDOUT);
  expect_timeouts(*client, {1, 2});
  EXPECT_NE(std::memcmp(busy.there->data(), bytes.data(), kSize), 0);
  expect_to_work(direct, 8);
  expect_to_work(anew, 9);
}

// protocol: 13.4
TEST_F(ThroughNat, OneThatGetsThePortOfAnotherPeerIsNotTakenForIt) {
  const auto other = side_at(free_port());
  Nat its{port};
  const auto mine = join(*client, nat.port(), 1), others = join(*other, its.port(), 2);
  const Buffer a(kSize, 5), b(kSize, 6);
  // Each of the two waits for the other one, so that neither Put is complete before.
  std::promise<void> halfway, exchanged;
  its.after(1'000, [&] {
    halfway.set_value();
    exchanged.get_future().wait_for(std::chrono::seconds(20));
  });
  nat.after(1'000, [&] {
    halfway.get_future().wait_for(std::chrono::seconds(20));
    Nat::exchange(nat, its);
    exchanged.set_value();
  });
  put(mine, a, kPut);
  put(others, b, kPut);
  EXPECT_EQ(client->completion(kPut).status, -ETIMEDOUT);
  EXPECT_EQ(other->completion(kPut).status, -ETIMEDOUT);
  EXPECT_EQ(client->next(STM_FAILED).status, -ETIMEDOUT);
  EXPECT_EQ(other->next(STM_FAILED).status, -ETIMEDOUT);
  for (int i = 0; i < 2; ++i) EXPECT_EQ(server->next(STM_FAILED).status, -ETIMEDOUT);
  // Each has its own bytes, or none.
  for (std::size_t i = 0; i < kSize; ++i) {
    const auto at_a = (*mine.there)[i], at_b = (*others.there)[i];
    ASSERT_TRUE((at_a == 0 || at_a == a[i]) && (at_b == 0 || at_b == b[i])) << i;
  }
  expect_to_work(join(*client, nat.port(), 3), 7);
  expect_to_work(join(*other, its.port(), 4), 8);
}

// What somebody sends who has recorded a conversation, from an address of its own.
class Repeater {
 public:
  Repeater(std::vector<Datagram> for_server, std::vector<Datagram> for_client, const Nat& nat,
           std::uint16_t server)
      : all_{{{std::move(for_server), name_of(INADDR_LOOPBACK, server)},
              {std::move(for_client), name_of(INADDR_LOOPBACK, nat.client())}}} {}
  // Some of them, and after the last ones the first again.
  void send_some() {
    for (auto& [datagrams, to] : all_)
      for (int i = 0; i < 64; ++i) {
        const auto& each = datagrams[next_++ % datagrams.size()];
        if (end_.send(each, to)) sent_ += each.size();
      }
    sockaddr_in from{};
    while (const auto answer = end_.take(from)) {
      // Padding is 0, and may follow a control operation. protocol: 13.20
      const auto behind =
          answer->begin() + static_cast<std::ptrdiff_t>(std::min(answer->size(), kLongestControl));
      EXPECT_TRUE(std::all_of(behind, answer->end(), [](auto byte) {
        return static_cast<unsigned char>(byte) == 0;
      })) << "no data of others";
      got_ += answer->size();
    }
    EXPECT_LE(got_, sent_);
  }

 private:
  std::array<std::pair<std::vector<Datagram>, sockaddr_in>, 2> all_;
  UdpEnd end_{kAttacker};
  std::size_t next_ = 0, sent_ = 0, got_ = 0;
};

// protocol: 13.4
TEST_F(ThroughNat, WhoRepeatsARecordedConversationFromElsewhereGetsNothingOfIt) {
  const auto joined = join(*client, nat.port(), 1);
  expect_to_work(joined, 5);
  Repeater repeater(nat.heard_from_client(), nat.heard_from_server(), nat, port);
  for (int i = 0; i < 100; ++i) repeater.send_some();
  expect_to_work(joined, 6);
  std::memset(joined.there->data(), 0, kSize);
  nat.rebind();
  // All the time until both sides have given the connection up.
  const auto ended = [](Side& side) {
    stm_event_t events[16];
    const auto count = stm_queue_wait(side.queue, 1, events, 16, 1'000);
    for (int i = 0; i < count; ++i) side.seen.push_back(events[i]);
    return std::any_of(side.seen.begin(), side.seen.end(),
                       [](const stm_event_t& event) { return event.kind == STM_FAILED; });
  };
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  for (std::array<bool, 2> over{}; !(over[0] && over[1]);) {
    ASSERT_LT(std::chrono::steady_clock::now(), end) << over[0] << over[1];
    repeater.send_some();
    over = {over[0] || ended(*client), over[1] || ended(*server)};
  }
  expect_timeouts(*client, {1});
  EXPECT_TRUE(std::all_of(joined.there->data(), joined.there->data() + kSize,
                          [](unsigned char byte) { return byte == 0; }));
  expect_to_work(join(*client, nat.port(), 2), 7);
}

}  // namespace
}  // namespace stp::test
