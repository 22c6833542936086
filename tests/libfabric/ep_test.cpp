// SPDX-License-Identifier: BSD-3-Clause
// Peers that do not keep to the protocol of endpoints of FI_EP_MSG: a program of the managed API in
// the place of one. Each message of the provider's own has a kind, its tag, and numbers,
// big-endian.
#include <endian.h>

#include <cstring>
#include <deque>
#include <string>

#include "tests/libfabric/stranger.h"

namespace stp::test::ep_test {
namespace {

constexpr std::uint32_t kPlain = 0, kData = 1, kAnnounced = 2, kAnnouncedData = 3, kWritten = 4;
constexpr std::uint32_t kMagic = 0x53544649;
constexpr std::size_t kNumbers = 16, kMostShort = 17 * 1024, kBuffer = kMostShort + 8;
constexpr std::uint64_t kMost = std::uint64_t{1} << 32;

class Stranger : public StrangeProgram {
 public:
  Stranger() : StrangeProgram(100'000, 'b') {}

  void dial(std::uint16_t port) { StrangeProgram::dial(port, kMagic); }
  // Asks for a connection, and whoever has asked some times before goes.
  void ask(std::uint16_t port, std::uint32_t magic) {
    constexpr std::size_t kAtATime = 32;
    StrangeProgram::dial(port, magic);
    asked_.push_back(connection_);
    if (asked_.size() < kAtATime) return;
    stm_connection_close(asked_.front());
    asked_.pop_front();
  }
  void send(std::uint32_t kind, std::size_t size, std::uint64_t first = 0) {
    const auto number = htobe64(first);
    std::memcpy(bytes_.data(), &number, sizeof number);
    EXPECT_EQ(stm_send(connection_, 0, 0, kind, memory_, bytes_.data(), size), 0);
  }
  void read(std::size_t length) {
    EXPECT_EQ(stm_read(connection_, 0, 0, memory_, &bytes_[30'000], length), 0);
  }
  // Takes what the endpoint announces.
  void post() { EXPECT_EQ(stm_receive(connection_, 0, memory_, &bytes_[60'000], kBuffer), 0); }

 private:
  std::deque<stm_connection_t> asked_;
};

// A server with two connections: of an honest client, and of a stranger.
class EpPeer : public FiTest {
 protected:
  EpPeer() {
    stranger_.progress = [this] { fi_cq_read(server_->rx.get(), nullptr, 0); };
    connect();
    sockaddr_in address{};
    auto length = sizeof address;
    EXPECT_EQ(fi_getname(&pep_->fid, &address, &length), 0);
    port_ = ntohs(address.sin_port);
    stranger_.dial(port_);
    const auto asked = request();
    theirs_ = server_->endpoint(asked.get());
    EXPECT_EQ(fi_accept(theirs_.get(), nullptr, 0), 0);
    EXPECT_EQ(stranger_.next().kind, STM_CONNECTED);
    EXPECT_EQ(server_->event(), FI_CONNECTED);
  }
  void expect_others_go_on() {
    std::string got(5, ' ');
    ASSERT_EQ(fi_recv(accepted_.get(), got.data(), got.size(), nullptr, 0, got.data()), 0);
    ASSERT_EQ(fi_send(connected_.get(), "still", 5, nullptr, 0, nullptr), 0);
    EXPECT_EQ(server_->completed(server_->rx.get()).op_context, got.data());
    client_->completed(client_->tx.get());
    EXPECT_EQ(got, "still");
  }
  // What the stranger has sent ends its connection, and nothing else.
  void expect_broken_off() {
    EXPECT_EQ(stranger_.ended(), -ECONNRESET);
    EXPECT_EQ(server_->event(), FI_SHUTDOWN);
    expect_others_go_on();
  }
  void expect_lie(std::uint32_t kind, std::size_t size, std::uint64_t first = 0) {
    stranger_.send(kind, size, first);
    expect_broken_off();
  }

  Stranger stranger_;
  Fid<fid_ep> theirs_;
  std::uint16_t port_ = 0;
};

TEST_F(EpPeer, AnUnknownKindEndsTheConnection) {
  expect_lie(99, kNumbers);
}
TEST_F(EpPeer, AShortMessageThatIsTooLongEndsTheConnection) {
  expect_lie(kPlain, kMostShort + 1);
}
TEST_F(EpPeer, AMessageLongerThanABufferEndsTheConnection) {
  expect_lie(kPlain, kBuffer + 1);
}
TEST_F(EpPeer, AMessageShorterThanItsDataEndsTheConnection) {
  expect_lie(kData, 7);
}
TEST_F(EpPeer, AnAnnouncementOfAnotherLengthEndsTheConnection) {
  expect_lie(kAnnounced, kNumbers - 1, 100);
}
TEST_F(EpPeer, AnAnnouncementOfTooMuchEndsTheConnection) {
  expect_lie(kAnnounced, kNumbers, kMost + 1);
}
TEST_F(EpPeer, AnAnnouncementOfTooMuchWithDataEndsTheConnection) {
  expect_lie(kAnnouncedData, kNumbers, ~std::uint64_t{0});
}
TEST_F(EpPeer, AWriteOfAnotherLengthEndsTheConnection) {
  expect_lie(kWritten, kNumbers + 1, 100);
}
TEST_F(EpPeer, AWriteOfTooMuchEndsTheConnection) {
  expect_lie(kWritten, kNumbers, kMost + 1);
}
TEST_F(EpPeer, AReadOfWhatIsNotAnnouncedEndsTheConnection) {
  stranger_.read(10);
  expect_broken_off();
}

TEST_F(EpPeer, AReadOfMoreThanIsAnnouncedEndsTheConnection) {
  const std::vector<char> bytes(20'000);
  stranger_.post();
  ASSERT_EQ(fi_send(theirs_.get(), bytes.data(), bytes.size(), nullptr, 0, &stranger_), 0);
  const auto announced = stranger_.next();
  ASSERT_EQ(announced.kind, STM_RECEIVE);
  ASSERT_EQ(announced.tag, kAnnounced);
  stranger_.read(bytes.size() + 1);
  expect_broken_off();
  EXPECT_EQ(server_->failed(server_->tx.get()).op_context, &stranger_);
}

// The receive waits as long as the connection is there. Others do not, and the log tells of it.
TEST_F(EpPeer, WhoAnnouncesAndNeverSendsKeepsOneReceive) {
  std::vector<char> got(20'000);
  char other = 0;
  ASSERT_EQ(fi_recv(theirs_.get(), got.data(), got.size(), nullptr, 0, got.data()), 0);
  ASSERT_EQ(fi_recv(theirs_.get(), &other, 1, nullptr, 0, &other), 0);
  {
    const Log log;
    for (int i = 0; i < 3; ++i) stranger_.send(kAnnounced, kNumbers, got.size());
    ASSERT_EQ(stranger_.next().kind, STM_READ_REQUEST);
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(kPatience);
    while (!log.says("a peer is late (1 so far)")) {
      ASSERT_LT(std::chrono::steady_clock::now(), deadline);
      fi_cq_read(server_->rx.get(), nullptr, 0);
    }
  }
  expect_others_go_on();
  EXPECT_EQ(fi_cancel(&theirs_->fid, &other), 0);
  EXPECT_EQ(server_->failed(server_->rx.get()).op_context, &other);
  theirs_.reset();
  EXPECT_EQ(server_->failed(server_->rx.get()).op_context, got.data());
}

// They fill no log.
TEST_F(EpPeer, ThoseWhoAskAndAreNoEndpointsAreRejected) {
  const Log log;
  stranger_.ask(port_, 0x53544652);  // FI_EP_RDM's
  EXPECT_TRUE(becomes_true([&] {
    stranger_.progress();
    return log.says("<warn> who asks to connect is rejected (1 so far): it is FI_EP_RDM of stp");
  }));
  EXPECT_TRUE(becomes_true([&] {
    stranger_.ask(port_, kMagic + 5);
    stranger_.progress();
    return log.says("rejected (16 so far): it is no endpoint of FI_EP_MSG");
  }));
  EXPECT_FALSE(log.says("rejected (17 so far)"));
  const auto to = destination();
  const auto later = client_->endpoint(to.get());
  ASSERT_EQ(fi_connect(later.get(), to->dest_addr, nullptr, 0), 0);
  const auto asked = request();
  ASSERT_NE(asked, nullptr);
  const auto accepted = server_->endpoint(asked.get());
  EXPECT_EQ(fi_accept(accepted.get(), nullptr, 0), 0);
  EXPECT_EQ(client_->event(), FI_CONNECTED);
}

// Of what is under way, a close waits for what was injected alone: no 2 s for a read of the peer.
TEST_F(EpPeer, WhoAnnouncesAndNeverSendsDelaysNoClose) {
  std::vector<char> got(20'000);
  ASSERT_EQ(fi_recv(theirs_.get(), got.data(), got.size(), nullptr, 0, got.data()), 0);
  stranger_.send(kAnnounced, kNumbers, got.size());
  ASSERT_EQ(stranger_.next().kind, STM_READ_REQUEST);
  ASSERT_EQ(fi_inject(theirs_.get(), "x", 1, 0), 0);
  const Log log;
  theirs_.reset();
  EXPECT_FALSE(log.says("closed before all that it has injected arrived"));
  EXPECT_EQ(server_->failed(server_->rx.get()).op_context, got.data());
}

// Nothing that the server has posted bounds them, and it does not read its queue.
TEST_F(EpPeer, WhatItSaysThatItHasWrittenWaitsUntilTheProgramReads) {
  constexpr std::uint64_t kMany = 24'000;
  for (std::uint64_t i = 0; i < kMany; ++i) {
    stranger_.send(kWritten, kNumbers, 1);
    stranger_.look(1);
  }
  stranger_.look(20'000);
  EXPECT_GT(stranger_.outstanding(), 5'000U);
  for (std::uint64_t i = 0; i < kMany; ++i) {
    ASSERT_NE(server_->completed(server_->rx.get()).flags & FI_REMOTE_WRITE, 0U) << i;
    stranger_.look(1);
  }
  expect_others_go_on();
}

}  // namespace
}  // namespace stp::test::ep_test
