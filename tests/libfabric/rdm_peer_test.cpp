// SPDX-License-Identifier: BSD-3-Clause
// Peers that do not keep to the protocol of endpoints of FI_EP_RDM.
#include <chrono>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "tests/libfabric/rdm_stranger.h"

namespace stp::test::rdm_peer_test {
namespace {

using namespace rdm_stranger;

// Of two programs, one has ofi_rxm. They would wait for each other and nobody would know why.
TEST_F(RdmPeer, WhoIsAnEndpointOfTheOtherKindIsRejectedWithAWarning) {
  const Log log;
  EXPECT_EQ(stranger_.connect(b_->name(), 0x53544649), STM_REFUSED);  // FI_EP_MSG's
  EXPECT_TRUE(
      log.says("<warn> who asks to connect is rejected (1 so far): it is one of FI_EP_MSG"));
}

TEST_F(RdmPeer, AMessageShorterThanAHeaderEndsTheConnection) {
  expect_broken_off(kEager, head(1, 0, 0, 1), kHead - 1);
}
TEST_F(RdmPeer, AnUnknownKindEndsTheConnection) {
  expect_broken_off(99, head(1, 0, 0, 1), kHead);
}
TEST_F(RdmPeer, AnUnknownFlagEndsTheConnection) {
  expect_broken_off(kEager, head(1, 0, 0, 4), kHead);
}
TEST_F(RdmPeer, ALengthThatIsNotTheMessagesEndsTheConnection) {
  expect_broken_off(kEager, head(1, 100, 0, 1), kHead + 99);
}
// Its last bytes come along: 15, or all of them.
TEST_F(RdmPeer, AnAnnouncementWithOtherThanItsLastBytesEndsTheConnection) {
  expect_broken_off(kAnnounced, head(1, 100, 0, 1), kHead + kTail - 1);
}
TEST_F(RdmPeer, AnAnnouncementWithMoreThanItsBytesEndsTheConnection) {
  expect_broken_off(kAnnounced, head(1, 10, 0, 1), kHead + 11);
}
TEST_F(RdmPeer, AnAnnouncementOfTooMuchEndsTheConnection) {
  expect_broken_off(kAnnounced, head(1, (std::uint64_t{1} << 32) + 1, 0, 1), kHead + kTail);
}
TEST_F(RdmPeer, APullOnAConnectionOfTheWrongDirectionEndsIt) {
  expect_broken_off(kPull, head(0, 1, 1, 0), kHead);
}
TEST_F(RdmPeer, AWriteThatIsTaggedEndsTheConnection) {
  expect_broken_off(kWritten, head(0, 1, 1, 1), kHead);
}
TEST_F(RdmPeer, AnAccessThatNobodyCountsEndsTheConnection) {
  expect_broken_off(kAccessed, head(0, 1, 1, 0), kHead);
}
TEST_F(RdmPeer, AnAccessThatIsNotPermittedIsNotCounted) {
  make(0, [](fi_info& asked) { asked.caps |= FI_RMA_EVENT; });
  fi_cntr_attr attr{};
  attr.events = FI_CNTR_EVENTS_COMP;
  attr.wait_obj = FI_WAIT_NONE;
  fid_cntr* made = nullptr;
  ASSERT_EQ(fi_cntr_open(b_->domain.get(), &attr, &made, nullptr), 0);
  const Fid<fid_cntr> counter(made);
  std::vector<char> bytes(100);
  const auto readable = b_->memory(bytes.data(), bytes.size(), FI_REMOTE_READ);
  ASSERT_EQ(fi_mr_bind(readable.get(), &counter->fid, FI_REMOTE_READ | FI_REMOTE_WRITE), 0);
  ASSERT_EQ(stranger_.connect(b_->name()), STM_CONNECTED);
  const auto key = static_cast<std::uint32_t>(fi_mr_key(readable.get()));
  stranger_.send(kAccessed, head(0, 0, key, 0), kHead);
  stranger_.send(99, head(0, 0, 0, 0), kHead);  // ends the connection after the other
  stranger_.ended();
  EXPECT_EQ(fi_cntr_read(counter.get()), 0U);
}
TEST_F(RdmPeer, AFirstPartOfAMessageWithoutOthersEndsTheConnection) {
  expect_broken_off(kFirst, head(1, kPart, 0, 1), kHead + kPart);
}
TEST_F(RdmPeer, AFirstPartOfAMessageTooLongEndsTheConnection) {
  expect_broken_off(kFirst, head(1, 4 * kPart + 1, 0, 1), kHead + kPart);
}
TEST_F(RdmPeer, SeveralMessagesOfWhoHasNotSaidSoEndTheConnection) {
  expect_broken_off(kSeveral, head(1, 10, 0, 1), kHead + 10);
}
TEST_F(RdmPeer, SeveralMessagesOfWhichTheFirstIsLongerThanAllEndTheConnection) {
  expect_broken_off(kSeveral, head(1, 11, 0, 1), kHead + 10, kSendsSeveral);
}
TEST_F(RdmPeer, SeveralMessagesOfWhichOneIsLongEndTheConnection) {
  expect_broken_off(kSeveral, head(1, 4'049, 0, 1), kHead + 4'049, kSendsSeveral);
}
TEST_F(RdmPeer, SeveralMessagesOfWhichOneHasNoHeaderEndTheConnection) {
  expect_broken_off(kSeveral, head(9, 10, 0, 1), kHead + 10 + kHead - 1, kSendsSeveral);
}
// The second one is 't's.
TEST_F(RdmPeer, SeveralMessagesOfWhichALaterOneIsNoneEndTheConnection) {
  expect_broken_off(kSeveral, head(9, 10, 0, 1), kHead + 10 + kHead, kSendsSeveral);
}
TEST_F(RdmPeer, WhoDoesNotTakeSeveralMessagesAsOneIsSentEachAlone) {
  const auto to = a_->insert(stranger_.listen());
  ASSERT_EQ(fi_tinject(a_->ep.get(), "x", 1, to, 1), 0);
  stranger_.accept();
  ssize_t sent = 0;
  std::size_t count = 0;
  for (; sent == 0 && count < 3'000; ++count) sent = fi_tinject(a_->ep.get(), "x", 1, to, 1);
  EXPECT_EQ(sent, -FI_EAGAIN);  // they have used up the places
}
TEST_F(RdmPeer, APartOfNothingEndsTheConnection) {
  expect_broken_off(kMore, head(0, kPart, 0, 0), kHead + 10);
}

// ---- what a peer asks the program for ----

TEST_F(RdmPeer, AQuestionForWhatIsNoAccessEndsTheConnection) {
  constexpr std::size_t kAskHead = kHead + 8;
  struct Case {
    const char* what;
    std::uint64_t address, length;
    std::uint32_t access;
    std::size_t size;
  };
  for (const auto& each :
       {Case{"no key", 0, 0, 0, kAskHead - 1}, Case{"no such access", 0, 8, 4, kAskHead},
        Case{"a write of less", 0, 9, 0, kAskHead + 8},
        Case{"a write of more", 0, 7, 0, kAskHead + 8},
        Case{"a read of nothing", 0, 0, 1, kAskHead},
        Case{"a read of too much", 0, 4 * kPart + 1, 1, kAskHead},
        Case{"an addition of no number", 0, 8, 2, kAskHead + 8},
        Case{"an addition to no word", 4, 8, 2, kAskHead + 16},
        Case{"a swap of two words", 0, 16, 3, kAskHead + 16}}) {
    SCOPED_TRACE(each.what);
    expect_broken_off(kAsk, head(each.address, each.length, 1, each.access), each.size);
  }
}
// It is told so, and may not read.
TEST_F(RdmPeer, AReadOfMemoryThatIsNotThereEndsTheConnection) {
  ASSERT_EQ(stranger_.connect(b_->name()), STM_CONNECTED);
  stranger_.post();
  stranger_.send(kAsk, head(0, 100, 1, 1), kHead + 8);
  const auto told = stranger_.next();
  EXPECT_EQ(told.kind, STM_RECEIVE);
  EXPECT_EQ(told.tag, kAnswer);
  stranger_.read(100);
  EXPECT_EQ(stranger_.ended(), -ECONNRESET);
}
// Else its answers would take memory, and places of the queue that all peers share.
TEST_F(RdmPeer, WhoTakesNoAnswersWaitsWithItsQuestions) {
  constexpr std::uint64_t kMany = 4000;
  ASSERT_EQ(stranger_.connect(b_->name()), STM_CONNECTED);
  for (std::uint64_t i = 0; i < kMany; ++i)
    stranger_.send(kAsk, head(0, 100, 1, 0), kHead + 8 + 100);
  stranger_.look(20'000);
  EXPECT_GT(stranger_.outstanding(), kMany / 2);
  std::vector<char> got(6);
  send_early("others", 1);
  EXPECT_EQ(receive(got, 1).len, 6U);
  // None of them is lost.
  for (std::uint64_t i = 0; i < kMany; ++i) {
    stranger_.post();
    ASSERT_EQ(stranger_.next().tag, kAnswer);
  }
}
TEST_F(RdmPeer, AnAnswerWithoutAQuestionEndsTheConnection) {
  expect_lender_ends(kAnswer, head(0, 0, 0, 0));
}

// ---- what a peer tells the program by itself ----

// More than a completion queue has places for. The rest can be under way at a stranger.
class RdmTellers : public RdmPeer {
 protected:
  static constexpr std::uint64_t kMany = 24'000, kWaits = 5'000;

  void send_many(std::uint32_t kind, const std::array<std::uint64_t, 4>& header,
                 std::uint64_t many = kMany) {
    ASSERT_EQ(stranger_.connect(b_->name()), STM_CONNECTED);
    for (std::uint64_t i = 0; i < many; ++i) {
      stranger_.send(kind, header, kHead);
      stranger_.look(1);
    }
    stranger_.look(20'000);
  }
  // `b` reads all of them.
  void expect_all_are_told(std::uint64_t flags, std::uint64_t many = kMany) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(kPatience);
    std::uint64_t told = 0;
    while (told < many && std::chrono::steady_clock::now() < deadline) {
      std::array<fi_cq_tagged_entry, 16> entries;
      const auto count = fi_cq_read(b_->rx.get(), entries.data(), entries.size());
      for (ssize_t i = 0; i < count; ++i)
        EXPECT_EQ(entries[static_cast<std::size_t>(i)].flags & flags, flags);
      if (count > 0) told += static_cast<std::uint64_t>(count);
      stranger_.look(1);
    }
    EXPECT_EQ(told, many);
  }
};

// It need not write for that. The program may never have posted anything.
TEST_F(RdmTellers, OfWritesWaitUntilTheProgramReadsItsQueue) {
  send_many(kWritten, head(0, 1, 0, 2));
  EXPECT_GT(stranger_.outstanding(), kWaits);
  expect_all_are_told(FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA);
}

// The peer knows that they have arrived.
TEST_F(RdmTellers, OfWritesAreToldThoughThePeerGoesWhileTheQueueIsFull) {
  constexpr std::uint64_t kFew = 16'384 + 10;
  send_many(kWritten, head(0, 1, 0, 2), kFew);
  EXPECT_EQ(stranger_.outstanding(), 0U);
  stranger_.leave();
  expect_all_are_told(FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA, kFew);
}

// An address vector may have 100,000 addresses of hosts that are not there.
TEST_F(RdmPeer, ThoseThatDoNotAnswerDoNotFillTheLog) {
  ASSERT_EQ(::setenv("FI_STP_CONNECT_TIMEOUT", "1", 1), 0);
  make();
  const auto to = a_->insert(stranger_.listen());
  const Log log;
  for (int i = 0; i < 12; ++i) {
    while (fi_tsend(a_->ep.get(), "x", 1, nullptr, to, 1, this) != 0) {  // it tells of what is lost
    }
    EXPECT_EQ(a_->failed(a_->tx.get()).err, FI_ETIMEDOUT);
  }
  ::unsetenv("FI_STP_CONNECT_TIMEOUT");
  EXPECT_TRUE(log.says("no answer within 1 ms (10 so far)"));
  EXPECT_FALSE(log.says("(11 so far)"));
}

// The receive that names it fails when all is told that it has sent.
TEST_F(RdmTellers, OfWritesAreToldBeforeThePeersSilence) {
  constexpr std::uint64_t kFew = 16'384 + 10;
  ASSERT_EQ(::setenv("FI_STP_CONNECT_TIMEOUT", "20", 1), 0);
  make();
  const auto from = b_->insert(stranger_.listen());
  char named = 0;
  ASSERT_EQ(fi_trecv(b_->ep.get(), &named, 1, nullptr, from, 7, 0, &named), 0);
  send_many(kWritten, head(0, 1, 0, 2), kFew);
  stranger_.leave();
  ASSERT_EQ(fi_tsend(b_->ep.get(), "x", 1, nullptr, from, 1, this), 0);
  EXPECT_EQ(b_->failed(b_->tx.get()).err, FI_ETIMEDOUT);
  ::unsetenv("FI_STP_CONNECT_TIMEOUT");
  expect_all_are_told(FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA, kFew);
  const auto failed = b_->failed(b_->rx.get());
  EXPECT_EQ(failed.op_context, &named);
  EXPECT_EQ(failed.err, FI_ETIMEDOUT);
}

// They use up nothing of it.
TEST_F(RdmTellers, OfEmptyMessagesIntoABufferOfManyWaitAsWell) {
  std::vector<char> buffer(10'000);
  const iovec iov{buffer.data(), buffer.size()};
  fi_msg message{};
  message.msg_iov = &iov;
  message.iov_count = 1;
  message.addr = FI_ADDR_UNSPEC;
  ASSERT_EQ(fi_recvmsg(b_->ep.get(), &message, FI_MULTI_RECV), 0);
  send_many(kEager, head(0, 0, 0, 0));
  EXPECT_GT(stranger_.outstanding(), kWaits);
  expect_all_are_told(FI_RECV);
}

// ---- messages and their parts ----

// What follows the first part is not the next one, or no part. The receive fails that it was for.
TEST_F(RdmPeer, PartsThatDoNotFollowEachOtherEndTheConnection) {
  struct Case {
    std::uint32_t kind;
    std::uint64_t length;
    std::uint32_t flags;
    std::size_t bytes;
  };
  for (const auto& each :
       {Case{kMore, 0, 0, 10}, Case{kMore, kPart, 0, 9}, Case{kMore, kPart, 0, 11},
        Case{kMore, kPart, 1, 10}, Case{kEager, 10, 1, 10}, Case{kAnnounced, 10, 1, 0},
        Case{kFirst, 2 * kPart, 1, kPart}}) {
    std::vector<char> got(2 * kPart);
    ASSERT_EQ(stranger_.connect(b_->name()), STM_CONNECTED);
    ASSERT_EQ(fi_trecv(b_->ep.get(), got.data(), got.size(), nullptr, FI_ADDR_UNSPEC, 7, 0, &got),
              0);
    stranger_.send(kFirst, head(7, kPart + 10, 0, 1), kHead + kPart);
    stranger_.send(each.kind, head(0, each.length, 0, each.flags), kHead + each.bytes);
    EXPECT_EQ(stranger_.ended(), -ECONNRESET);
    EXPECT_EQ(b_->failed(b_->rx.get()).op_context, &got);
  }
}

// Nobody waits for it, and nothing of it stays.
TEST_F(RdmPeer, AMessageWhoseLastPartsNeverComeIsNone) {
  {
    Stranger other;
    other.progress = stranger_.progress;
    ASSERT_EQ(other.connect(b_->name()), STM_CONNECTED);
    other.send(kEager, head(6, 0, 0, 1), kHead);
    other.send(kFirst, head(7, kPart + 10, 0, 1), kHead + kPart);
    await_message(6);
  }
  std::vector<char> got(2 * kPart);
  send_early("whole", 7);
  EXPECT_EQ(receive(got, 7).len, 5U);
}

TEST_F(RdmPeer, AMessageLongerThanABufferEndsTheConnection) {
  ASSERT_EQ(stranger_.connect(b_->name()), STM_CONNECTED);
  stranger_.send(kEager, head(1, 17'500, 0, 1), kHead + 17'500);
  EXPECT_NE(stranger_.ended(), 0);
}
TEST_F(RdmPeer, AReadOfWhatIsNotServedEndsTheConnection) {
  ASSERT_EQ(stranger_.connect(b_->name()), STM_CONNECTED);
  stranger_.read(10);
  EXPECT_EQ(stranger_.ended(), -ECONNRESET);
}

// A kPull of what was not announced, and of more than was.
TEST_F(RdmPeer, WhatIsNotAnnouncedIsNotPulled) {
  struct Case {
    std::uint32_t kind, id;
    std::uint64_t length;
    std::size_t size;
  };
  const auto to = a_->insert(stranger_.listen());
  const std::vector<char> bytes(100'000);
  for (const auto& each : {Case{kPull, 2, 100'000, kHead}, Case{kPull, 1, 100'001, kHead},
                           Case{kPull, 1, 0, kHead}, Case{kPull, 1, 100'000, kHead - 1},
                           Case{kEager, 1, 0, kHead}, Case{kPull, 1, 100'000, kHead + 100}}) {
    ASSERT_EQ(fi_tsend(a_->ep.get(), bytes.data(), bytes.size(), nullptr, to, 1, nullptr), 0);
    stranger_.accept();
    EXPECT_EQ(stranger_.next().kind, STM_RECEIVE);
    stranger_.send(each.kind, head(0, each.length, each.id, 0), each.size);
    EXPECT_NE(stranger_.ended(), 0);
    EXPECT_NE(a_->failed(a_->tx.get()).err, 0);
  }
}

TEST_F(RdmPeer, TheLogCountsThoseWhoAreBrokenOffAndRejected) {
  const Log log;
  for (const std::string each : {"1", "2"}) {
    ASSERT_EQ(stranger_.connect(b_->name(), 1), STM_REFUSED);
    EXPECT_TRUE(log.says("who asks to connect is rejected (" + each + " so far): "));
    ASSERT_EQ(stranger_.connect(b_->name()), STM_CONNECTED);
    stranger_.send(99, head(1, 0, 0, 1), kHead);
    stranger_.ended();
    EXPECT_TRUE(log.says("a peer is broken off (" + each + " so far): "));
  }
}

// What it has done meanwhile is no other offence.
TEST_F(RdmPeer, WhoReadsWhatIsNotServedIsBrokenOffOnce) {
  const Log log;
  ASSERT_EQ(stranger_.connect(b_->name()), STM_CONNECTED);
  // They come before the endpoint looks.
  const auto goes_on = std::exchange(stranger_.progress, [] {});
  for (int i = 0; i < 16; ++i) stranger_.read(10);
  stranger_.look(10);
  stranger_.progress = goes_on;
  EXPECT_EQ(stranger_.ended(), -ECONNRESET);
  stranger_.look(10);
  EXPECT_TRUE(log.says("a peer is broken off (1 so far): "));
  EXPECT_FALSE(log.says("a peer is broken off (2 so far): "));
}

TEST_F(RdmPeer, WhoReadsWithoutPullingIsBrokenOffOnce) {
  const Log log;
  const auto to = a_->insert(stranger_.listen());
  ASSERT_EQ(fi_tsend(a_->ep.get(), "x", 1, nullptr, to, 1, nullptr), 0);
  stranger_.accept();
  EXPECT_EQ(stranger_.next().kind, STM_RECEIVE);
  for (int i = 0; i < 80; ++i) stranger_.read(1);
  EXPECT_EQ(stranger_.ended(), -ECONNRESET);
  stranger_.look(10);
  EXPECT_TRUE(log.says("a peer is broken off (1 so far): "));
  EXPECT_FALSE(log.says("a peer is broken off (2 so far): "));
}

// Each read would be looked for among all of them.
TEST_F(RdmPeer, WhoPullsWithoutReadingIsBrokenOff) {
  constexpr std::uint32_t kMany = 65;
  const auto to = a_->insert(stranger_.listen());
  const std::vector<char> bytes(100'000);
  for (std::uint32_t i = 0; i < kMany; ++i)
    ASSERT_EQ(fi_tsend(a_->ep.get(), bytes.data(), bytes.size(), nullptr, to, 1, nullptr), 0);
  stranger_.accept();
  for (std::uint32_t i = 1; i <= kMany; ++i) {
    while (stranger_.outstanding() != 0) stranger_.look(1);
    stranger_.send(kPull, head(0, bytes.size(), i, 0), kHead);
  }
  EXPECT_EQ(stranger_.ended(), -ECONNRESET);
  a_->ep.reset();
}

// It keeps the receives that have matched, and no other peer waits.
TEST_F(RdmPeer, WhoAnnouncesOrBeginsAndSendsNoMoreIsTold) {
  std::vector<char> got(100'000), other(5);
  Stranger begins;
  begins.progress = stranger_.progress;
  ASSERT_EQ(begins.connect(b_->name()), STM_CONNECTED);
  ASSERT_EQ(stranger_.connect(b_->name()), STM_CONNECTED);
  stranger_.post();
  ASSERT_EQ(fi_trecv(b_->ep.get(), got.data(), got.size(), nullptr, FI_ADDR_UNSPEC, 7, 0, nullptr),
            0);
  const Log log;
  stranger_.send(kAnnounced, head(7, got.size(), 1, 1), kHead + kTail);
  begins.send(kFirst, head(8, kPart + 10, 0, 1), kHead + kPart);
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(kPatience);
  while (!log.says("a peer is late (2 so far)")) {
    ASSERT_LT(std::chrono::steady_clock::now(), deadline);
    stranger_.progress();
  }
  send_early("still", 1);
  EXPECT_EQ(receive(other, 1).len, 5U);
}

// Of what is under way, a close waits for what was injected alone: no 2 s for a peer without a
// receive.
TEST_F(RdmPeer, WhoReceivesNothingDelaysNoClose) {
  const auto to = a_->insert(stranger_.listen());
  ASSERT_EQ(fi_tsend(a_->ep.get(), "x", 1, nullptr, to, 1, nullptr), 0);
  stranger_.accept();
  EXPECT_EQ(stranger_.next().kind, STM_RECEIVE);
  const std::vector<char> bytes(kPart);
  const iovec whole{const_cast<char*>(bytes.data()), bytes.size()};
  fi_msg_tagged message{};
  message.msg_iov = &whole;
  message.iov_count = 1;
  message.addr = to;
  ASSERT_EQ(fi_tinject(a_->ep.get(), "x", 1, to, 1), 0);
  constexpr int kMoreThanTheRingHolds = 5;
  for (int i = 0; i < kMoreThanTheRingHolds; ++i)
    ASSERT_EQ(fi_tsendmsg(a_->ep.get(), &message, FI_TRANSMIT_COMPLETE), 0);
  const Log log;
  a_->ep.reset();
  EXPECT_FALSE(log.says("closed before all that it has injected arrived"));
}

TEST_F(RdmPeer, ClosingWithEverythingUnderWayIsClean) {
  std::vector<char> bytes(100'000), got(100'000);
  for (std::uint64_t i = 0; i < 40; ++i)
    ASSERT_EQ(fi_tsend(a_->ep.get(), bytes.data(), i % 2 != 0 ? 10 : bytes.size(), nullptr, to_b_,
                       i, nullptr),
              0);
  await_message(20);
  for (std::uint64_t i = 0; i < 10; ++i)
    ASSERT_EQ(
        fi_trecv(b_->ep.get(), got.data(), got.size(), nullptr, FI_ADDR_UNSPEC, i, 0, nullptr), 0);
  b_->ep.reset();
  a_->ep.reset();
}

}  // namespace
}  // namespace stp::test::rdm_peer_test
