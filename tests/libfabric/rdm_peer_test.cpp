// SPDX-License-Identifier: BSD-3-Clause
// Peers that end, are not there, or do not keep to the protocol of endpoints of FI_EP_RDM.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "tests/host/test_port.h"
#include "tests/libfabric/rdm_stranger.h"
#include "tests/libst/libst_fixture.h"

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

// It announces, and ends before it is read: the receive fails, those that wait are none any more.
TEST_F(RdmPeer, AnAnnouncedMessageOfAPeerThatHasGoneFails) {
  std::vector<char> got(100'000);
  {
    Stranger other;
    other.progress = stranger_.progress;
    ASSERT_EQ(other.connect(b_->name()), STM_CONNECTED);
    other.send(kAnnounced, head(8, 100, 1, 1), kHead + kTail);
    other.send(kAnnounced, head(9, 100, 2, 1), kHead + kTail);
    await_message(9);
    ASSERT_EQ(fi_trecv(b_->ep.get(), got.data(), got.size(), nullptr, FI_ADDR_UNSPEC, 8, 0, &got),
              0);
  }
  EXPECT_EQ(b_->failed(b_->rx.get()).op_context, &got);
  fi_msg_tagged message{};
  message.addr = FI_ADDR_UNSPEC;
  message.tag = 9;
  ASSERT_EQ(fi_trecvmsg(b_->ep.get(), &message, FI_PEEK), 0);
  EXPECT_EQ(b_->failed(b_->rx.get()).err, FI_ENOMSG);
}

// The one that it has announced cannot be read any more, which is no offence.
TEST_F(RdmPeer, MessagesThatAPeerLeftBehindAreReceivedButForThoseThatItAnnounced) {
  std::vector<char> announced(100), short_one(100);
  for (auto* const each : {&announced, &short_one})
    ASSERT_EQ(
        fi_trecv(b_->ep.get(), each->data(), each->size(), nullptr, FI_ADDR_UNSPEC, 8, 0, each), 0);
  ASSERT_EQ(stranger_.connect(b_->name(), kMagic, "lanes"), STM_CONNECTED);
  stranger_.borrow_lane();  // so what follows needs no answer of its receiver
  stranger_.progress = {};
  stranger_.send(kAnnounced, head(8, 100, 1, 1), kHead + kTail);
  stranger_.send(kEager, head(8, 10, 0, 1), kHead + 10);
  stranger_.leave();
  EXPECT_EQ(b_->failed(b_->rx.get()).op_context, &announced);
  EXPECT_EQ(b_->completed(b_->rx.get()).op_context, &short_one);
}

// It lies in a buffer of the connection, because none may be kept. Its bytes never came.
TEST_F(RdmPeer, AnAnnouncedMessageThatIsClaimedEndsWithItsPeer) {
  ASSERT_EQ(::setenv("FI_STP_RDM_KEPT", "0", 1), 0);
  make();
  ::unsetenv("FI_STP_RDM_KEPT");
  fi_msg_tagged message{};
  message.addr = FI_ADDR_UNSPEC;
  message.tag = 8;
  message.context = this;
  {
    Stranger other;
    other.progress = stranger_.progress;
    ASSERT_EQ(other.connect(b_->name()), STM_CONNECTED);
    other.send(kAnnounced, head(8, std::uint64_t{1} << 32, 1, 1), kHead + kTail);
    await_message(8);
    ASSERT_EQ(fi_trecvmsg(b_->ep.get(), &message, FI_PEEK | FI_CLAIM), 0);
    b_->completed(b_->rx.get());
  }
  std::vector<char> got(5);
  send_early("after", 1);
  EXPECT_EQ(receive(got, 1).len, 5U);  // meanwhile the end of the other one is noticed
  ASSERT_EQ(fi_trecvmsg(b_->ep.get(), &message, FI_CLAIM), 0);
  EXPECT_EQ(b_->failed(b_->rx.get()).op_context, this);
}

// Each read has a length of its own, so that its sender tells them apart. The bytes that are not
// read have come with the announcement.
TEST_F(RdmPeer, SixteenMessagesOfOneLengthAreReadAtOnce) {
  constexpr std::size_t kLength = 30'000, kMessages = 20, kReads = 16;
  ASSERT_EQ(stranger_.connect(b_->name()), STM_CONNECTED);
  std::vector<std::vector<char>> got(kMessages, std::vector<char>(kLength));
  for (std::uint32_t i = 0; i < kMessages; ++i) {
    stranger_.post();
    ASSERT_EQ(
        fi_trecv(b_->ep.get(), got[i].data(), kLength, nullptr, FI_ADDR_UNSPEC, 7, 0, nullptr), 0);
    stranger_.send(kAnnounced, head(7, kLength, i + 1, 1), kHead + kTail);
  }
  const auto next_read = [&] {
    for (;;)
      if (const auto event = stranger_.next(); event.kind != STM_RECEIVE) return event;
  };
  std::vector<stm_event_t> reads;
  std::set<std::uint64_t> lengths;
  for (std::size_t i = 0; i < kReads; ++i) {
    reads.push_back(next_read());
    ASSERT_EQ(reads.back().kind, STM_READ_REQUEST);
    lengths.insert(reads.back().length);
  }
  EXPECT_EQ(lengths.size(), kReads);
  EXPECT_EQ(*lengths.rbegin(), kLength);
  EXPECT_EQ(*lengths.begin(), kLength - kTail);
  for (const auto& read : reads) stranger_.serve(read);
  for (std::size_t served = kReads; served < kMessages;)
    if (const auto event = next_read(); event.kind == STM_READ_REQUEST) {
      stranger_.serve(event);
      ++served;
    }
  std::size_t apart = 0;
  for (std::size_t i = 0; i < kMessages; ++i) EXPECT_EQ(b_->completed(b_->rx.get()).len, kLength);
  for (const auto& each : got) {
    const auto from_tail = std::ranges::find(each, 't');
    EXPECT_LE(each.end() - from_tail, static_cast<std::ptrdiff_t>(kTail));
    EXPECT_EQ(std::count(from_tail, each.end(), 't'), each.end() - from_tail);
    EXPECT_EQ(std::count(each.begin(), from_tail, 'r'), from_tail - each.begin());
    if (from_tail != each.end()) ++apart;
  }
  EXPECT_GE(apart, kReads - 1);
}

// Processor time of this thread.
std::chrono::nanoseconds time_now() {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec);
}

// Of one byte each, so that one is read at a time, and the stranger does not serve that.
TEST_F(RdmPeer, AnnouncedMessagesThatWaitForEachOtherCostReceivesLittle) {
  constexpr std::size_t kMany = 3'000, kSome = 200;
  ASSERT_EQ(stranger_.connect(b_->name()), STM_CONNECTED);
  for (std::uint32_t i = 1; i <= kMany; ++i) {
    stranger_.send(kAnnounced, head(7, 1, i, 1), kHead + 1);
    stranger_.look(1);
  }
  stranger_.send(kEager, head(8, 0, 0, 1), kHead);
  await_message(8);
  std::vector<std::chrono::nanoseconds> times;
  char got = 0;
  for (std::size_t i = 0; i < kMany; ++i) {
    const auto began = time_now();
    ASSERT_EQ(fi_trecv(b_->ep.get(), &got, 1, nullptr, FI_ADDR_UNSPEC, 7, 0, nullptr), 0);
    times.push_back(time_now() - began);
  }
  const auto median = [](auto from) {
    std::nth_element(from, from + kSome / 2, from + kSome);
    return from[kSome / 2];
  };
  EXPECT_LT(median(times.end() - kSome), 5 * median(times.begin()));
}

// They have left as much as their connections could keep: nobody else may leave more, until it is
// received.
TEST_F(RdmPeer, ThoseWhoConnectAndGoLeaveABoundedNumberOfBytes) {
  ASSERT_EQ(::setenv("FI_STP_RDM_KEPT", "256", 1), 0);
  make();
  ::unsetenv("FI_STP_RDM_KEPT");
  // So many are as much as 1,024 connections keep, the most of one host, beside what the last one
  // may bring: with each, 256 bytes count beside its own.
  constexpr std::size_t kLength = 8'192, kMessages = 32;
  std::size_t came = 0;
  const auto leave = [&] {
    Stranger other;
    other.progress = stranger_.progress;
    if (other.connect(b_->name()) != STM_CONNECTED) return false;
    for (int i = 0; i < 8; ++i, ++came) {
      other.send(kEager, head(came, kLength, 0, 1), kHead + kLength);
      await_message(came);
    }
    return true;
  };
  while (came < 2 * kMessages && leave()) {
  }
  EXPECT_GE(came, kMessages);
  EXPECT_LE(came, kMessages + 8);  // the end of the last one may not have been noticed
  std::vector<char> got(kLength);
  for (std::size_t i = 0; i < came; ++i) EXPECT_EQ(receive(got, i).len, kLength);
  EXPECT_TRUE(leave());
}

// Each may keep 20,000 bytes, and all together as much as 64.
TEST_F(RdmPeer, ThoseOfOneHostKeepNoMoreThanAFewMay) {
  ASSERT_EQ(::setenv("FI_STP_RDM_KEPT", "20000", 1), 0);
  make();
  ::unsetenv("FI_STP_RDM_KEPT");
  constexpr std::size_t kFull = 64, kEach = 8, kLength = 2'000, kMany = 30;
  for (std::size_t i = 0; i < kFull; ++i) {
    ASSERT_EQ(stranger_.connect(b_->name()), STM_CONNECTED);
    for (std::size_t k = 0; k < kEach; ++k)
      stranger_.send(kEager, head(7, kLength, 0, 1), kHead + kLength);
    ASSERT_TRUE(becomes_true([&] { return stranger_.look(1), stranger_.outstanding() == 0; }));
  }
  ASSERT_EQ(stranger_.connect(b_->name()), STM_CONNECTED);
  for (std::size_t i = 0; i < kMany; ++i) stranger_.send(kEager, head(8, 0, 0, 1), kHead);
  await_message(8);
  stranger_.look(1'000);
  EXPECT_GT(stranger_.outstanding(), kMany / 4);  // 16 have a buffer
  std::vector<char> got(kLength);
  for (std::size_t i = 0; i < kFull * kEach; ++i) EXPECT_EQ(receive(got, 7).len, kLength);
  EXPECT_TRUE(becomes_true([&] {
    await_message(8);  // which makes progress
    return stranger_.look(1), stranger_.outstanding() == 0;
  })) << "there is room again, whoever has made it";
  for (std::size_t i = 0; i < kMany; ++i) EXPECT_EQ(receive(got, 8).len, 0U);
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

// tools/test --long lets so many come as there may be.
int at_most(int most, int otherwise) {
  return std::getenv("STP_LONG") != nullptr ? most : otherwise;
}

// The memory that this process has.
std::size_t resident() {
  std::ifstream statm("/proc/self/statm");
  std::size_t all = 0, pages = 0;
  statm >> all >> pages;
  return pages * 4096;
}

// As many as there may be of one host, and no more. Each sends as many short messages as its ring
// has places, and all arrive whole. A connection costs both of its ends about the same; what
// messages cost has the pages that the other ends send from.
TEST_F(RdmPeer, AThousandPeersThatHaveSentCostLessThan64MiB) {
  constexpr int kMost = 1'024, kEach = 16, kAtOnce = 4;
  constexpr std::size_t kShort = 100, kLong = 17'000;
  const auto before = resident();
  ASSERT_EQ(stranger_.connect_all(b_->name(), kMost), kMost);
  EXPECT_EQ(stranger_.connect(b_->name()), STM_REFUSED);
  const auto connections = (resident() - before) / 2;
  constexpr std::size_t kTogether = 64;
  const auto cost_of_each = [&](std::size_t length) {
    std::vector<char> got(kTogether * kAtOnce * length);
    const auto held = resident();
    for (std::size_t i = 0; i < kMost;) {
      std::ranges::fill(got, 0);
      auto* to = got.data();
      for (const auto end = i + kTogether; i < end; ++i)
        for (int k = 0; k < kAtOnce; ++k, to += length) {
          EXPECT_EQ(fi_trecv(b_->ep.get(), to, length, nullptr, FI_ADDR_UNSPEC, 5, 0, nullptr), 0);
          stranger_.send_on(i, kEager, head(5, length, 0, 1), kHead + length);
        }
      receive_all(kTogether * kAtOnce, length);
      EXPECT_EQ(std::ranges::count(got, 't'), static_cast<std::ptrdiff_t>(got.size()));
    }
    return resident() - held;
  };
  std::size_t short_ones = 0;
  for (int k = 0; k < kEach; k += kAtOnce) short_ones += cost_of_each(kShort);
  std::fprintf(stderr, "%zu KiB for connections, %zu KiB for short messages\n", connections >> 10,
               short_ones >> 10);
  EXPECT_LT(connections >> 20, 32U);
  EXPECT_LT((connections + short_ones) >> 20, 64U);
  if (std::getenv("STP_LONG") == nullptr) return;
  const auto long_ones = cost_of_each(kLong);
  std::fprintf(stderr, "%zu KiB for long messages\n", long_ones >> 10);
  EXPECT_LT(long_ones >> 20, 64U);
}

// Bytes of files in memory that are mapped here: what programs share with a stpd, once each.
std::size_t shared_bytes() {
  std::ifstream maps("/proc/self/maps");
  std::map<std::string, unsigned long long> files;  // by their inode: where the last of it ends
  for (std::string line; std::getline(maps, line);) {
    if (line.find("/memfd:") == std::string::npos) continue;
    std::istringstream words(line);
    std::string range, rights, offset, device, inode;
    words >> range >> rights >> offset >> device >> inode;
    const auto dash = range.find('-');
    const auto length = std::stoull(range.substr(dash + 1), nullptr, 16) -
                        std::stoull(range.substr(0, dash), nullptr, 16);
    auto& end = files[inode];
    end = std::max(end, std::stoull(offset, nullptr, 16) + length);
  }
  std::size_t sum = 0;
  for (const auto& [inode, end] : files) sum += end;
  return sum;
}

struct OnDaemon {
  Daemon daemon_;
  UseLink link_{daemon_.link()};
};

class RdmPeersOfStpd : private OnDaemon, public RdmPeer {};

// What is lent to a stpd is allocated at once, and stays. Counted for both ends of a connection, of
// which the one that sends has 40 KiB: a channel of 28, and a block of 12. So 1,024 peers cost an
// endpoint less than 64 MiB.
TEST_F(RdmPeersOfStpd, AreLentLittleWhileTheySendLittle) {
  const auto most = std::getenv("STP_LONG") != nullptr ? std::size_t{1'024} : std::size_t{56};
  const auto before = shared_bytes();
  const auto each = [&] { return (shared_bytes() - before) / most; };
  ASSERT_EQ(stranger_.connect_all(b_->name(), static_cast<int>(most)), static_cast<int>(most));
  const auto connected = each();
  std::vector<char> got(1'000);
  for (const auto length : {100U, 1'000U})
    for (std::size_t i = 0; i < most; ++i) {
      EXPECT_EQ(
          fi_trecv(b_->ep.get(), got.data(), got.size(), nullptr, FI_ADDR_UNSPEC, 5, 0, nullptr),
          0);
      stranger_.send_on(i, kEager, head(5, length, 0, 1), kHead + length);
      receive_all(1, length);
    }
  std::fprintf(stderr, "%zu bytes while connected, %zu after two messages\n", connected, each());
  EXPECT_LT(each() >> 10, 64U + 40U);
  // The channels of those that have gone are given back, at both ends, though nobody else comes.
  const auto held = each();
  stranger_.end_all();
  EXPECT_TRUE(becomes_true([&] {
    stranger_.look(1);
    return each() + (50 << 10) < held;
  }));
}

// They are rejected, and nothing of them stays, nor do they fill the log.
TEST_F(RdmPeer, StrangersAreRejectedHoweverManyTheyAre) {
  const auto many = at_most(10'000, 20);
  const auto before = resident();
  const Log log;
  for (int i = 0; i < many; ++i) ASSERT_EQ(stranger_.connect(b_->name(), 1), STM_REFUSED);
  EXPECT_TRUE(log.says("rejected (16 so far)"));
  EXPECT_FALSE(log.says("rejected (17 so far)"));
  EXPECT_LT((resident() - before) >> 20, 16U);
  std::vector<char> got(5);
  send_early("still", 1);
  EXPECT_EQ(receive(got, 1).len, 5U);
}

TEST_F(RdmPeer, WhoIsNotThereIsToldAsAnError) {
  auto nobody = b_->name();
  nobody.sin_port = htons(1);
  const Log log;
  const auto to = a_->insert(nobody);
  std::vector<char> bytes(100'000);
  ASSERT_EQ(fi_tsend(a_->ep.get(), "x", 1, nullptr, to, 1, this), 0);
  ASSERT_EQ(fi_tsend(a_->ep.get(), bytes.data(), bytes.size(), nullptr, to, 1, this), 0);
  for (int i = 0; i < 2; ++i) {
    const auto error = a_->failed(a_->tx.get());
    EXPECT_EQ(error.err, FI_ECONNREFUSED);
    EXPECT_EQ(error.op_context, this);
  }
  // The program tells the number alone.
  EXPECT_TRUE(
      log.says("<warn> the connection with 127.0.0.1:1 has failed (1 so far): nobody listens"));
}

// Its address is known, and no frame comes back. The user may wait longer, or as here less long.
TEST(RdmSilentHost, IsGivenUpInTheTimeThatTheUserSays) {
  auto* const port = new TestPort;
  port->neighbour = MacAddr{0x02, 0, 0, 0, 0, 0x77};
  const Daemon daemon{std::unique_ptr<port::Port>(port)};
  const UseLink link(daemon.link());
  ASSERT_EQ(::setenv("FI_STP_CONNECT_TIMEOUT", "200", 1), 0);
  Info info;
  const auto asked = rdm_hints();
  ASSERT_EQ(get_info(nullptr, nullptr, 0, asked, info), 0);
  RdmNode node(info);
  auto silent = node.name();
  silent.sin_addr.s_addr = htonl(0x0a090002);
  const auto to = node.insert(silent);
  const auto begun = std::chrono::steady_clock::now();
  ASSERT_EQ(fi_tsend(node.ep.get(), "x", 1, nullptr, to, 1, &node), 0);
  EXPECT_EQ(node.failed(node.tx.get()).err, FI_ETIMEDOUT);
  EXPECT_LT(std::chrono::steady_clock::now() - begun, std::chrono::milliseconds(4'500));
  ::unsetenv("FI_STP_CONNECT_TIMEOUT");
}

// Each of them takes a second to be given up.
TEST(RdmSilentHost, ManyThatAreNotThereDoNotHoldUpOneThatIs) {
  constexpr std::uint32_t kHosts = 6;
  const Daemon daemon{std::unique_ptr<port::Port>(new TestPort)};
  const UseLink link(daemon.link());
  Info info;
  const auto asked = rdm_hints();
  ASSERT_EQ(get_info(nullptr, nullptr, 0, asked, info), 0);
  RdmNode node(info);
  auto nobody = node.name();
  for (std::uint32_t i = 0; i < kHosts; ++i) {
    nobody.sin_addr.s_addr = htonl(0x0a0900c8 + i);
    ASSERT_EQ(fi_tsend(node.ep.get(), "x", 1, nullptr, node.insert(nobody), 1, &nobody), 0);
  }
  const auto there = node.insert(node.name());
  for (int i = 0; i < 2; ++i) {
    ASSERT_EQ(fi_tsend(node.ep.get(), "x", 1, nullptr, there, 1, &node), 0);
    EXPECT_EQ(node.completed(node.tx.get()).op_context, &node);
    if (i != 0) continue;
    for (std::uint32_t host = 0; host < kHosts; ++host)
      EXPECT_EQ(node.failed(node.tx.get()).err, FI_EHOSTUNREACH);
  }
}

// What was injected has no context. An entry of a completion queue without one would end programs
// that take each context for theirs (Open MPI), so the event queue tells of it, once.
TEST_F(RdmPeer, WhatWasInjectedAndIsLostIsToldByTheEventQueueAlone) {
  fi_eq_attr attr{};
  const auto eq =
      opened<fid_eq>([&](auto** q) { return fi_eq_open(a_->fabric.get(), &attr, q, nullptr); });
  auto ep = opened<fid_ep>(
      [&](auto** e) { return fi_endpoint(a_->domain.get(), info_.get(), e, nullptr); });
  for (auto* const each : {&eq->fid, &a_->av->fid}) ASSERT_EQ(fi_ep_bind(ep.get(), each, 0), 0);
  ASSERT_EQ(fi_ep_bind(ep.get(), &a_->tx->fid, FI_TRANSMIT), 0);
  ASSERT_EQ(fi_enable(ep.get()), 0);
  auto nobody = b_->name();
  nobody.sin_port = htons(1);
  const auto to = a_->insert(nobody);
  for (int i = 0; i < 2; ++i) ASSERT_EQ(fi_tinject(ep.get(), "x", 1, to, 1), 0);
  // What has a context is told by the completion queue, after what was posted before it.
  ASSERT_EQ(fi_tsend(ep.get(), "x", 1, nullptr, to, 1, this), 0);
  const auto failed = a_->failed(a_->tx.get());
  EXPECT_EQ(failed.op_context, this);
  EXPECT_EQ(failed.err, FI_ECONNREFUSED);
  a_->expect_nothing(a_->tx.get());
  fi_eq_err_entry error{};
  EXPECT_EQ(fi_eq_readerr(eq.get(), &error, 0), static_cast<ssize_t>(sizeof error));
  EXPECT_EQ(error.fid, &ep->fid);
  EXPECT_EQ(error.err, FI_ECONNREFUSED);
  EXPECT_EQ(fi_eq_readerr(eq.get(), &error, 0), -FI_EAGAIN);
  ep.reset();
}

// Without an event queue: whoever waits for that peer would wait for ever (Open MPI), and a later
// message would be taken for the lost one.
TEST_F(RdmPeer, WhatWasInjectedAndIsLostEndsReceivesThatNameThePeer) {
  auto nobody = b_->name();
  nobody.sin_port = htons(1);
  const auto to = a_->insert(nobody);
  std::vector<char> named(1), other(1);
  ASSERT_EQ(fi_trecv(a_->ep.get(), named.data(), 1, nullptr, to, 7, 0, &named), 0);
  ASSERT_EQ(fi_trecv(a_->ep.get(), other.data(), 1, nullptr, FI_ADDR_UNSPEC, 8, 0, &other), 0);
  ASSERT_EQ(fi_tinject(a_->ep.get(), "x", 1, to, 1), 0);
  const auto failed = a_->failed(a_->rx.get());
  EXPECT_EQ(failed.op_context, &named);
  EXPECT_EQ(failed.err, FI_ECONNREFUSED);
  a_->expect_nothing(a_->tx.get());
  a_->expect_nothing(a_->rx.get());
  // It has been told.
  EXPECT_EQ(fi_tsend(a_->ep.get(), "x", 1, nullptr, to, 1, this), 0);
  EXPECT_EQ(a_->failed(a_->tx.get()).op_context, this);
  EXPECT_EQ(fi_cancel(&a_->ep->fid, &other), 0);
}

TEST_F(RdmPeer, WhatWasInjectedAndIsLostIsToldByTheNextCallThatNamesThePeer) {
  auto nobody = b_->name();
  nobody.sin_port = htons(1);
  const auto to = a_->insert(nobody);
  char got = 0;
  const auto lose = [&] {
    ASSERT_EQ(fi_tinject(a_->ep.get(), "x", 1, to, 1), 0);
    // The connection fails with both.
    ASSERT_EQ(fi_tsend(a_->ep.get(), "x", 1, nullptr, to, 1, this), 0);
    EXPECT_EQ(a_->failed(a_->tx.get()).op_context, this);
  };
  lose();
  EXPECT_EQ(fi_tinject(a_->ep.get(), "x", 1, to, 1), -FI_ECONNREFUSED);
  lose();
  EXPECT_EQ(fi_trecv(a_->ep.get(), &got, 1, nullptr, to, 7, 0, &got), -FI_ECONNREFUSED);
  lose();
  fi_msg_tagged looked_for{};
  looked_for.addr = to;
  looked_for.tag = 7;
  for (const auto told : {FI_ECONNREFUSED, FI_ENOMSG}) {
    ASSERT_EQ(fi_trecvmsg(a_->ep.get(), &looked_for, FI_PEEK), 0);
    EXPECT_EQ(a_->failed(a_->rx.get()).err, told);
  }
  lose();  // nothing was left to tell
}

// Who has removed an address means another peer when it inserts it again.
TEST_F(RdmPeer, WhatIsLostIsForgottenWithTheAddress) {
  auto nobody = b_->name();
  nobody.sin_port = htons(1);
  auto to = a_->insert(nobody);
  char got = 0;
  const auto lose = [&] {
    ASSERT_EQ(fi_tinject(a_->ep.get(), "x", 1, to, 1), 0);
    ASSERT_EQ(fi_tsend(a_->ep.get(), "x", 1, nullptr, to, 1, this), 0);
    EXPECT_EQ(a_->failed(a_->tx.get()).op_context, this);
  };
  const auto insert_again = [&] {
    ASSERT_EQ(fi_av_remove(a_->av.get(), &to, 1, 0), 0);
    to = a_->insert(nobody);
  };
  lose();
  insert_again();
  ASSERT_EQ(fi_trecv(a_->ep.get(), &got, 1, nullptr, to, 7, 0, &got), 0);
  a_->expect_nothing(a_->rx.get());
  EXPECT_EQ(fi_cancel(&a_->ep->fid, &got), 0);
  EXPECT_EQ(a_->failed(a_->rx.get()).err, FI_ECANCELED);
  lose();
  insert_again();
  lose();  // no call tells of the one before
}

// What a stranger says that its address is.
sockaddr_in claimed() {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(4711);
  return address;
}

TEST_F(RdmPeer, WhoseConnectionFailsEndsReceivesThatNameIt) {
  const auto from = b_->insert(claimed());
  char named = 0, later = 0, other = 0;
  ASSERT_EQ(fi_trecv(b_->ep.get(), &named, 1, nullptr, from, 7, 0, &named), 0);
  ASSERT_EQ(fi_trecv(b_->ep.get(), &other, 1, nullptr, to_a_, 7, 0, &other), 0);
  ASSERT_EQ(stranger_.connect(b_->name()), STM_CONNECTED);
  stranger_.break_off();
  const auto failed = b_->failed(b_->rx.get());
  EXPECT_EQ(failed.op_context, &named);
  EXPECT_EQ(failed.err, FI_ECONNRESET);
  b_->expect_nothing(b_->rx.get());
  EXPECT_EQ(stranger_.ended(), 0);
  // Who receives later hears of it, too, until the peer connects again.
  const auto receive = [&] {
    return fi_trecv(b_->ep.get(), &later, 1, nullptr, from, 7, 0, &later);
  };
  for (int i = 0; i < 2; ++i) EXPECT_EQ(receive(), -FI_ECONNRESET);
  ASSERT_EQ(stranger_.connect(b_->name()), STM_CONNECTED);
  ASSERT_EQ(receive(), 0);
  b_->expect_nothing(b_->rx.get());
  stranger_.break_off();
  EXPECT_EQ(b_->failed(b_->rx.get()).op_context, &later);
  EXPECT_EQ(stranger_.ended(), 0);
  // Or until the program sends to it: that tells, and if the peer is not reached, the next call.
  ASSERT_EQ(fi_tsend(b_->ep.get(), "x", 1, nullptr, from, 1, this), 0);
  ASSERT_EQ(receive(), 0);
  EXPECT_EQ(b_->failed(b_->tx.get()).err, FI_ECONNREFUSED);
  b_->expect_nothing(b_->rx.get());
  EXPECT_EQ(fi_tsend(b_->ep.get(), "x", 1, nullptr, from, 1, this), -FI_ECONNREFUSED);
  EXPECT_EQ(fi_tsend(b_->ep.get(), "x", 1, nullptr, from, 1, this), 0);
  EXPECT_EQ(b_->failed(b_->tx.get()).err, FI_ECONNREFUSED);
  send_early("x", 7);
  EXPECT_EQ(b_->completed(b_->rx.get()).op_context, &other);
}

// It gets what has come before.
TEST_F(RdmPeer, WhoseConnectionHasFailedEndsLaterReceivesOfSeveralMessages) {
  const auto from = b_->insert(claimed());
  char named = 0;
  std::vector<char> several(10'000);
  ASSERT_EQ(fi_trecv(b_->ep.get(), &named, 1, nullptr, from, 7, 0, &named), 0);
  ASSERT_EQ(stranger_.connect(b_->name()), STM_CONNECTED);
  stranger_.send(kEager, head(0, 10, 0, 0), kHead + 10);
  stranger_.send(kEager, head(9, 0, 0, 1), kHead);
  await_message(9);
  stranger_.break_off();
  EXPECT_EQ(b_->failed(b_->rx.get()).op_context, &named);
  const iovec whole{several.data(), several.size()};
  fi_msg message{};
  message.msg_iov = &whole;
  message.iov_count = 1;
  message.addr = from;
  message.context = &several;
  ASSERT_EQ(fi_recvmsg(b_->ep.get(), &message, FI_MULTI_RECV), 0);
  EXPECT_EQ(b_->completed(b_->rx.get()).len, 10U);
  const auto failed = b_->failed(b_->rx.get());
  EXPECT_EQ(failed.op_context, &several);
  EXPECT_EQ(failed.err, FI_ECONNRESET);
  EXPECT_EQ(fi_cancel(&b_->ep->fid, &several), -FI_ENOENT);
}

// The next send connects anew: to an endpoint at the same address, or to nobody.
TEST_F(RdmPeer, APeerThatEndedIsConnectedToAnew) {
  send_early("one", 1);
  std::vector<char> bytes(100'000), got(1);
  ASSERT_EQ(fi_tsend(a_->ep.get(), bytes.data(), bytes.size(), nullptr, to_b_, 1, this), 0);
  const auto address = b_->name();
  b_->ep.reset();
  EXPECT_EQ(a_->failed(a_->tx.get()).op_context, this);
  b_.reset();
  auto* const info = fi_dupinfo(info_.get());
  std::memcpy(info->src_addr, &address, sizeof address);
  b_ = std::make_unique<RdmNode>(Info(info));
  a_->others = {b_.get()};
  b_->others = {a_.get()};
  ASSERT_EQ(b_->name().sin_port, address.sin_port);
  send_early("x", 2);
  receive(got, 2);
  EXPECT_EQ(got[0], 'x');
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
TEST_F(RdmPeer, WhoAnnouncesAndNeverSendsIsTold) {
  std::vector<char> got(100'000), other(5);
  ASSERT_EQ(stranger_.connect(b_->name()), STM_CONNECTED);
  stranger_.post();
  ASSERT_EQ(fi_trecv(b_->ep.get(), got.data(), got.size(), nullptr, FI_ADDR_UNSPEC, 7, 0, nullptr),
            0);
  const Log log;
  stranger_.send(kAnnounced, head(7, got.size(), 1, 1), kHead + kTail);
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(kPatience);
  while (!log.says("a peer is late (1 so far)")) {
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
