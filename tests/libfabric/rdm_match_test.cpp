// SPDX-License-Identifier: BSD-3-Clause
// Receives of FI_EP_RDM that look, claim, discard, are cancelled, or take several messages.
#include <algorithm>
#include <tuple>

#include "tests/libfabric/rdm_fixture.h"
#include "tests/libst/libst_fixture.h"

namespace stp::test::rdm_match_test {
namespace {

class RdmMatch : public RdmTest {
 protected:
  // As fi_trecvmsg into `to`, for that tag.
  ssize_t receive_message(std::uint64_t flags, void* context, std::vector<char>* to = nullptr) {
    const iovec iov{to != nullptr ? to->data() : nullptr, to != nullptr ? to->size() : 0};
    fi_msg_tagged message{};
    message.msg_iov = &iov;
    message.iov_count = to != nullptr ? 1 : 0;
    message.addr = FI_ADDR_UNSPEC;
    message.tag = 4;
    message.context = context;
    return fi_trecvmsg(b_->ep.get(), &message, flags);
  }
  void post_multi(std::vector<char>& buffer, std::size_t least) {
    ASSERT_EQ(fi_setopt(&b_->ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &least, sizeof least),
              0);
    const iovec iov{buffer.data(), buffer.size()};
    fi_msg message{};
    message.msg_iov = &iov;
    message.iov_count = 1;
    message.addr = FI_ADDR_UNSPEC;
    message.context = &buffer;
    ASSERT_EQ(fi_recvmsg(b_->ep.get(), &message, FI_MULTI_RECV), 0);
  }
};

TEST_F(RdmMatch, TagsAreComparedWhereTheyAreNotIgnored) {
  std::vector<char> got(1);
  ASSERT_EQ(fi_trecv(b_->ep.get(), got.data(), 1, nullptr, FI_ADDR_UNSPEC, 0x12, 0, got.data()), 0);
  char other = 0;
  ASSERT_EQ(fi_trecv(b_->ep.get(), &other, 1, nullptr, FI_ADDR_UNSPEC, 0x10, 0x0f, &other), 0);
  send_early("x", 0x1f);
  const auto told = b_->completed(b_->rx.get());
  EXPECT_EQ(told.op_context, &other);
  EXPECT_EQ(told.tag, 0x1fU);
  send_early("y", 0x12);
  EXPECT_EQ(b_->completed(b_->rx.get()).op_context, got.data());
}

// MPI waits for nothing while it is asked to post one more. Nor do messages that the peer reads
// take places of others.
TEST_F(RdmMatch, MoreReceivesAndAnnouncedMessagesMayBePostedThanThereArePlaces) {
  constexpr std::size_t kMany = 1200;
  ASSERT_GT(kMany, std::max(info_->rx_attr->size, info_->tx_attr->size));
  std::vector<char> got(kMany);
  for (std::size_t i = 0; i < kMany; ++i)
    ASSERT_EQ(fi_trecv(b_->ep.get(), &got[i], 1, nullptr, FI_ADDR_UNSPEC, i, 0, &got[i]), 0);
  EXPECT_EQ(b_->ep->ops->rx_size_left(b_->ep.get()), 0);
  const auto sent = pattern(100'000);
  for (std::size_t i = 0; i < kMany; ++i)
    ASSERT_EQ(fi_tsend(a_->ep.get(), sent.data(), sent.size(), nullptr, to_b_, kMany + i, nullptr),
              0);
  send_early("x", kMany - 1);
  EXPECT_EQ(b_->completed(b_->rx.get()).op_context, &got.back());
  std::vector<char> whole(sent.size());
  receive(whole, 2 * kMany - 1);
  EXPECT_EQ(whole, sent);
}

// Else a program that posts without an end would take memory without an end.
TEST_F(RdmMatch, MessagesThatWaitInCopiesTakePlaces) {
  constexpr std::size_t kPlaces = 16;
  auto bytes = pattern(100'000);
  const std::vector<iovec> whole{{bytes.data(), 8}};
  const std::vector<iovec> halves{{bytes.data(), 50'000}, {&bytes[50'000], 50'000}};
  for (const auto& [parts, flags, registered] :
       {std::tuple(whole, std::uint64_t{FI_DELIVERY_COMPLETE}, false),
        std::tuple(halves, 0UL, false),
        std::tuple(whole, std::uint64_t{FI_DELIVERY_COMPLETE}, true)}) {
    make(0, [](fi_info& asked) { asked.tx_attr->size = kPlaces; });
    const auto memory = a_->memory(bytes.data(), bytes.size(), FI_SEND);
    void* desc = fi_mr_desc(memory.get());
    fi_msg_tagged message{};
    message.msg_iov = parts.data();
    message.iov_count = parts.size();
    message.desc = registered ? &desc : nullptr;
    message.addr = to_b_;
    for (std::size_t i = 0; i < kPlaces; ++i)
      ASSERT_EQ(fi_tsendmsg(a_->ep.get(), &message, flags), 0) << i;
    EXPECT_EQ(fi_tsendmsg(a_->ep.get(), &message, flags), registered ? 0 : -FI_EAGAIN);
    EXPECT_EQ(a_->ep->ops->tx_size_left(a_->ep.get()), registered ? kPlaces : 0);
    a_->ep.reset();
  }
}

// With a stpd whose operator gives a program so much: MPI would abort where it can wait.
TEST_F(RdmMatch, WhatOperationsUnderWayHoldIsWaitedFor) {
  Daemon daemon;
  const UseLink link(daemon.link());
  make();
  auto first = pattern(100'000), second = pattern(110'000, 1);
  std::vector<char> awaited(second.size()), third(first.size());
  const auto post = [](RdmNode& from, const std::vector<char>& bytes, fi_addr_t to) {
    return fi_tsend(from.ep.get(), bytes.data(), bytes.size(), nullptr, to, 1, nullptr);
  };
  ASSERT_EQ(post(*b_, first, to_a_), 0);
  ASSERT_EQ(post(*a_, second, to_b_), 0);
  await_message(1);
  daemon.limit_mapped(1);
  EXPECT_EQ(post(*a_, third, to_b_), -FI_EAGAIN);
  ASSERT_EQ(fi_trecv(b_->ep.get(), awaited.data(), awaited.size(), nullptr, to_a_, 1, 0, nullptr),
            0);
  b_->expect_nothing(b_->rx.get());
  daemon.limit_mapped(std::uint64_t{1} << 30);
  EXPECT_EQ(b_->completed(b_->rx.get()).len, awaited.size());
  EXPECT_EQ(awaited, second);
  a_->completed(a_->tx.get());
  // Nothing comes back now.
  daemon.limit_mapped(1);
  EXPECT_EQ(post(*a_, third, to_b_), -FI_ENOSPC);
  a_.reset();
  b_.reset();
}

TEST_F(RdmMatch, PeekTellsOfAMessageAndLeavesIt) {
  ASSERT_EQ(receive_message(FI_PEEK, this), 0);
  const auto none = b_->failed(b_->rx.get());
  EXPECT_EQ(none.err, FI_ENOMSG);
  EXPECT_EQ(none.op_context, this);
  for (const std::size_t size : {5, 50'000, 100'000}) {
    const auto sent = pattern(size);
    ASSERT_EQ(fi_tsend(a_->ep.get(), sent.data(), size, nullptr, to_b_, 4, nullptr), 0);
    await_message(4);
    ASSERT_EQ(receive_message(FI_PEEK, this), 0);
    const auto told = b_->completed(b_->rx.get());
    EXPECT_EQ(told.len, size);
    EXPECT_EQ(told.tag, 4U);
    EXPECT_EQ(told.source, to_a_);
    std::vector<char> got(size);
    EXPECT_EQ(receive(got, 4).len, size);
    EXPECT_EQ(got, sent);
    a_->completed(a_->tx.get());
  }
}

TEST_F(RdmMatch, PeekIsNotCounted) {
  fi_cntr_attr attr{};
  attr.events = FI_CNTR_EVENTS_COMP;
  const auto counter =
      opened<fid_cntr>([&](auto** c) { return fi_cntr_open(b_->domain.get(), &attr, c, nullptr); });
  b_->ep = opened<fid_ep>(
      [&](auto** e) { return fi_endpoint(b_->domain.get(), info_.get(), e, nullptr); });
  ASSERT_EQ(fi_ep_bind(b_->ep.get(), &b_->av->fid, 0), 0);
  ASSERT_EQ(fi_ep_bind(b_->ep.get(), &b_->rx->fid, FI_RECV | FI_TRANSMIT), 0);
  ASSERT_EQ(fi_ep_bind(b_->ep.get(), &counter->fid, FI_RECV), 0);
  ASSERT_EQ(fi_enable(b_->ep.get()), 0);
  ASSERT_EQ(receive_message(FI_PEEK, this), 0);
  EXPECT_EQ(b_->failed(b_->rx.get()).err, FI_ENOMSG);
  ASSERT_EQ(fi_tinject(b_->ep.get(), "x", 1, b_->insert(b_->name()), 4), 0);
  await_message(4);
  ASSERT_EQ(receive_message(FI_PEEK, this), 0);
  b_->completed(b_->rx.get());
  EXPECT_EQ(fi_cntr_readerr(counter.get()), 0U);
  EXPECT_EQ(fi_cntr_read(counter.get()), 0U);
  std::vector<char> got(1);
  receive(got, 4);
  EXPECT_EQ(fi_cntr_read(counter.get()), 1U);
  b_->ep.reset();
}

TEST_F(RdmMatch, AClaimedMessageIsForWhoHasClaimedIt) {
  for (const std::size_t size : {5, 50'000, 100'000}) {
    const auto sent = pattern(size);
    ASSERT_EQ(fi_tsend(a_->ep.get(), sent.data(), size, nullptr, to_b_, 4, nullptr), 0);
    await_message(4);
    ASSERT_EQ(receive_message(FI_PEEK | FI_CLAIM, this), 0);
    EXPECT_EQ(b_->completed(b_->rx.get()).len, size);
    ASSERT_EQ(receive_message(FI_PEEK, this), 0);
    EXPECT_EQ(b_->failed(b_->rx.get()).err, FI_ENOMSG);
    std::vector<char> got(size);
    EXPECT_EQ(receive_message(FI_CLAIM, &got, &got), -FI_EINVAL);  // it has claimed nothing
    ASSERT_EQ(receive_message(FI_CLAIM, this, &got), 0);
    EXPECT_EQ(b_->completed(b_->rx.get()).op_context, this);
    EXPECT_EQ(got, sent);
    a_->completed(a_->tx.get());
  }
}

TEST_F(RdmMatch, ADiscardedMessageIsGoneAndItsSenderIsDone) {
  for (const auto how : {FI_PEEK | FI_DISCARD, FI_CLAIM | FI_DISCARD})
    for (const std::size_t size : {5, 50'000, 100'000}) {
      const auto sent = pattern(size);
      ASSERT_EQ(fi_tsend(a_->ep.get(), sent.data(), size, nullptr, to_b_, 4, nullptr), 0);
      await_message(4);
      if ((how & FI_CLAIM) != 0) {
        ASSERT_EQ(receive_message(FI_PEEK | FI_CLAIM, this), 0);
        b_->completed(b_->rx.get());
      }
      ASSERT_EQ(receive_message(how, this), 0);
      b_->completed(b_->rx.get());
      ASSERT_EQ(receive_message(FI_PEEK, this), 0);
      EXPECT_EQ(b_->failed(b_->rx.get()).err, FI_ENOMSG);
      a_->completed(a_->tx.get());
      b_->expect_nothing(b_->rx.get());
    }
  EXPECT_EQ(receive_message(FI_DISCARD, this), -FI_EBADFLAGS);
}

TEST_F(RdmMatch, MessagesWithoutTagsArePeekedClaimedAndDiscardedToo) {
  const auto look = [&](std::uint64_t flags, std::vector<char>* to = nullptr) {
    const iovec iov{to != nullptr ? to->data() : nullptr, to != nullptr ? to->size() : 0};
    fi_msg message{};
    message.msg_iov = &iov;
    message.iov_count = to != nullptr ? 1 : 0;
    message.addr = FI_ADDR_UNSPEC;
    message.context = this;
    return fi_recvmsg(b_->ep.get(), &message, flags);
  };
  ASSERT_EQ(look(FI_PEEK), 0);
  EXPECT_EQ(b_->failed(b_->rx.get()).err, FI_ENOMSG);
  for (const char* const text : {"first", "second"})
    ASSERT_EQ(fi_inject(a_->ep.get(), text, std::strlen(text), to_b_), 0);
  send_early("x", 4);  // has arrived after them, and is none of them
  await_message(4);
  ASSERT_EQ(look(FI_PEEK | FI_CLAIM), 0);
  const auto told = b_->completed(b_->rx.get());
  EXPECT_EQ(told.len, 5U);
  EXPECT_EQ(told.flags, FI_RECV | FI_MSG);
  ASSERT_EQ(look(FI_PEEK | FI_DISCARD), 0);
  EXPECT_EQ(b_->completed(b_->rx.get()).len, 6U);
  ASSERT_EQ(look(FI_PEEK), 0);
  EXPECT_EQ(b_->failed(b_->rx.get()).err, FI_ENOMSG);
  std::vector<char> got(5);
  ASSERT_EQ(look(FI_CLAIM, &got), 0);
  b_->completed(b_->rx.get());
  EXPECT_EQ(std::string(got.begin(), got.end()), "first");
  EXPECT_EQ(look(FI_DISCARD), -FI_EBADFLAGS);
}

TEST_F(RdmMatch, AReceiveIsCancelled) {
  char room = 0;
  ASSERT_EQ(fi_trecv(b_->ep.get(), &room, 1, nullptr, FI_ADDR_UNSPEC, 1, 0, &room), 0);
  EXPECT_EQ(fi_cancel(&b_->ep->fid, this), -FI_ENOENT);
  EXPECT_EQ(fi_cancel(&b_->ep->fid, &room), 0);
  const auto error = b_->failed(b_->rx.get());
  EXPECT_EQ(error.err, FI_ECANCELED);
  EXPECT_EQ(error.op_context, &room);
}

TEST_F(RdmMatch, ABufferTakesSeveralMessages) {
  std::vector<char> buffer(1000);
  post_multi(buffer, 300);
  for (const auto size : {400U, 250U, 100U}) {
    const auto sent = pattern(size);
    ASSERT_EQ(fi_send(a_->ep.get(), sent.data(), size, nullptr, to_b_, nullptr), 0);
    const auto told = b_->completed(b_->rx.get());
    EXPECT_EQ(told.op_context, &buffer);
    EXPECT_EQ(told.len, size);
    ASSERT_NE(told.buf, nullptr);
    EXPECT_EQ(std::memcmp(told.buf, sent.data(), size), 0);
    // 250 bytes are left after the third, fewer than wanted: the buffer is given back.
    EXPECT_EQ((told.flags & FI_MULTI_RECV) != 0, size == 100);
    a_->completed(a_->tx.get());
  }
}

TEST_F(RdmMatch, ABufferOfSeveralMessagesIsGivenBackWhenTheLastOneHasCome) {
  const auto first = pattern(90'000), second = pattern(30'000, 3);
  ASSERT_EQ(fi_send(a_->ep.get(), first.data(), first.size(), nullptr, to_b_, nullptr), 0);
  ASSERT_EQ(fi_send(a_->ep.get(), second.data(), second.size(), nullptr, to_b_, nullptr), 0);
  ASSERT_EQ(fi_tinject(a_->ep.get(), "z", 1, to_b_, 1), 0);
  await_message(1);  // both are there before it
  std::vector<char> buffer(120'100);
  post_multi(buffer, 300);
  unsigned given_back = 0;
  for (int i = 0; i < 2; ++i) {
    const auto told = b_->completed(b_->rx.get());
    if ((told.flags & FI_MULTI_RECV) != 0) ++given_back;
    EXPECT_EQ((told.flags & FI_MULTI_RECV) != 0, i == 1);
    const auto& sent = told.len == first.size() ? first : second;
    EXPECT_EQ(std::memcmp(told.buf, sent.data(), sent.size()), 0);
    a_->completed(a_->tx.get());
  }
  EXPECT_EQ(given_back, 1U);
}

TEST_F(RdmMatch, ABufferOfSeveralMessagesIsGivenBackWhenItIsCancelled) {
  std::vector<char> buffer(1000);
  post_multi(buffer, 300);
  ASSERT_EQ(fi_inject(a_->ep.get(), "x", 1, to_b_), 0);
  EXPECT_EQ(b_->completed(b_->rx.get()).flags & FI_MULTI_RECV, 0U);
  ASSERT_EQ(fi_cancel(&b_->ep->fid, &buffer), 0);
  const auto error = b_->failed(b_->rx.get());
  EXPECT_EQ(error.err, FI_ECANCELED);
  EXPECT_NE(error.flags & FI_MULTI_RECV, 0U);
}

// The message is the first one there, and others follow it.
TEST_F(RdmMatch, AClaimedMessageBeginsABufferOfSeveral) {
  for (const std::size_t size : {5, 50'000, 100'000}) {
    SCOPED_TRACE(size);
    std::vector<char> buffer(size + 300);
    const iovec iov{buffer.data(), buffer.size()};
    fi_msg message{};
    message.addr = FI_ADDR_UNSPEC;
    message.context = &buffer;
    const auto sent = pattern(size);
    ASSERT_EQ(fi_send(a_->ep.get(), sent.data(), size, nullptr, to_b_, nullptr), 0);
    ASSERT_EQ(fi_tinject(a_->ep.get(), "z", 1, to_b_, 1), 0);
    await_message(1);
    ASSERT_EQ(fi_recvmsg(b_->ep.get(), &message, FI_PEEK | FI_CLAIM), 0);
    b_->completed(b_->rx.get());
    EXPECT_EQ(fi_recvmsg(b_->ep.get(), &message, FI_CLAIM | FI_MULTI_RECV), -FI_EINVAL);
    message.msg_iov = &iov;
    message.iov_count = 1;
    const std::size_t least = 250;
    ASSERT_EQ(fi_setopt(&b_->ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &least, sizeof least),
              0);
    ASSERT_EQ(fi_recvmsg(b_->ep.get(), &message, FI_CLAIM | FI_MULTI_RECV), 0);
    auto told = b_->completed(b_->rx.get());
    EXPECT_EQ(told.buf, buffer.data());
    EXPECT_EQ(told.flags & FI_MULTI_RECV, 0U);
    EXPECT_EQ(std::memcmp(told.buf, sent.data(), size), 0);
    a_->completed(a_->tx.get());
    ASSERT_EQ(fi_inject(a_->ep.get(), pattern(51).data(), 51, to_b_), 0);
    told = b_->completed(b_->rx.get());
    EXPECT_EQ(told.buf, buffer.data() + size);
    EXPECT_NE(told.flags & FI_MULTI_RECV, 0U);
    std::vector<char> got(1);
    receive(got, 1);
  }
}

TEST_F(RdmMatch, ABufferOfSeveralMessagesIsGivenBackWhenItIsFull) {
  std::vector<char> buffer(4);
  post_multi(buffer, 0);
  ASSERT_EQ(fi_inject(a_->ep.get(), "full", 4, to_b_), 0);
  EXPECT_NE(b_->completed(b_->rx.get()).flags & FI_MULTI_RECV, 0U);
}

TEST_F(RdmMatch, ClosingCompletesReceives) {
  char room = 0;
  ASSERT_EQ(fi_trecv(b_->ep.get(), &room, 1, nullptr, FI_ADDR_UNSPEC, 1, 0, &room), 0);
  b_->ep.reset();
  EXPECT_EQ(b_->failed(b_->rx.get()).err, FI_ECANCELED);
}

}  // namespace
}  // namespace stp::test::rdm_match_test
