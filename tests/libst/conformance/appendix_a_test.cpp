// SPDX-License-Identifier: BSD-3-Clause
// The libst document, Appendix A: the questions that it left open, and our answers. For hooks see
// appendix_a_hooks_test.cpp, for option payload on connect and accept ../inspect_test.cpp.
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "tests/libst/write_fixture.h"

namespace stp::test {
namespace {

class AppendixA : public WriteTest {
 protected:
  // The next event of `endpoint`; a test that has to wait longer has failed.
  static int next_event(st_ehandle_t endpoint, st_event_t& event) {
    timeval limit{20, 0};
    return st_next_event(endpoint, &event, &limit);
  }
};
STP_BOTH_WAYS(AppendixA);

// ---- the I-bit ----

TEST_P(AppendixA, InterruptWakesASleepingConsumerAndTravelsWithTheHeader) {
  std::atomic<int> result = -1;
  std::thread sleeping([&] { result = st_rx(accepted_, &got_, nullptr, nullptr); });
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  ASSERT_EQ(send(connected_, header(ST_OP_NOP, ST_FLAG_INTERRUPT)), 0);
  sleeping.join();
  EXPECT_EQ(result, 0);
  EXPECT_NE(ST_FLAGS(got_.op_flags) & ST_FLAG_INTERRUPT, 0u);
}

TEST_P(AppendixA, WithoutInterruptASleepingConsumerIsWokenTooIfNotAtOnce) {
  std::atomic<int> result = -1;
  std::thread sleeping([&] { result = st_rx(accepted_, &got_, nullptr, nullptr); });
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  ASSERT_EQ(send(connected_, header(ST_OP_NOP)), 0);
  sleeping.join();
  EXPECT_EQ(result, 0);
}

// ---- Bufx counts before a connection ----

TEST_P(AppendixA, BufxCountsAreSetBeforeAnyConnection) {
  Endpoint endpoint;
  set_option(endpoint, ST_OPT_RX_BUFX_COUNT, 4);
  Buffer memory(5 * kBufsize);
  st_mhandle_t region = nullptr;
  int mx = -1;
  EXPECT_EQ(st_map(endpoint, ST_MAP_RX, memory.data(), -1, 0, 5, &region, &mx), -ERANGE);
  EXPECT_EQ(st_map(endpoint, ST_MAP_RX, memory.data(), -1, 0, 4, &region, &mx), 0);
}

// ---- disjoint memory ----

TEST_P(AppendixA, DisjointMemoryIsMappedUnderConsecutiveBufx) {
  Buffer first(2 * kBufsize, 1), between(kBufsize), second(2 * kBufsize, 200);
  const iovec pieces[] = {{first.data(), first.size()}, {second.data(), second.size()}};
  ASSERT_EQ(st_mapv(client_, ST_MAP_TX, pieces, 2, 0, &source_region_, nullptr), 0);
  target_.emplace(4 * kBufsize, 0, false);
  // The receiver takes it in four pieces, the last one first.
  const iovec backwards[] = {{target_->data() + 3 * kBufsize, kBufsize},
                             {target_->data() + 2 * kBufsize, kBufsize},
                             {target_->data() + kBufsize, kBufsize},
                             {target_->data(), kBufsize}};
  ASSERT_EQ(st_mapv(server_, ST_MAP_RX, backwards, 4, 0, &target_region_, &mx_), 0);
  announce(4 * kBufsize);
  permit(0);
  send_block(4 * kBufsize);
  ASSERT_EQ(receive(accepted_, got_), 0);
  for (std::size_t i = 0; i < 4; ++i) {
    const auto* const sent =
        i < 2 ? first.data() + i * kBufsize : second.data() + (i - 2) * kBufsize;
    EXPECT_EQ(std::memcmp(backwards[i].iov_base, sent, kBufsize), 0) << "buffer " << i;
  }
  EXPECT_EQ(st_unmap(target_region_), 0);
}

TEST_P(AppendixA, PiecesAreWholeAlignedBuffers) {
  Buffer memory(2 * kBufsize);
  const iovec crooked[] = {{memory.data() + 4096, kBufsize}};
  const iovec half[] = {{memory.data(), kBufsize / 2}};
  const iovec none[] = {{nullptr, kBufsize}};
  const auto map = [&](const iovec* pieces, int count) {
    return st_mapv(client_, ST_MAP_TX, pieces, count, 0, &source_region_, nullptr);
  };
  EXPECT_EQ(map(crooked, 1), -EINVAL);
  EXPECT_EQ(map(half, 1), -EINVAL);
  EXPECT_EQ(map(none, 1), -EINVAL);
  EXPECT_EQ(map(nullptr, 1), -EINVAL);
  EXPECT_EQ(map(half, 0), -EINVAL);
  EXPECT_EQ(map(half, ST_MAX_PIECES + 1), -EINVAL);
}

// ---- header fields that the user may set ----

TEST_P(AppendixA, PortsKeysChecksumAndAppendAreTheLibrarysToSet) {
  auto nop = header(ST_OP_NOP);
  nop.d_port = 1;
  nop.s_port = 2;
  nop.d_key = 3;
  nop.cksum = 4;
  ASSERT_EQ(send(connected_, nop), 0);
  ASSERT_EQ(receive(accepted_, got_), 0);
  EXPECT_EQ(got_.d_port, option(accepted_, ST_OPT_PORT_LOCAL));
  EXPECT_EQ(got_.s_port, option(connected_, ST_OPT_PORT_LOCAL));
  EXPECT_EQ(got_.d_key, option(accepted_, ST_OPT_KEY_LOCAL));
  EXPECT_EQ(got_.cksum, 0u);
}

TEST_P(AppendixA, EveryOtherFieldOfANopArrivesAsItWasSent) {
  auto nop = header(ST_OP_NOP);
  nop.param = 1;
  nop.mx = 2;
  nop.bufx = 3;
  nop.offset = 4;
  nop.sync = 5;
  nop.b_num = 6;
  nop.d_id = 7;
  nop.s_id = 8;
  ASSERT_EQ(send(connected_, nop), 0);
  ASSERT_EQ(receive(accepted_, got_), 0);
  EXPECT_EQ(got_.param, 1u);
  EXPECT_EQ(got_.mx, 2u);
  EXPECT_EQ(got_.bufx, 3u);
  EXPECT_EQ(got_.offset, 4u);
  EXPECT_EQ(got_.sync, 5u);
  EXPECT_EQ(got_.b_num, 6u);
  EXPECT_EQ(got_.d_id, 7u);
  EXPECT_EQ(got_.s_id, 8u);
}

TEST_P(AppendixA, ACtsNamesAnMxOfItsOwnConnectionOnly) {
  auto cts = header(ST_OP_CTS);
  cts.blocksize = kBlocksize;
  cts.r_mx = 4711;
  EXPECT_EQ(send(accepted_, cts), -ERANGE);
}

// ---- FetchOp ----

TEST_P(AppendixA, AFetchOpIsOfEightAlignedBytesOnBothSides) {
  auto fetch = header(ST_OP_GET, ST_FLAG_FETCH_INCREMENT);
  fetch.get_len = 4;
  EXPECT_EQ(send(connected_, fetch), -EINVAL);
  fetch.get_len = 8;
  fetch.r_offset = 4;
  EXPECT_EQ(send(connected_, fetch), -EINVAL);
  fetch.r_offset = 8;
  fetch.i_offset = 12;
  EXPECT_EQ(send(connected_, fetch), -EINVAL);
  fetch.i_offset = 16;
  EXPECT_EQ(send(connected_, fetch), 0);
}

// ---- byte order ----

// On one machine both sides see the same values in any case. The golden frames of tests/stp prove
// that the wire is big-endian.
TEST_P(AppendixA, HeaderFieldsAreInHostOrderOnBothSides) {
  auto nop = header(ST_OP_NOP);
  nop.param = 0x0102;
  nop.sync = 0x01020304;
  ASSERT_EQ(send(connected_, nop), 0);
  ASSERT_EQ(receive(accepted_, got_), 0);
  EXPECT_EQ(got_.param, 0x0102u);
  EXPECT_EQ(got_.sync, 0x01020304u);
}

// ---- st_malloc ----

TEST_P(AppendixA, MallocGivesMemoryThatSuitsTheEndpoint) {
  Endpoint endpoint;
  for (const unsigned bufsize : {8u, 14u, 21u}) {
    set_option(endpoint, ST_OPT_BUFSIZE_LOCAL, bufsize);
    const auto size = std::size_t{1} << bufsize;
    void* memory = nullptr;
    ASSERT_EQ(st_malloc(endpoint, size + 1, -1, &memory), 0);
    st_meminfo_t facts{};
    ASSERT_EQ(st_meminfo(memory, &facts), 0);
    EXPECT_GE(facts.size, size + 1);
    EXPECT_EQ(facts.size % size, 0u);
    EXPECT_EQ(facts.size % 4096, 0u);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(memory) % std::max(size, std::size_t{4096}), 0u);
    EXPECT_EQ(static_cast<char*>(memory)[facts.size - 1], 0);
    std::memset(memory, 1, facts.size);
    EXPECT_EQ(st_free(memory), 0);
  }
}

TEST_P(AppendixA, WhatMallocGaveCanBeMappedAndFreedOnceUnmapped) {
  Endpoint endpoint;
  void* memory = nullptr;
  ASSERT_EQ(st_malloc(endpoint, 4 * kBufsize, -1, &memory), 0);
  st_mhandle_t region = nullptr;
  int mx = -1;
  ASSERT_EQ(st_map(endpoint, ST_MAP_RX, memory, -1, 0, 4, &region, &mx), 0);
  static_cast<char*>(memory)[0] = 1;
  EXPECT_EQ(st_unmap(region), 0);
  EXPECT_EQ(st_free(memory), 0);
  EXPECT_EQ(st_free(memory), -EINVAL);
  EXPECT_EQ(st_free(nullptr), 0);
}

TEST_P(AppendixA, MallocTakesANumaNodeAndTheQueryTellsTheTruth) {
  Endpoint endpoint;
  void* memory = nullptr;
  ASSERT_EQ(st_malloc(endpoint, kBufsize, 0, &memory), 0) << st_strerror(-EINVAL);
  std::memset(memory, 1, kBufsize);
  st_meminfo_t facts{};
  ASSERT_EQ(st_meminfo(memory, &facts), 0);
  EXPECT_TRUE(facts.node == 0 || facts.node == -1) << facts.node;
  EXPECT_LE(facts.huge, facts.size);
  EXPECT_EQ(st_free(memory), 0);
  EXPECT_EQ(st_malloc(endpoint, kBufsize, 100'000, &memory), -EINVAL);
  EXPECT_EQ(st_malloc(endpoint, 0, -1, &memory), -EINVAL);
  EXPECT_EQ(st_meminfo(&facts, &facts), -EINVAL);
}

// ---- error codes, and when options may change ----

TEST_P(AppendixA, OptionsMayChangeBeforeAConnectionOnly) {
  Endpoint fresh;
  for (const auto which :
       {ST_OPT_BUFSIZE_LOCAL, ST_OPT_MAXSTU_LOCAL, ST_OPT_KEY_LOCAL, ST_OPT_PORT_LOCAL,
        ST_OPT_RX_BUFX_BASE, ST_OPT_RX_BUFX_COUNT, ST_OPT_TX_BUFX_BASE, ST_OPT_TX_BUFX_COUNT,
        ST_OPT_RX_SLOTS, ST_OPT_TX_CREDITS, ST_OPT_CHECKSUM, ST_OPT_KEEP_ALIVE, ST_OPT_RECOVER,
        ST_OPT_INSPECT, ST_OPT_CONNECT_PATIENCE}) {
    if (which == ST_OPT_KEY_LOCAL && ::geteuid() != 0) continue;  // root's to set
    auto value = option(fresh, which);
    EXPECT_EQ(st_setopt(fresh, which, &value), 0) << which;
    EXPECT_EQ(st_setopt(connected_, which, &value), -EBUSY) << which;
    EXPECT_EQ(st_setopt(client_, which, &value), -EBUSY) << which;
  }
}

// ---- notice of disconnection ----

TEST_P(AppendixA, DisconnectionIsAnErrorFromRxAfterWhatHadArrived) {
  ASSERT_EQ(send(connected_, header(ST_OP_NOP)), 0);
  ASSERT_EQ(st_close(connected_), 0);
  EXPECT_EQ(receive(accepted_, got_), 0);
  EXPECT_EQ(receive(accepted_, got_), -ENOTCONN);
}

TEST_P(AppendixA, DisconnectionIsAnEventToo) {
  ASSERT_EQ(st_close(connected_), 0);
  st_event_t event{};
  ASSERT_EQ(next_event(server_, event), 0);
  EXPECT_EQ(event.kind, ST_EVENT_PEER_GONE);
  EXPECT_EQ(event.chandle, accepted_);
  EXPECT_EQ(event.error, -ENOTCONN);
  timeval none{0, 0};
  EXPECT_EQ(st_next_event(server_, &event, &none), -EWOULDBLOCK) << "it is told once";
}

TEST_P(AppendixA, WhoWaitsForEventsIsWoken) {
  std::atomic<int> result = 1;
  st_event_t event{};
  std::thread waiting([&] { result = st_next_event(server_, &event, nullptr); });
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_EQ(result, 1);
  ASSERT_EQ(st_close(connected_), 0);
  waiting.join();
  EXPECT_EQ(result, 0);
  EXPECT_EQ(event.kind, ST_EVENT_PEER_GONE);
}

TEST_P(AppendixA, AConnectionToAcceptIsAnEventForAsLongAsItWaits) {
  st_chandle_t another = nullptr, taken = nullptr;
  ASSERT_EQ(st_connect(client_, ":3000", &another), 0);
  st_event_t event{};
  for (int i = 0; i < 2; ++i) {
    ASSERT_EQ(next_event(server_, event), 0);
    EXPECT_EQ(event.kind, ST_EVENT_CONNECTION);
    EXPECT_EQ(event.chandle, nullptr);
  }
  ASSERT_EQ(st_accept(server_, &taken), 0);
  timeval none{0, 0};
  EXPECT_EQ(st_next_event(server_, &event, &none), -EWOULDBLOCK);
}

TEST_P(AppendixA, DeletingAnEndpointEndsTheWaitForItsEvents) {
  std::atomic<int> result = 1;
  std::thread waiting([&] {
    st_event_t event{};
    result = st_next_event(server_, &event, nullptr);
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  server_.reset();
  waiting.join();
  EXPECT_EQ(result, -ECANCELED);
}

}  // namespace
}  // namespace stp::test
