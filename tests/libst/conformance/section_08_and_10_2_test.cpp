// SPDX-License-Identifier: BSD-3-Clause
// The connectionless model as a program sees it: libst document, sections 5.2, 8 and 10.2.
#include <atomic>
#include <thread>

#include "tests/libst/libst_fixture.h"

namespace stp::test {
namespace {

struct Unconnected : Endpoint {
  explicit Unconnected(const char* name = nullptr) : Endpoint(name, st_endpoint) {}
};

class Connectionless : public LibstTest {
 protected:
  void SetUp() override {
    ASSERT_EQ(here_.error(), 0) << st_strerror(here_.error());
    ASSERT_EQ(there_.error(), 0) << st_strerror(there_.error());
    ASSERT_EQ(st_macaddr(here_, nullptr, &mac_), 0);
  }
  // A header to the endpoint `to`.
  static st_header_t addressed(st_ehandle_t to, unsigned op, unsigned flags = 0) {
    auto h = header(op, flags);
    h.d_port = static_cast<std::uint16_t>(option(to, ST_OPT_PORT_LOCAL));
    h.d_key = option(to, ST_OPT_KEY_LOCAL);
    return h;
  }
  int send_nop(st_ehandle_t from, st_ehandle_t to, std::uint32_t id = 0) const {
    auto nop = addressed(to, ST_OP_NOP);
    nop.s_id = id;
    return st_utx(from, mac_, &nop, nullptr, 0, 0, 0);
  }
  static int receive_on(st_ehandle_t at, st_header_t& h, void* payload = nullptr,
                        st_macaddr_t* from = nullptr) {
    timeval limit{20, 0};
    return st_urx(at, from, &h, payload, &limit);
  }
  static int poll_on(st_ehandle_t at, st_header_t& h, st_macaddr_t* from = nullptr) {
    timeval none{0, 0};
    return st_urx(at, from, &h, nullptr, &none);
  }
  // A Block from `from` (mapped at Bufx 0) into `mx` of `to`.
  int send_data(st_ehandle_t from, st_ehandle_t to, int mx, std::uint32_t b_num, int length,
                void* append = nullptr, std::uint32_t bufx = 0, std::uint32_t offset = 0) const {
    auto data = addressed(to, ST_OP_DATA);
    data.mx = static_cast<std::uint16_t>(mx);
    data.bufx = bufx;
    data.offset = offset;
    data.b_num = b_num;
    data.opaque = 0xfeed;
    return st_utx(from, mac_, &data, append, length, 0, 0);
  }

  Unconnected here_, there_;
  st_macaddr_t mac_ = 0;
  st_header_t got_{};
};
STP_BOTH_WAYS(Connectionless);

// ---- names ----

TEST_P(Connectionless, EachEndpointHasAPortAndAKeyOfItsOwnThatStay) {
  const auto port = option(here_, ST_OPT_PORT_LOCAL), key = option(here_, ST_OPT_KEY_LOCAL);
  EXPECT_NE(port, 0U);
  EXPECT_NE(key, 0U);
  EXPECT_NE(port, option(there_, ST_OPT_PORT_LOCAL));
  EXPECT_NE(key, option(there_, ST_OPT_KEY_LOCAL));
  EXPECT_EQ(port, option(here_, ST_OPT_PORT_LOCAL));
  EXPECT_EQ(key, option(here_, ST_OPT_KEY_LOCAL));
}

TEST_P(Connectionless, ThePortOfTheNameIsTheEndpointsPort) {
  const Unconnected named(":4711"), again(":4711");
  ASSERT_EQ(named.error(), 0);
  EXPECT_EQ(option(named, ST_OPT_PORT_LOCAL), 4711U);
  unsigned port = 0;
  EXPECT_EQ(st_getopt(again, ST_OPT_PORT_LOCAL, &port), -EADDRINUSE);
  EXPECT_NE(std::string(st_strerror(-EADDRINUSE)).find("4711"), std::string::npos);
}

TEST_P(Connectionless, NamesAreThoseOfStCreate) {
  st_ehandle_t none = nullptr;
  EXPECT_EQ(st_endpoint("nonsense", &none), -EINVAL);
  EXPECT_EQ(st_endpoint(":70000", &none), -EINVAL);
  EXPECT_NE(std::string(st_strerror(-EINVAL)).find("1 to 65535"), std::string::npos);
  EXPECT_EQ(st_endpoint(nullptr, nullptr), -EINVAL);
  EXPECT_EQ(st_endpoint("[02:00:00:00:00:77]:3000", &none), -EADDRNOTAVAIL);
}

TEST_P(Connectionless, AMacAddressIsKnownOfThisHostAndOfOneInBrackets) {
  st_macaddr_t same = 0, other = 0;
  EXPECT_NE(mac_, 0U);
  EXPECT_EQ(st_macaddr(here_, "localhost", &same), 0);
  EXPECT_EQ(same, mac_);
  EXPECT_EQ(st_macaddr(here_, "[02:00:00:00:00:77]", &other), 0);
  EXPECT_EQ(other, 0x020000000077U);
  EXPECT_EQ(st_macaddr(here_, "10.255.255.254", &other), -EHOSTUNREACH);
}

// ---- options ----

TEST_P(Connectionless, OptionsAreSetUntilTheEndpointIsOpen) {
  set_option(here_, ST_OPT_RX_SLOTS, 5);
  set_option(here_, ST_OPT_BUFSIZE_LOCAL, 12);
  EXPECT_EQ(option(here_, ST_OPT_RX_SLOTS), 5U);
  option(here_, ST_OPT_KEY_LOCAL);
  unsigned slots = 6;
  EXPECT_EQ(st_setopt(here_, ST_OPT_RX_SLOTS, &slots), -EBUSY);
  EXPECT_EQ(option(here_, ST_OPT_RX_SLOTS), 5U);
}

TEST_P(Connectionless, WhatARemoteSideChoseIsNoCommandOfThisModel) {
  for (const int remote :
       {ST_OPT_BUFSIZE_REMOTE, ST_OPT_MAXSTU_REMOTE, ST_OPT_KEY_REMOTE, ST_OPT_PORT_REMOTE}) {
    unsigned value = 1;
    EXPECT_EQ(st_getopt(here_, remote, &value), -ENOTCONN);
    EXPECT_EQ(st_setopt(here_, remote, &value), -EPERM);
  }
}

TEST_P(Connectionless, TheLongestStuIsWhatTheLinkCarries) {
  EXPECT_EQ(option(here_, ST_OPT_MAXSTU_LOCAL), 13U) << "an MTU of 9000";
  set_option(here_, ST_OPT_MAXSTU_LOCAL, 9);
  EXPECT_EQ(option(here_, ST_OPT_MAXSTU_LOCAL), 9U);
}

TEST_P(Connectionless, CallsOfTheOtherModelAreRefused) {
  const Endpoint connected;
  st_chandle_t none = nullptr;
  EXPECT_EQ(st_listen(here_), -EOPNOTSUPP);
  EXPECT_EQ(st_connect(here_, ":3000", &none), -EOPNOTSUPP);
  auto nop = addressed(there_, ST_OP_NOP);
  EXPECT_EQ(st_utx(connected, mac_, &nop, nullptr, 0, 0, 0), -EOPNOTSUPP);
  EXPECT_EQ(poll_on(connected, got_), -EOPNOTSUPP);
  EXPECT_EQ(st_utx(nullptr, mac_, &nop, nullptr, 0, 0, 0), -EBADF);
  EXPECT_EQ(st_tx(here_, &nop, nullptr, 0, 0, 0), -EBADF);
}

// ---- control ----

TEST_P(Connectionless, AHeaderArrivesWithItsSendersPortAndAddress) {
  ASSERT_EQ(send_nop(here_, there_, 99), 0);
  st_macaddr_t from = 0;
  ASSERT_EQ(receive_on(there_, got_, nullptr, &from), 0);
  EXPECT_EQ(ST_OP(got_.op_flags), static_cast<unsigned>(ST_OP_NOP));
  EXPECT_EQ(got_.s_id, 99U);
  EXPECT_EQ(got_.s_port, option(here_, ST_OPT_PORT_LOCAL));
  EXPECT_EQ(from, mac_);
}

TEST_P(Connectionless, OptionPayloadIsToldByTheResult) {
  auto rts = addressed(there_, ST_OP_RTS);
  rts.max_block = 14;
  unsigned char option_payload[ST_OPTION_SIZE] = {1, 2, 3};
  ASSERT_EQ(st_utx(here_, mac_, &rts, option_payload, 0, 0, 0), 0);
  ASSERT_EQ(send_nop(here_, there_), 0);
  unsigned char received[ST_APPEND_SIZE] = {};
  EXPECT_EQ(receive_on(there_, got_, received), 1);
  EXPECT_EQ(received[2], 3);
  EXPECT_EQ(receive_on(there_, got_, received), 0);
}

TEST_P(Connectionless, AWrongKeyReachesNobody) {
  auto nop = addressed(there_, ST_OP_NOP);
  nop.d_key ^= 1;
  ASSERT_EQ(st_utx(here_, mac_, &nop, nullptr, 0, 0, 0), 0);
  ASSERT_EQ(send_nop(here_, there_, 5), 0);
  ASSERT_EQ(receive_on(there_, got_), 0);
  EXPECT_EQ(got_.s_id, 5U);
}

TEST_P(Connectionless, ARequestIsCheckedBeforeItIsQueued) {
  auto nop = addressed(there_, ST_OP_NOP);
  EXPECT_EQ(st_utx(here_, 0, &nop, nullptr, 0, 0, 0), -EINVAL);
  EXPECT_EQ(st_utx(here_, 0xffffffffffff, &nop, nullptr, 0, 0, 0), -EINVAL);
  EXPECT_EQ(st_utx(here_, std::uint64_t{1} << 48 | mac_, &nop, nullptr, 0, 0, 0), -EINVAL);
  EXPECT_EQ(st_utx(here_, mac_, &nop, nullptr, 1, 0, 0), -EINVAL);
  EXPECT_EQ(st_utx(here_, mac_, nullptr, nullptr, 0, 0, 0), -EINVAL);
  nop.d_port = 0;
  EXPECT_EQ(st_utx(here_, mac_, &nop, nullptr, 0, 0, 0), -EINVAL);
  auto rd = addressed(there_, ST_OP_RD);
  EXPECT_EQ(st_utx(here_, mac_, &rd, nullptr, 0, 0, 0), -EPERM);
  EXPECT_EQ(send_data(here_, there_, 1, 0, 100), -ERANGE) << "nothing is mapped";
  auto cts = addressed(there_, ST_OP_CTS);
  cts.blocksize = 14;
  cts.mx = 1;
  EXPECT_EQ(st_utx(here_, mac_, &cts, nullptr, 0, 0, 0), -ERANGE) << "not its own memory";
}

TEST_P(Connectionless, AFullQueueDropsAndTheEndpointGoesOn) {
  set_option(there_, ST_OPT_RX_SLOTS, 4);
  for (std::uint32_t i = 0; i < 20; ++i) ASSERT_EQ(send_nop(here_, there_, i), 0);
  ASSERT_EQ(st_flush(here_), 0);
  for (std::uint32_t i = 0; i < 4; ++i) {
    ASSERT_EQ(receive_on(there_, got_), 0);
    EXPECT_EQ(got_.s_id, i);
  }
  ASSERT_EQ(send_nop(here_, there_, 77), 0);
  do {
    ASSERT_EQ(receive_on(there_, got_), 0);
  } while (got_.s_id != 77);
}

// ---- DATA ----

class ConnectionlessData : public Connectionless {
 protected:
  void SetUp() override {
    Connectionless::SetUp();
    set_option(here_, ST_OPT_BUFSIZE_LOCAL, 12);
    set_option(there_, ST_OPT_BUFSIZE_LOCAL, 12);
    st_mhandle_t region = nullptr;
    ASSERT_EQ(st_map(here_, ST_MAP_TX, source_.data(), source_.length(), 0, -1, &region, nullptr),
              0);
    ASSERT_EQ(st_map(there_, ST_MAP_RX, target_.data(), target_.length(), 64, -1, &landing_, &mx_),
              0);
  }
  Buffer source_{1 << 16, 3}, target_{1 << 16, 0, false};
  st_mhandle_t landing_ = nullptr;
  int mx_ = 0;
};
STP_BOTH_WAYS(ConnectionlessData);

TEST_P(ConnectionlessData, ABlockOfManyStusLandsAndItsHeaderTellsWhere) {
  unsigned char append[ST_APPEND_SIZE] = {9, 8, 7}, received[ST_APPEND_SIZE] = {};
  ASSERT_EQ(send_data(here_, there_, mx_, 0, 50'000, append, 65, 100), 0);
  st_macaddr_t from = mac_;
  ASSERT_EQ(receive_on(there_, got_, received, &from), 1);
  EXPECT_EQ(ST_OP(got_.op_flags), static_cast<unsigned>(ST_OP_DATA));
  EXPECT_EQ(got_.bufx, 65U);
  EXPECT_EQ(got_.offset, 100U);
  EXPECT_EQ(got_.opaque, 0xfeedU);
  EXPECT_EQ(received[2], 7);
  EXPECT_TRUE(std::equal(source_.data(), source_.data() + 50'000, target_.data() + 4'096 + 100));
  EXPECT_EQ(st_flush(here_), 0);
}

TEST_P(ConnectionlessData, EachBlockHasANumberOfItsOwn) {
  for (std::uint32_t b_num : {0U, 0U, 1U})
    ASSERT_EQ(send_data(here_, there_, mx_, b_num, 100, nullptr, 64), 0);
  ASSERT_EQ(receive_on(there_, got_), 0);
  EXPECT_EQ(got_.b_num, 0U);
  ASSERT_EQ(receive_on(there_, got_), 0);
  EXPECT_EQ(got_.b_num, 1U) << "the second was a repeat of the first";
}

TEST_P(ConnectionlessData, UnmappedMemoryIsOutOfReachAtOnce) {
  ASSERT_EQ(st_unmap(landing_), 0);
  ASSERT_EQ(send_data(here_, there_, mx_, 0, 1'000, nullptr, 64), 0);
  ASSERT_EQ(send_nop(here_, there_, 3), 0);
  ASSERT_EQ(receive_on(there_, got_), 0);
  EXPECT_EQ(got_.s_id, 3U);
  EXPECT_EQ(target_[0], 0);
}

TEST_P(ConnectionlessData, DeletingFlushesWhatWasSent) {
  for (std::uint32_t b_num = 0; b_num < 8; ++b_num)
    ASSERT_EQ(send_data(here_, there_, mx_, b_num, 8'000, nullptr, 64), 0);
  here_.reset();
  for (std::uint32_t b_num = 0; b_num < 8; ++b_num) ASSERT_EQ(receive_on(there_, got_), 0);
  EXPECT_TRUE(std::equal(source_.data(), source_.data() + 8'000, target_.data()));
}

// ---- waiting and filtering ----

TEST_P(Connectionless, WithoutAHeaderTheTimeoutPasses) {
  EXPECT_EQ(poll_on(here_, got_), -EWOULDBLOCK);
  timeval soon{0, 20'000};
  EXPECT_EQ(st_urx(here_, nullptr, &got_, nullptr, &soon), -EWOULDBLOCK);
  timeval never{-1, 0};
  EXPECT_EQ(st_urx(here_, nullptr, &got_, nullptr, &never), -EINVAL);
  EXPECT_EQ(st_urx(here_, nullptr, nullptr, nullptr, &soon), -EINVAL);
}

TEST_P(Connectionless, HeadersOfOthersWaitWhileOneAsksForSomebodyElse) {
  for (std::uint32_t i = 0; i < 200; ++i) {
    ASSERT_EQ(send_nop(here_, there_, i), 0);
    st_macaddr_t stranger = 0x020000000077;
    if (i % 10 != 0) continue;
    ASSERT_EQ(st_flush(here_), 0);
    ASSERT_EQ(poll_on(there_, got_, &stranger), -EWOULDBLOCK);
  }
  for (std::uint32_t i = 0; i < 200; ++i) {
    auto from = i % 2 == 0 ? mac_ : 0;
    ASSERT_EQ(receive_on(there_, got_, nullptr, &from), 0);
    EXPECT_EQ(got_.s_id, i) << "in their order, those set aside first";
    EXPECT_EQ(from, mac_);
  }
}

TEST_P(Connectionless, AThreadThatWaitsForAStrangerTakesNothingFromOneThatWaitsForAnyone) {
  st_macaddr_t stranger = 0x020000000077;
  std::atomic<int> of_stranger = 1;
  std::thread waits_in_vain([&] {
    st_header_t none{};
    of_stranger = st_urx(there_, &stranger, &none, nullptr, nullptr);
  });
  for (std::uint32_t i = 0; i < 300; ++i) {
    ASSERT_EQ(send_nop(here_, there_, i), 0);
    ASSERT_EQ(receive_on(there_, got_), 0);
    ASSERT_EQ(got_.s_id, i);
  }
  there_.reset();
  waits_in_vain.join();
  // On a busy machine the thread may not have begun yet.
  EXPECT_TRUE(of_stranger == -ECANCELED || of_stranger == -EBADF) << of_stranger;
}

TEST_P(Connectionless, TwoThreadsReceiveEachHeaderOnce) {
  constexpr std::uint32_t kCount = 600;
  std::vector<std::atomic<unsigned>> seen(kCount);
  std::atomic<unsigned> received = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 2; ++t)
    threads.emplace_back([&] {
      st_header_t h{};
      timeval brief{0, 20'000};
      while (received < kCount) {
        const auto error = st_urx(there_, nullptr, &h, nullptr, &brief);
        if (error == -EWOULDBLOCK) continue;
        ASSERT_EQ(error, 0);
        ++received;
        ++seen.at(h.s_id);
      }
    });
  for (std::uint32_t i = 0; i < kCount; ++i) {
    while (i - received > 32) std::this_thread::yield();  // there is no other flow control
    ASSERT_EQ(send_nop(here_, there_, i), 0);
  }
  for (auto& thread : threads) thread.join();
  for (const auto& count : seen) EXPECT_EQ(count, 1U);
}

TEST_P(Connectionless, TwoThreadsThatOpenTheEndpointFindTheSameName) {
  unsigned keys[2] = {};
  std::thread first([&] { keys[0] = option(here_, ST_OPT_KEY_LOCAL); });
  keys[1] = option(here_, ST_OPT_KEY_LOCAL);
  first.join();
  EXPECT_EQ(keys[0], keys[1]);
}

TEST_P(Connectionless, EndpointsComeAndGoWithoutATrace) {
  for (int i = 0; i < 300; ++i) {
    Unconnected passing(":4000");
    ASSERT_EQ(passing.error(), 0);
    ASSERT_EQ(send_nop(here_, passing), 0);
    ASSERT_EQ(receive_on(passing, got_), 0);
  }
}

}  // namespace
}  // namespace stp::test
