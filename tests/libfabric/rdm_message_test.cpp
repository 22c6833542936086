// SPDX-License-Identifier: BSD-3-Clause
// Messages between endpoints of FI_EP_RDM, with tags and without.
#include <algorithm>
#include <chrono>

#include "tests/libfabric/rdm_fixture.h"

namespace stp::test::rdm_message_test {
namespace {

constexpr std::size_t kSizes[] = {0,      1,      8,      4048,   4049,     17'384,
                                  17'385, 34'769, 69'536, 69'537, 1'000'003};

class RdmMessage : public RdmTest {};

TEST_F(RdmMessage, TaggedMessagesOfEachSizeArriveWhetherAwaitedOrNot) {
  for (const bool awaited : {true, false})
    for (const auto size : kSizes) {
      const auto sent = pattern(size);
      std::vector<char> got(size);
      const auto post = [&] {
        ASSERT_EQ(fi_trecv(b_->ep.get(), got.data(), size, nullptr, FI_ADDR_UNSPEC, 7, 0, &got), 0);
      };
      if (awaited) post();
      ASSERT_EQ(fi_tsend(a_->ep.get(), sent.data(), size, nullptr, to_b_, 7, &got), 0);
      if (!awaited) {
        await_message(7);
        post();
      }
      const auto told = b_->completed(b_->rx.get());
      EXPECT_EQ(told.op_context, &got);
      EXPECT_EQ(told.flags, FI_RECV | FI_TAGGED);
      EXPECT_EQ(told.len, size);
      EXPECT_EQ(told.tag, 7U);
      EXPECT_EQ(told.source, to_a_);
      EXPECT_EQ(got, sent);
      const auto done = a_->completed(a_->tx.get());
      EXPECT_EQ(done.op_context, &got);
      EXPECT_EQ(done.flags, FI_SEND | FI_TAGGED);
    }
}

// A program that has injected a message may make no more calls for long: a rank that computes after
// a barrier, say.
TEST_F(RdmMessage, WhatIsInjectedBeforeTheConnectionIsUpArrivesWithoutFurtherCalls) {
  b_->others.clear();
  std::vector<char> got(8);
  const auto sent = pattern(8);
  ASSERT_EQ(fi_trecv(b_->ep.get(), got.data(), 8, nullptr, FI_ADDR_UNSPEC, 7, 0, &got), 0);
  ASSERT_EQ(fi_tinject(a_->ep.get(), sent.data(), 8, to_b_, 7), 0);
  EXPECT_EQ(b_->completed(b_->rx.get()).op_context, &got);
  EXPECT_EQ(got, sent);
}

// Short messages that find no room wait for others to leave with, while the program goes on.
TEST_F(RdmMessage, ManyThatAreInjectedArriveWithoutFurtherCalls) {
  constexpr std::size_t kMany = 100;
  send_early("first", 6);
  std::vector<char> got(8);
  receive(got, 6);
  b_->others.clear();
  for (std::size_t i = 0; i < kMany; ++i)
    ASSERT_EQ(fi_tinject(a_->ep.get(), pattern(8).data(), 8, to_b_, 7), 0);
  for (std::size_t i = 0; i < kMany; ++i) ASSERT_EQ(receive(got, 7).len, 8U) << i;
}

// Those of some length are put into a lane, as long as it has room: in whatever order receives are
// posted, however often it is used up.
TEST_F(RdmMessage, ManyMessagesOfAllLengthsKeepTheirOrderAndTheirBytes) {
  constexpr std::size_t kAtOnce = 48, kLongest = 69'600;
  unsigned seed = 0;
  for (int turn = 0; turn < 20; ++turn) {
    std::vector<std::vector<char>> sent, got(kAtOnce, std::vector<char>(kLongest));
    for (std::size_t i = 0; i < kAtOnce; ++i) {
      seed = seed * 1'103'515'245 + 12'345;
      sent.push_back(pattern(4000 + seed / 65'536 % 3 * 4096 + seed / 65'536 % 57'000, seed));
    }
    const auto post = [&] {
      for (auto& each : got)
        ASSERT_EQ(fi_trecv(b_->ep.get(), each.data(), kLongest, nullptr, to_a_, 7, 0, &each), 0);
    };
    if (turn % 2 == 0) post();
    for (auto& each : sent)
      ASSERT_EQ(fi_tsend(a_->ep.get(), each.data(), each.size(), nullptr, to_b_, 7, &each), 0);
    if (turn % 2 != 0) {
      await_message(7);
      post();
    }
    for (std::size_t i = 0; i < kAtOnce; ++i) {
      const auto length = b_->completed(b_->rx.get()).len;
      ASSERT_LE(length, kLongest);
      a_->completed(a_->tx.get());
    }
    for (std::size_t i = 0; i < kAtOnce; ++i) {
      got[i].resize(sent[i].size());
      ASSERT_TRUE(got[i] == sent[i]) << "turn " << turn << ", message " << i;
    }
  }
}

// A message that has been copied is complete: its bytes are the program's again. It asks for more
// by FI_TRANSMIT_COMPLETE.
TEST_F(RdmMessage, ACopiedMessageIsCompleteAtOnceUnlessMoreIsAskedFor) {
  std::vector<char> sent = pattern(10'000), got(sent.size());
  send_early("connects", 1);
  const auto is_complete = [&](std::uint64_t flags) {
    const iovec part{sent.data(), sent.size()};
    fi_msg_tagged message{};
    message.msg_iov = &part;
    message.iov_count = 1;
    message.addr = to_b_;
    message.tag = 7;
    EXPECT_EQ(fi_tsendmsg(a_->ep.get(), &message, flags), 0);
    fi_cq_tagged_entry told{};
    const auto result = fi_cq_read(a_->tx.get(), &told, 1);
    std::fill(sent.begin(), sent.end(), 'x');
    return result == 1;
  };
  const auto before = sent;
  EXPECT_TRUE(is_complete(FI_COMPLETION));
  EXPECT_EQ(receive(got, 7).len, got.size());
  EXPECT_EQ(got, before);
  // The acknowledgement can come between the two calls, but not each time.
  bool has_waited = false;
  for (int i = 0; i < 1'000 && !has_waited; ++i) {
    has_waited = !is_complete(FI_COMPLETION | FI_TRANSMIT_COMPLETE);
    EXPECT_EQ(receive(got, 7).len, got.size());
    if (has_waited) a_->completed(a_->tx.get());
  }
  EXPECT_TRUE(has_waited);
}

TEST_F(RdmMessage, MessagesWithoutTagsGoToReceivesWithoutTags) {
  for (const auto size : kSizes) {
    const auto sent = pattern(size);
    std::vector<char> got(size), other(size);
    ASSERT_EQ(fi_trecv(b_->ep.get(), other.data(), size, nullptr, FI_ADDR_UNSPEC, 0, ~0ULL, &other),
              0);
    ASSERT_EQ(fi_recv(b_->ep.get(), got.data(), size, nullptr, FI_ADDR_UNSPEC, &got), 0);
    ASSERT_EQ(fi_send(a_->ep.get(), sent.data(), size, nullptr, to_b_, nullptr), 0);
    const auto told = b_->completed(b_->rx.get());
    EXPECT_EQ(told.op_context, &got);
    EXPECT_EQ(told.flags, FI_RECV | FI_MSG);
    EXPECT_EQ(got, sent);
    EXPECT_EQ(a_->completed(a_->tx.get()).flags, FI_SEND | FI_MSG);
    ASSERT_EQ(fi_cancel(&b_->ep->fid, &other), 0);
    EXPECT_EQ(b_->failed(b_->rx.get()).err, FI_ECANCELED);
  }
}

TEST_F(RdmMessage, AnEndpointSendsToItself) {
  const auto self = a_->insert(a_->name());
  for (const auto size : kSizes) {
    const auto sent = pattern(size);
    std::vector<char> got(size);
    ASSERT_EQ(fi_tsend(a_->ep.get(), sent.data(), size, nullptr, self, 3, nullptr), 0);
    ASSERT_EQ(fi_trecv(a_->ep.get(), got.data(), size, nullptr, self, 3, 0, nullptr), 0);
    EXPECT_EQ(a_->completed(a_->rx.get()).len, size);
    a_->completed(a_->tx.get());
    EXPECT_EQ(got, sent);
  }
}

TEST_F(RdmMessage, BothBeginAtOnce) {
  constexpr int kMany = 200;
  std::vector<int> from_a(kMany, -1), from_b(kMany, -1);
  for (int i = 0; i < kMany; ++i) {
    const auto at = static_cast<std::size_t>(i);
    ASSERT_EQ(fi_trecv(a_->ep.get(), &from_b[at], sizeof i, nullptr, to_b_, 1, 0, nullptr), 0);
    ASSERT_EQ(fi_trecv(b_->ep.get(), &from_a[at], sizeof i, nullptr, to_a_, 1, 0, nullptr), 0);
    ASSERT_EQ(fi_tinject(a_->ep.get(), &i, sizeof i, to_b_, 1), 0);
    ASSERT_EQ(fi_tinject(b_->ep.get(), &i, sizeof i, to_a_, 1), 0);
  }
  for (int i = 0; i < kMany; ++i) {
    a_->completed(a_->rx.get());
    b_->completed(b_->rx.get());
  }
  for (int i = 0; i < kMany; ++i) {  // in the order of sending
    EXPECT_EQ(from_a[static_cast<std::size_t>(i)], i);
    EXPECT_EQ(from_b[static_cast<std::size_t>(i)], i);
  }
}

// More than all buffers hold, and than the peer's ring: the receiver wants the last one first.
TEST_F(RdmMessage, EarlyMessagesDoNotHinderALaterOneThatIsAwaited) {
  constexpr std::uint64_t kMany = 300;
  const auto sent = pattern(6000);
  for (std::uint64_t i = 0; i < kMany; ++i)
    ASSERT_EQ(fi_tsend(a_->ep.get(), sent.data(), sent.size(), nullptr, to_b_, i, nullptr), 0);
  for (auto i = kMany; i-- != 0;) {
    std::vector<char> got(sent.size());
    EXPECT_EQ(receive(got, i).tag, i);
    EXPECT_EQ(got, sent);
  }
  for (std::uint64_t i = 0; i < kMany; ++i) a_->completed(a_->tx.get());
}

// Those beyond FI_STP_RDM_KEPT wait in the buffers of the connection, then at the sender.
TEST_F(RdmMessage, APeerWhoSendsTooMuchEarlyWaits) {
  ASSERT_EQ(::setenv("FI_STP_RDM_KEPT", "10000", 1), 0);
  make();
  ::unsetenv("FI_STP_RDM_KEPT");
  constexpr std::uint64_t kMany = 100;
  // The longer ones go in parts, and the last of them are announced; the longest all are.
  for (const std::size_t size : {3'000, 40'000, 60'000, 100'000}) {
    const auto sent = pattern(size);
    for (std::uint64_t i = 0; i < kMany; ++i)
      ASSERT_EQ(fi_tsend(a_->ep.get(), sent.data(), size, nullptr, to_b_, i, nullptr), 0);
    await_message(0);
    for (std::uint64_t i = 0; i < kMany; ++i) {
      std::vector<char> got(size);
      ASSERT_EQ(receive(got, 0, ~0ULL).tag, i);
      EXPECT_EQ(got, sent);
    }
    for (std::uint64_t i = 0; i < kMany; ++i) a_->completed(a_->tx.get());
  }
}

TEST_F(RdmMessage, ImmediateDataComesAlong) {
  constexpr std::uint64_t kData = 0x0123'4567'89ab'cdef;
  for (const auto size : kSizes) {
    auto sent = pattern(size);
    std::vector<char> got(size);
    ASSERT_EQ(fi_tsenddata(a_->ep.get(), sent.data(), size, nullptr, kData, to_b_, 9, nullptr), 0);
    const auto told = receive(got, 9);
    EXPECT_EQ(told.flags, FI_RECV | FI_TAGGED | FI_REMOTE_CQ_DATA);
    EXPECT_EQ(told.data, kData);
    EXPECT_EQ(got, sent);
    a_->completed(a_->tx.get());
  }
  char got[4]{};
  ASSERT_EQ(fi_injectdata(a_->ep.get(), "data", 4, kData, to_b_), 0);
  ASSERT_EQ(fi_recv(b_->ep.get(), got, sizeof got, nullptr, FI_ADDR_UNSPEC, nullptr), 0);
  EXPECT_EQ(b_->completed(b_->rx.get()).data, kData);
}

TEST_F(RdmMessage, SegmentsAreGatheredAndScattered) {
  for (const std::size_t part : {100, 15'000, 50'000}) {
    auto sent = pattern(3 * part);
    std::vector<char> got(3 * part);
    const std::vector<iovec> from{{sent.data(), part}, {&sent[part], 2 * part}};
    const std::vector<iovec> to{{got.data(), 2 * part}, {&got[2 * part], part}};
    ASSERT_EQ(fi_trecvv(b_->ep.get(), to.data(), nullptr, 2, FI_ADDR_UNSPEC, 1, 0, nullptr), 0);
    ASSERT_EQ(fi_tsendv(a_->ep.get(), from.data(), nullptr, 2, to_b_, 1, nullptr), 0);
    EXPECT_EQ(b_->completed(b_->rx.get()).len, 3 * part);
    EXPECT_EQ(got, sent);
    a_->completed(a_->tx.get());
  }
}

TEST_F(RdmMessage, BytesThatAreNowhereAreRefused) {
  EXPECT_EQ(fi_tsend(a_->ep.get(), nullptr, 8, nullptr, to_b_, 1, nullptr), -FI_EINVAL);
  EXPECT_EQ(fi_tinject(a_->ep.get(), nullptr, 8, to_b_, 1), -FI_EINVAL);
  EXPECT_EQ(fi_trecv(b_->ep.get(), nullptr, 8, nullptr, FI_ADDR_UNSPEC, 1, 0, nullptr), -FI_EINVAL);
}

TEST_F(RdmMessage, AMessageTooLongIsCut) {
  for (const std::size_t size : {100, 60'000, 100'000})
    for (const std::size_t room : {std::size_t{0}, size - 1}) {
      const auto sent = pattern(size);
      std::vector<char> got(size, '.');
      ASSERT_EQ(fi_trecv(b_->ep.get(), got.data(), room, nullptr, FI_ADDR_UNSPEC, 1, 0, &got), 0);
      ASSERT_EQ(fi_tsend(a_->ep.get(), sent.data(), size, nullptr, to_b_, 1, nullptr), 0);
      const auto error = b_->failed(b_->rx.get());
      EXPECT_EQ(error.err, FI_ETRUNC);
      EXPECT_EQ(error.op_context, &got);
      EXPECT_EQ(error.len, room);
      EXPECT_EQ(error.olen, size - room);
      EXPECT_EQ(error.tag, 1U);
      EXPECT_TRUE(
          std::equal(got.begin(), got.begin() + static_cast<std::ptrdiff_t>(room), sent.begin()));
      EXPECT_EQ(got[room], '.');
      a_->completed(a_->tx.get());
    }
}

TEST_F(RdmMessage, DeliveryIsToldWhenTheReceiverHasTheMessage) {
  for (const std::size_t size : {0, 10, 4'000, 30'000, 100'000}) {
    auto sent = pattern(size);
    std::vector<char> got(size);
    const iovec iov{sent.data(), size};
    fi_msg_tagged message{};
    message.msg_iov = &iov;
    message.iov_count = 1;
    message.addr = to_b_;
    message.tag = 5;
    // Those of 4,000 bytes are copied, too.
    const auto inject = size == 4'000 ? FI_INJECT : 0;
    ASSERT_EQ(fi_tsendmsg(a_->ep.get(), &message, FI_COMPLETION | FI_DELIVERY_COMPLETE | inject),
              0);
    if (inject != 0) std::fill(sent.begin(), sent.end(), 'x');
    await_message(5);
    a_->expect_nothing(a_->tx.get());
    EXPECT_EQ(receive(got, 5).len, size);
    EXPECT_EQ(got, pattern(size));
    a_->completed(a_->tx.get());
  }
}

// Reads of one length take turns, since the sender tells them apart by it.
TEST_F(RdmMessage, LongMessagesOfOneLengthAreNotMixedUp) {
  constexpr std::size_t kMany = 20, kSize = 100'000;
  std::vector<std::vector<char>> sent, got(kMany, std::vector<char>(kSize));
  for (unsigned i = 0; i < kMany; ++i) sent.push_back(pattern(kSize, i));
  for (std::size_t i = 0; i < kMany; ++i)
    ASSERT_EQ(fi_tsend(a_->ep.get(), sent[i].data(), kSize, nullptr, to_b_, i, nullptr), 0);
  for (auto i = kMany; i-- != 0;)
    ASSERT_EQ(fi_trecv(b_->ep.get(), got[i].data(), kSize, nullptr, FI_ADDR_UNSPEC, i, 0, nullptr),
              0);
  for (std::size_t i = 0; i < kMany; ++i) {
    b_->completed(b_->rx.get());
    a_->completed(a_->tx.get());
  }
  EXPECT_EQ(got, sent);
}

TEST_F(RdmMessage, OnlyWhatAsksForItIsTold) {
  make(FI_SELECTIVE_COMPLETION);
  char room[2]{};
  for (auto& byte : room)
    ASSERT_EQ(fi_recv(b_->ep.get(), &byte, 1, nullptr, FI_ADDR_UNSPEC, nullptr), 0);
  ASSERT_EQ(fi_send(a_->ep.get(), "s", 1, nullptr, to_b_, nullptr), 0);
  char byte = 't';
  const iovec iov{&byte, 1};
  fi_msg message{};
  message.msg_iov = &iov;
  message.iov_count = 1;
  message.addr = to_b_;
  message.context = room;
  ASSERT_EQ(fi_sendmsg(a_->ep.get(), &message, FI_COMPLETION), 0);
  EXPECT_EQ(a_->completed(a_->tx.get()).op_context, room);
  a_->expect_nothing(a_->tx.get());
  b_->ep.reset();  // the receives end before their memory does
}

TEST_F(RdmMessage, InjectedBytesAreFreeAtOnceAndTellNothing) {
  std::vector<char> got(5);
  std::string sent = "hello";
  ASSERT_EQ(fi_tinject(a_->ep.get(), sent.data(), sent.size(), to_b_, 1), 0);
  sent = "xxxxx";
  receive(got, 1);
  EXPECT_EQ(std::string(got.data(), 5), "hello");
  a_->expect_nothing(a_->tx.get());
  const auto longer = pattern(4049);
  EXPECT_EQ(fi_tinject(a_->ep.get(), longer.data(), longer.size(), to_b_, 1), -FI_EMSGSIZE);
}

// Of many threads of Open MPI that send, one alone reads the queue. The others call again.
TEST_F(RdmMessage, WhoFindsNoPlaceMakesProgress) {
  make(0, [](fi_info& info) { info.tx_attr->size = 2; });
  const auto send = [&] { return fi_tinject(a_->ep.get(), "x", 1, to_b_, 1); };
  // They wait for the connection.
  ASSERT_EQ(send(), 0);
  ASSERT_EQ(send(), 0);
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  ssize_t sent = -FI_EAGAIN;
  while (sent == -FI_EAGAIN && std::chrono::steady_clock::now() < until) {
    fi_cq_read(b_->rx.get(), nullptr, 0);
    sent = send();
  }
  EXPECT_EQ(sent, 0);
}

// Far more than have a place, or than are kept: they go together, and all kinds keep their order.
TEST_F(RdmMessage, ShortMessagesThatFindNoRoomLeaveTogether) {
  ASSERT_EQ(::setenv("FI_STP_RDM_KEPT", "100000", 1), 0);
  make();
  ::unsetenv("FI_STP_RDM_KEPT");
  send_early("x", 0);
  std::vector<char> got(20'000);
  receive(got, 0);
  const auto length_of = [](std::uint64_t i) -> std::size_t {
    return i % 1'000 == 999 ? 20'000 : i * 7 % 300;
  };
  constexpr std::uint64_t kMany = 5'000;
  for (std::uint64_t i = 0; i < kMany; ++i) {
    const auto sent = pattern(length_of(i), static_cast<unsigned>(i));
    if (i % 2 == 0) {
      ASSERT_EQ(fi_tinject(a_->ep.get(), sent.data(), sent.size(), to_b_, i), 0);
    } else {
      ASSERT_EQ(fi_tsend(a_->ep.get(), sent.data(), sent.size(), nullptr, to_b_, i, nullptr), 0);
    }
  }
  for (std::uint64_t i = 0; i < kMany; ++i) {
    const auto told = receive(got, 0, ~0ULL);
    ASSERT_EQ(told.tag, i);
    ASSERT_EQ(told.len, length_of(i));
    const auto sent = pattern(told.len, static_cast<unsigned>(i));
    ASSERT_TRUE(std::equal(sent.begin(), sent.end(), got.begin()));
  }
  for (std::uint64_t i = 0; i < kMany / 2; ++i) a_->completed(a_->tx.get());
  // What waited is told to those that count, too: nothing is under way.
  EXPECT_EQ(fi_close(&a_->ep.release()->fid), 0);
}

// Else one that nobody awaits would hold up those that came with it.
TEST_F(RdmMessage, WhereLittleMayBeKeptMessagesLeaveAlone) {
  ASSERT_EQ(::setenv("FI_STP_RDM_KEPT", "0", 1), 0);
  make();
  ::unsetenv("FI_STP_RDM_KEPT");
  send_early("x", 0);
  std::vector<char> got(1);
  receive(got, 0);
  constexpr int kMany = 26, kFirst = 22;
  for (int i = 0; i < kMany; ++i) send_early("x", 7);
  send_early("y", 8);
  for (int i = 0; i < kFirst; ++i) receive(got, 7);
  receive(got, 8);
  for (int i = kFirst; i < kMany; ++i) receive(got, 7);
}

TEST_F(RdmMessage, AReceiveForOneSenderTakesNoMessageOfAnother) {
  RdmNode c(info_);
  a_->others.push_back(&c);
  b_->others.push_back(&c);
  c.others = {a_.get(), b_.get()};
  const auto c_to_b = c.insert(b_->name());
  const auto to_c = b_->insert(c.name());
  std::vector<char> from_a(1), from_c(1);
  ASSERT_EQ(fi_trecv(b_->ep.get(), from_a.data(), 1, nullptr, to_a_, 1, 0, &from_a), 0);
  ASSERT_EQ(fi_trecv(b_->ep.get(), from_c.data(), 1, nullptr, to_c, 1, 0, &from_c), 0);
  ASSERT_EQ(fi_tinject(c.ep.get(), "c", 1, c_to_b, 1), 0);
  const auto told = b_->completed(b_->rx.get());
  EXPECT_EQ(told.op_context, &from_c);
  EXPECT_EQ(told.source, to_c);
  ASSERT_EQ(fi_tinject(a_->ep.get(), "a", 1, to_b_, 1), 0);
  EXPECT_EQ(b_->completed(b_->rx.get()).op_context, &from_a);
  EXPECT_EQ(from_a[0], 'a');
  EXPECT_EQ(from_c[0], 'c');
}

TEST_F(RdmMessage, ASenderThatIsNamedUnaskedIsIgnored) {
  make(0, [](fi_info& info) { info.caps = FI_TAGGED | FI_MSG; });
  std::vector<char> got(1);
  ASSERT_EQ(fi_recv(b_->ep.get(), got.data(), 1, nullptr, 1000, nullptr), 0);
  ASSERT_EQ(fi_inject(a_->ep.get(), "x", 1, to_b_), 0);
  EXPECT_EQ(b_->completed(b_->rx.get()).len, 1U);
}

TEST_F(RdmMessage, CompletionsWaitInOrderHoweverManyThereAre) {
  std::vector<char> bytes(1000);
  std::size_t next = 0, end = 0;
  const auto add = [&](std::size_t count) {
    for (const auto first = end; end < first + count; ++end) {
      ASSERT_EQ(fi_trecv(b_->ep.get(), &bytes[end], 1, nullptr, FI_ADDR_UNSPEC, 1, 0, &bytes[end]),
                0);
      ASSERT_EQ(fi_cancel(&b_->ep->fid, &bytes[end]), 0);
    }
  };
  const auto expect = [&](std::size_t count) {
    for (const auto first = next; next < first + count; ++next)
      ASSERT_EQ(b_->failed(b_->rx.get()).op_context, &bytes[next]);
  };
  // The places are used again, and become more while some in the middle are free.
  add(50);
  expect(30);
  add(40);
  expect(10);
  add(300);
  expect(350);
  b_->expect_nothing(b_->rx.get());
}

TEST_F(RdmMessage, CountersCount) {
  fi_cntr_attr attr{};
  attr.events = FI_CNTR_EVENTS_COMP;
  attr.wait_obj = FI_WAIT_UNSPEC;
  fid_cntr* made = nullptr;
  ASSERT_EQ(fi_cntr_open(a_->domain.get(), &attr, &made, nullptr), 0);
  const Fid<fid_cntr> sent(made);
  fid_ep* ep = nullptr;
  ASSERT_EQ(fi_endpoint(a_->domain.get(), info_.get(), &ep, nullptr), 0);
  const Fid<fid_ep> closes(ep);
  ASSERT_EQ(fi_ep_bind(ep, &a_->av->fid, 0), 0);
  ASSERT_EQ(fi_ep_bind(ep, &made->fid, FI_SEND), 0);
  ASSERT_EQ(fi_enable(ep), 0);  // a counter will do
  std::vector<char> got(1);
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(fi_tsend(ep, "x", 1, nullptr, to_b_, 1, nullptr), 0);
    receive(got, 1);
  }
  EXPECT_EQ(fi_cntr_wait(made, 3, kPatience), 0);
  EXPECT_EQ(fi_cntr_read(made), 3U);
}

}  // namespace
}  // namespace stp::test::rdm_message_test
