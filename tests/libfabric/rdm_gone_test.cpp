// SPDX-License-Identifier: BSD-3-Clause
// Peers of endpoints of FI_EP_RDM that end, or are not there.
#include <chrono>
#include <cstdlib>
#include <vector>

#include "tests/host/test_port.h"
#include "tests/libfabric/rdm_stranger.h"
#include "tests/libst/libst_fixture.h"

namespace stp::test::rdm_gone_test {
namespace {

using namespace rdm_stranger;

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
  const auto failed = b_->failed(b_->rx.get());
  EXPECT_EQ(failed.op_context, &announced);
  EXPECT_EQ(failed.len, 0U) << "none of it has come";
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

}  // namespace
}  // namespace stp::test::rdm_gone_test
