// SPDX-License-Identifier: BSD-3-Clause
// Messages, reads, puts, gets and fetch-and-ops.
#include <sys/uio.h>

#include <array>
#include <atomic>
#include <chrono>
#include <numeric>
#include <vector>

#include "tests/managed/managed_fixture.h"

namespace stp::test::transfer_test {
namespace {

class Transfers : public ManagedApi {
 protected:
  // Memory of the server that the client may access.
  stm_remote_t open(void* ptr, std::size_t length, unsigned access, std::uint64_t address = 0) {
    const auto memory = server.memory(ptr, length, access);
    stm_remote_t remote{};
    const auto error =
        stm_region_open(memory, ptr, length, access, nullptr, address, &region, &remote);
    EXPECT_EQ(error, 0) << st_strerror(error);
    return remote;
  }
  stm_region_t region = nullptr;
};
STP_BOTH_WAYS(Transfers);

TEST_P(Transfers, AMessageArrivesWithItsLengthItsTagAndItsNumber) {
  for (const std::size_t length :
       {0UL, 1UL, 64UL, 4'000UL, 4'080UL, 4'081UL, 16'384UL, 32'752UL, 32'753UL, 100'000UL}) {
    Buffer from(1 << 17, 3), to(1 << 17, 0, false);
    const auto source = client.memory(from.data(), from.size(), STM_LOCAL_READ);
    const auto sink = server.memory(to.data(), to.size());
    ASSERT_EQ(stm_receive(server.connection, 20, sink, to.data(), to.size()), 0);
    ASSERT_EQ(stm_send(client.connection, 10, 0, 99, source, from.data(), length), 0);
    const auto received = server.completion(20);
    EXPECT_EQ(received.status, 0);
    EXPECT_EQ(received.kind, STM_RECEIVE);
    EXPECT_EQ(received.length, length);
    EXPECT_EQ(received.tag, 99U);
    EXPECT_EQ(received.connection, server.connection);
    EXPECT_EQ(std::memcmp(from.data(), to.data(), length), 0);
    const auto sent = client.completion(10);
    EXPECT_EQ(sent.kind, STM_SEND);
    EXPECT_EQ(sent.status, 0);
    EXPECT_EQ(sent.message, received.message);
    EXPECT_EQ(stm_memory_release(source), 0);
    EXPECT_EQ(stm_memory_release(sink), 0);
  }
}

TEST_P(Transfers, BothSidesMayGreetBeforeEitherPostsAReceive) {
  Buffer bytes(1 << 13, 3);
  for (auto* const side : {&client, &server}) {
    const auto source = side->memory(bytes.data(), bytes.size(), STM_LOCAL_READ);
    ASSERT_EQ(stm_send(side->connection, 10, 0, 0, source, bytes.data(), 5), 0);
  }
  for (auto* const side : {&client, &server}) ASSERT_EQ(side->completion(10).status, 0);
}

stm_operation_t listed(unsigned kind, std::uint64_t context, stm_memory_t memory, void* ptr,
                       std::size_t length) {
  stm_operation_t operation{};
  operation.kind = kind;
  operation.context = context;
  operation.memory = memory;
  operation.ptr = ptr;
  operation.length = length;
  return operation;
}

TEST_P(Transfers, AListIsPostedInItsOrder) {
  constexpr std::size_t kPuts = 100, kEach = 8;
  Buffer from(1 << 13, 3), to(1 << 13, 0, false), back(1 << 13, 0, false), message(64, 0, false);
  const auto remote = open(to.data(), to.size(), STM_REMOTE_WRITE | STM_REMOTE_READ, 1'000);
  const auto source = client.memory(from.data(), from.size(), STM_LOCAL_READ);
  const auto landing = client.memory(back.data(), back.size());
  const auto sink = server.memory(message.data(), message.size());
  ASSERT_EQ(stm_receive(server.connection, 1, sink, message.data(), message.size()), 0);
  std::vector<stm_operation_t> list;
  for (std::size_t i = 0; i < kPuts; ++i) {
    auto& put = list.emplace_back(listed(STM_PUT, i, source, from.data() + i * kEach, kEach));
    put.flags = STM_QUIET;
    put.key = remote.key;
    put.address = 1'000 + i * kEach;
  }
  auto& send = list.emplace_back(listed(STM_SEND, 1'001, source, from.data(), 64));
  send.flags = STM_FENCE;
  send.tag = 77;
  auto& get = list.emplace_back(listed(STM_GET, 1'002, landing, back.data(), kPuts * kEach));
  get.flags = STM_FENCE;
  get.key = remote.key;
  get.address = 1'000;
  ASSERT_EQ(stm_post_list(client.connection, list.data(), list.size()),
            static_cast<int>(list.size()));
  const auto received = server.completion(1);
  EXPECT_EQ(received.tag, 77U);
  EXPECT_EQ(std::memcmp(from.data(), to.data(), kPuts * kEach), 0) << "all before the fence";
  EXPECT_EQ(client.completion(1'001).kind, STM_SEND);
  const auto got = client.completion(1'002);
  EXPECT_EQ(got.kind, STM_GET);
  EXPECT_EQ(got.status, 0);
  EXPECT_EQ(std::memcmp(from.data(), back.data(), kPuts * kEach), 0);
}

TEST_P(Transfers, AListEndsWithTheFirstThatCannotBePosted) {
  Buffer from(1 << 13, 3), to(1 << 13, 0, false);
  const auto remote = open(to.data(), to.size(), STM_REMOTE_WRITE);
  const auto source = client.memory(from.data(), from.size(), STM_LOCAL_READ);
  auto put = listed(STM_PUT, 5, source, from.data(), 8);
  put.key = remote.key;
  const auto post = [&](std::vector<stm_operation_t> list) {
    return stm_post_list(client.connection, list.data(), list.size());
  };
  auto wrong_kind = put, outside = put, reserved = put, read = put, wrong_flags = put;
  wrong_kind.kind = STM_FETCH;
  outside.length = from.size() + 1;
  reserved.reserved = 1;
  read.kind = STM_GET;  // into memory that may not be written
  wrong_flags.flags = 1U << 31;
  EXPECT_EQ(post({put, wrong_kind, put}), 1);
  EXPECT_EQ(post({wrong_kind, put}), -EINVAL);
  EXPECT_EQ(post({put, put, outside}), 2);
  EXPECT_EQ(post({outside}), -EINVAL);
  EXPECT_EQ(post({reserved}), -EINVAL);
  EXPECT_EQ(post({read}), -EACCES);
  EXPECT_EQ(post({wrong_flags}), -EINVAL);
  EXPECT_EQ(stm_post_list(client.connection, nullptr, 0), 0);
  EXPECT_EQ(stm_post_list(client.connection, nullptr, 1), -EINVAL);
  EXPECT_EQ(stm_post_list(nullptr, &put, 1), -EBADF);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(client.completion(5).status, 0);
  EXPECT_TRUE(client.quiet()) << "nothing else was posted";
}

// Lists that follow each other leave together, in the next call that makes progress. Where none
// comes, the domain's own thread sends them.
TEST_P(Transfers, ListsBehindAnotherArriveAlthoughTheProgramMakesNoFurtherCall) {
  constexpr std::uint64_t kLists = 3;
  Buffer from(1 << 13, 3), to(1 << 13, 0, false), messages(1 << 13, 0, false);
  const auto remote = open(to.data(), to.size(), STM_REMOTE_WRITE);
  const auto source = client.memory(from.data(), from.size(), STM_LOCAL_READ);
  const auto sink = server.memory(messages.data(), messages.size(), STM_LOCAL_WRITE);
  for (std::uint64_t i = 0; i < kLists; ++i)
    ASSERT_EQ(stm_receive(server.connection, 10 + i, sink, messages.data() + 64 * i, 64), 0);
  for (std::uint64_t i = 0; i < kLists; ++i) {
    auto put = listed(STM_PUT, i, source, from.data(), 2'000);
    put.key = remote.key;
    put.address = 2'000 * i;
    auto send = listed(STM_SEND, i, source, from.data(), 64);
    send.flags = STM_FENCE;
    const std::array list{put, send};
    ASSERT_EQ(stm_post_list(client.connection, list.data(), list.size()), 2);
  }
  for (std::uint64_t i = 0; i < kLists; ++i) {
    EXPECT_EQ(server.completion(10 + i).status, 0);
    EXPECT_EQ(std::memcmp(from.data(), to.data() + 2'000 * i, 2'000), 0);
  }
  // Until then the memory is the library's.
  for (std::uint64_t i = 0; i < 2 * kLists; ++i) EXPECT_EQ(client.completion(i / 2).status, 0);
}

// protocol: 9.31, 9.32
TEST_P(Transfers, ManyMessagesOfAllLengthsArriveInTheOrderOfSending) {
  constexpr std::size_t kMessages = 300, kMost = 40'000;
  Buffer from(1 << 16, 1), to(std::size_t{1} << 24, 0, false);
  const auto source = client.memory(from.data(), from.size(), STM_LOCAL_READ);
  const auto sink = server.memory(to.data(), to.size());
  const auto length = [](std::size_t i) { return i * 7919 % kMost; };
  for (std::size_t i = 0; i < kMessages; ++i) {
    ASSERT_EQ(stm_send(client.connection, i, 0, static_cast<std::uint32_t>(i), source,
                       from.data() + i, length(i)),
              0);
    if (i % 3 == 0) continue;  // receives lag behind
    const auto at = (i - 1 - i / 3) * kMost;
    ASSERT_EQ(stm_receive(server.connection, 1000 + i - 1 - i / 3, sink, to.data() + at, kMost), 0);
  }
  for (auto i = kMessages - kMessages / 3; i < kMessages; ++i)
    ASSERT_EQ(stm_receive(server.connection, 1000 + i, sink, to.data() + i * kMost, kMost), 0);
  for (std::size_t i = 0; i < kMessages; ++i) {
    const auto got = server.completion(1000 + i);
    ASSERT_EQ(got.status, 0);
    ASSERT_EQ(got.tag, i);
    ASSERT_EQ(got.message, i + 1);
    ASSERT_EQ(got.length, length(i));
    ASSERT_EQ(std::memcmp(to.data() + i * kMost, from.data() + i, length(i)), 0);
  }
  for (std::size_t i = 0; i < kMessages; ++i) ASSERT_EQ(client.completion(i).status, 0);
}

// Each message meets a ring that the answer before it has freed. Both sides find the same slots,
// again and again around the ring.
// protocol: 9.41
TEST_P(Transfers, MessagesOfSeveralSlotsGoThereAndBack) {
  Buffer from(1 << 16, 1), to(1 << 16, 0, false);
  client.await_eager();
  server.await_eager();
  const stm_memory_t out[]{client.memory(from.data(), from.size(), STM_LOCAL_READ),
                           server.memory(from.data(), from.size(), STM_LOCAL_READ)};
  const stm_memory_t in[]{client.memory(to.data(), to.size()), server.memory(to.data(), to.size())};
  Side* const sides[]{&client, &server};
  for (std::size_t i = 0; i < 400; ++i) {
    auto &sender = *sides[i % 2], &receiver = *sides[1 - i % 2];
    const auto length = i * 7'919 % 33'000;
    ASSERT_EQ(stm_receive(receiver.connection, 2, in[1 - i % 2], to.data(), to.size()), 0);
    ASSERT_EQ(stm_send(sender.connection, 1, 0, 0, out[i % 2], from.data() + i, length), 0);
    const auto got = receiver.completion(2);
    ASSERT_EQ(got.status, 0);
    ASSERT_EQ(got.length, length);
    ASSERT_EQ(std::memcmp(to.data(), from.data() + i, length), 0);
    ASSERT_EQ(sender.completion(1).status, 0);
  }
}

TEST_P(Transfers, AShortMessageOfPiecesNeedsNoRegisteredMemory) {
  client.await_eager();
  Buffer to(1 << 13, 0, false);
  const auto sink = server.memory(to.data(), to.size());
  for (const std::size_t length : {0UL, 1UL, 8UL, 4'048UL, 5'000UL}) {
    ASSERT_EQ(stm_receive(server.connection, 20, sink, to.data(), to.size()), 0);
    using Bytes = std::vector<unsigned char>;
    Bytes head(STM_HEAD, 1), first(length, 2), second(7, 3);
    auto expected = head;
    expected.insert(expected.end(), first.begin(), first.end());
    expected.insert(expected.end(), second.begin(), second.end());
    const iovec parts[]{{first.data(), length}, {nullptr, 0}, {second.data(), second.size()}};
    ASSERT_EQ(stm_send_short(client.connection, 10, 0, 99, head.data(), head.size(), parts, 3), 0);
    for (auto* const piece : {&head, &first, &second}) piece->assign(piece->size(), 0);
    const auto received = server.completion(20);
    EXPECT_EQ(received.tag, 99U);
    ASSERT_EQ(received.length, expected.size());
    EXPECT_EQ(std::memcmp(to.data(), expected.data(), expected.size()), 0);
    const auto sent = client.completion(10);
    EXPECT_EQ(sent.kind, STM_SEND);
    EXPECT_EQ(sent.status, 0);
    EXPECT_EQ(sent.message, received.message);
  }
}

TEST_P(Transfers, AShortMessageThatWouldHaveToWaitIsNotSent) {
  client.await_eager();
  Buffer from(1 << 15, 3), to(1 << 15, 0, false);
  const auto source = client.memory(from.data(), from.size(), STM_LOCAL_READ);
  const auto sink = server.memory(to.data(), to.size());
  const auto send = [&](std::uint32_t tag) {
    const iovec part{&tag, sizeof tag};
    return stm_send_short(client.connection, tag, STM_QUIET, tag, nullptr, 0, &part, 1);
  };
  // The peer has no receives, so the ring fills.
  std::uint32_t sent = 0;
  while (sent < 1'000 && send(sent) == 0) ++sent;
  EXPECT_GE(sent, 8U);
  ASSERT_LT(sent, 1'000U);
  EXPECT_EQ(send(sent), -EAGAIN);
  for (int i = 0; i < 100; ++i)  // behind one another, without a receive
    ASSERT_EQ(stm_send(client.connection, 1'000, 0, sent++, source, from.data(), 20'000), 0);
  EXPECT_EQ(send(sent), -EAGAIN);
  for (std::uint32_t i = 0; i < sent; ++i) {
    ASSERT_EQ(stm_receive(server.connection, 20, sink, to.data(), to.size()), 0);
    const auto received = server.completion(20);
    ASSERT_EQ(received.status, 0);
    ASSERT_EQ(received.tag, i);
  }
  for (int i = 0; i < 100; ++i) EXPECT_EQ(client.completion(1'000).status, 0);
  EXPECT_EQ(send(sent), 0);
}

TEST_P(Transfers, AShortMessageThatCannotBeOneIsRefused) {
  client.await_eager();
  Buffer bytes(1 << 16, 3);
  const auto send = [&](std::size_t head, std::size_t length, unsigned flags = 0) {
    const iovec part{bytes.data(), length};
    return stm_send_short(client.connection, 1, flags, 0, bytes.data(), head, &part, 1);
  };
  EXPECT_EQ(send(STM_HEAD + 1, 8), -EINVAL);
  EXPECT_EQ(send(0, 8, 1U << 31), -EINVAL);
  EXPECT_EQ(send(STM_HEAD, bytes.size()), -EMSGSIZE);
  EXPECT_EQ(send(STM_HEAD, SIZE_MAX), -EMSGSIZE);
  const iovec huge[]{{bytes.data(), SIZE_MAX}, {bytes.data(), 2}};
  EXPECT_EQ(stm_send_short(client.connection, 1, 0, 0, nullptr, 0, huge, 2), -EMSGSIZE);
  EXPECT_EQ(stm_send_short(client.connection, 1, 0, 0, nullptr, 8, nullptr, 0), -EINVAL);
  EXPECT_EQ(stm_send_short(client.connection, 1, 0, 0, nullptr, 0, nullptr, 1), -EINVAL);
  const iovec nowhere[]{{bytes.data(), 2}, {nullptr, 2}};
  EXPECT_EQ(stm_send_short(client.connection, 1, 0, 0, nullptr, 0, nowhere, 2), -EINVAL);
  EXPECT_EQ(stm_send_short(nullptr, 1, 0, 0, nullptr, 0, nullptr, 0), -EBADF);
  auto attr = client.attr();
  stm_connection_t idle = nullptr;
  ASSERT_EQ(stm_connection_create(client.domain, &attr, &idle), 0);
  EXPECT_EQ(stm_send_short(idle, 1, 0, 0, nullptr, 0, nullptr, 0), -ENOTCONN);
  EXPECT_EQ(stm_connection_close(idle), 0);
  EXPECT_TRUE(client.quiet());
}

TEST_P(Transfers, AShortMessageThatOvertakesALongOneIsToldBehindIt) {
  Buffer from(std::size_t{1} << 23, 3), to(std::size_t{1} << 23, 0, false);
  const auto source = client.memory(from.data(), from.size(), STM_LOCAL_READ);
  const auto sink = server.memory(to.data(), to.size());
  const auto length = from.size() / 2;
  ASSERT_EQ(stm_receive(server.connection, 1, sink, to.data(), length), 0);
  ASSERT_EQ(stm_receive(server.connection, 2, sink, to.data() + length, length), 0);
  ASSERT_EQ(stm_send(client.connection, 1, 0, 0, source, from.data(), length), 0);
  ASSERT_EQ(stm_send(client.connection, 2, 0, 0, source, from.data(), 8), 0);
  EXPECT_EQ(server.next(STM_RECEIVE).context, 1U);
  EXPECT_EQ(server.next(STM_RECEIVE).context, 2U);
}

TEST_P(Transfers, NoMessageIsToldBehindOneThatTheEndOfTheConnectionCutOff) {
  Buffer from(std::size_t{1} << 26, 3), to(std::size_t{1} << 26, 0, false);
  const auto source = client.memory(from.data(), from.size(), STM_LOCAL_READ);
  const auto sink = server.memory(to.data(), to.size());
  const auto length = from.size() - 4096;
  ASSERT_EQ(stm_receive(server.connection, 1, sink, to.data(), length), 0);
  ASSERT_EQ(stm_receive(server.connection, 2, sink, to.data() + length, 4096), 0);
  ASSERT_EQ(stm_send(client.connection, 1, 0, 0, source, from.data(), length), 0);
  ASSERT_EQ(stm_send(client.connection, 2, 0, 0, source, from.data(), 8), 0);
  // When this is reported, the short one has arrived; the long one takes a while longer.
  ASSERT_EQ(client.completion(2).status, 0);
  ASSERT_EQ(stm_disconnect(client.connection, STM_ABRUPT), 0);
  const auto cut_off = server.completion(1).status != 0;
  EXPECT_EQ(server.completion(2).status != 0, cut_off);
  EXPECT_TRUE(cut_off) << "the long message was faster: nothing was tried";
}

TEST_P(Transfers, NothingIsAlignedAndNothingBesideIsTouched) {
  Buffer from(1 << 16, 5), to(1 << 16, 0, false);
  const auto source = client.memory(from.data() + 13, 40'001, STM_LOCAL_READ);
  const auto sink = server.memory(to.data() + 101, 40'001);
  ASSERT_EQ(stm_receive(server.connection, 2, sink, to.data() + 101, 40'001), 0);
  ASSERT_EQ(stm_send(client.connection, 1, 0, 0, source, from.data() + 13, 40'001), 0);
  ASSERT_EQ(server.completion(2).status, 0);
  EXPECT_EQ(std::memcmp(to.data() + 101, from.data() + 13, 40'001), 0);
  EXPECT_EQ(std::accumulate(to.data(), to.data() + 101, 0), 0);
  EXPECT_EQ(std::accumulate(to.data() + 101 + 40'001, to.data() + to.size(), 0), 0);
}

TEST_P(Transfers, AMessageLongerThanItsReceiveIsToldAndTheNextOneIsFine) {
  for (const std::size_t length : {1'000UL, 50'000UL}) {
    Buffer from(1 << 16), to(1 << 16, 0, false);
    const auto source = client.memory(from.data(), from.size(), STM_LOCAL_READ);
    const auto sink = server.memory(to.data(), to.size());
    ASSERT_EQ(stm_receive(server.connection, 1, sink, to.data(), 500), 0);
    ASSERT_EQ(stm_receive(server.connection, 2, sink, to.data(), 500), 0);
    ASSERT_EQ(stm_send(client.connection, 3, 0, 0, source, from.data(), length), 0);
    ASSERT_EQ(stm_send(client.connection, 4, 0, 0, source, from.data(), 500), 0);
    const auto first = server.completion(1);
    EXPECT_EQ(first.status, -EMSGSIZE);
    EXPECT_EQ(first.length, length);
    EXPECT_EQ(server.completion(2).status, 0);
    EXPECT_EQ(client.completion(4).status, 0);
    const auto status = client.completion(3).status;
    EXPECT_TRUE(status == -EMSGSIZE || (status == 0 && length < 4'000)) << status;
  }
}

TEST_P(Transfers, AReadIsServedOrRefusedByThePeersProgram) {
  Buffer from(1 << 16, 9), to(1 << 16, 0, false);
  const auto source = server.memory(from.data(), from.size(), STM_LOCAL_READ);
  const auto sink = client.memory(to.data(), to.size());
  ASSERT_EQ(stm_read(client.connection, 1, 0, sink, to.data() + 8, 60'000), 0);
  const auto asked = server.next(STM_READ_REQUEST);
  EXPECT_EQ(asked.length, 60'000U);
  ASSERT_EQ(stm_serve_read(server.connection, asked.request, 5, 0, source, from.data(), 60'000), 0);
  EXPECT_EQ(client.completion(1).status, 0);
  EXPECT_EQ(server.completion(5).kind, STM_SERVED);
  EXPECT_EQ(std::memcmp(to.data() + 8, from.data(), 60'000), 0);

  ASSERT_EQ(stm_read(client.connection, 2, 0, sink, to.data(), 10), 0);
  ASSERT_EQ(stm_refuse_read(server.connection, server.next(STM_READ_REQUEST).request), 0);
  EXPECT_EQ(client.completion(2).status, -ECONNREFUSED);

  ASSERT_EQ(stm_read(client.connection, 3, 0, sink, to.data(), 10), 0);
  const auto left = server.next(STM_READ_REQUEST).request;
  ASSERT_EQ(stm_cancel(client.connection, 3), 0);
  EXPECT_EQ(client.completion(3).status, -ECANCELED) << "the server knows";
  ASSERT_EQ(stm_serve_read(server.connection, left, 6, 0, source, from.data(), 10), 0);
  EXPECT_EQ(server.completion(6).status, -ECANCELED);
  EXPECT_EQ(stm_refuse_read(server.connection, left), -ECANCELED);
}

// A program may have to read what an earlier message has announced before it can receive the next.
// protocol: 9.32
TEST_P(Transfers, WhatIsReadComesAlthoughManyMessagesWaitForReceives) {
  constexpr std::uint64_t kMessages = 100, kReads = 34, kLength = 1'000;
  Buffer from(kLength, 9), to(kLength, 0, false), messages(kMessages);
  const auto source = server.memory(from.data(), from.size(), STM_LOCAL_READ);
  const auto sink = client.memory(to.data(), to.size());
  const auto inbox = client.memory(messages.data(), messages.size());
  server.await_eager();
  for (std::uint64_t i = 0; i < kMessages; ++i)
    ASSERT_EQ(stm_send(server.connection, i, 0, 0, source, from.data() + i, 1), 0);
  for (std::uint64_t i = 0; i < kReads; ++i) {
    ASSERT_EQ(stm_read(client.connection, i, 0, sink, to.data(), kLength), 0);
    const auto asked = server.next(STM_READ_REQUEST);
    const auto context = kMessages + i;
    ASSERT_EQ(
        stm_serve_read(server.connection, asked.request, context, 0, source, from.data(), kLength),
        0);
    ASSERT_EQ(client.completion(i).status, 0) << i;
    ASSERT_EQ(server.completion(context).status, 0);
  }
  for (std::uint64_t i = 0; i < kMessages; ++i)
    ASSERT_EQ(stm_receive(client.connection, i, inbox, messages.data() + i, 1), 0);
  for (std::uint64_t i = 0; i < kMessages; ++i) {
    EXPECT_EQ(client.completion(i).message, i + 1);
    EXPECT_EQ(server.completion(i).status, 0);
  }
  EXPECT_EQ(std::memcmp(messages.data(), from.data(), kMessages), 0);
}

// protocol: 9.29
TEST_P(Transfers, PutsAndGetsReachARegionWithoutThePeersProgram) {
  Buffer there(1 << 20), from(1 << 20, 7), back(1 << 20, 0, false);
  const auto remote = open(there.data() + 3, 900'000, STM_REMOTE_READ | STM_REMOTE_WRITE, 1'000);
  const auto source = client.memory(from.data(), from.size(), STM_LOCAL_READ);
  const auto sink = client.memory(back.data(), back.size());
  ASSERT_EQ(stm_put(client.connection, 1, 0, source, from.data() + 1, 800'000, remote.key,
                    remote.address + 5),
            0);
  EXPECT_EQ(client.completion(1).status, 0);
  EXPECT_EQ(std::memcmp(there.data() + 8, from.data() + 1, 800'000), 0);
  ASSERT_EQ(
      stm_get(client.connection, 2, 0, sink, back.data(), 800'000, remote.key, remote.address + 5),
      0);
  EXPECT_EQ(client.completion(2).status, 0);
  EXPECT_EQ(std::memcmp(back.data(), from.data() + 1, 800'000), 0);
  EXPECT_TRUE(server.quiet());
}

TEST_P(Transfers, AFencedMessageTellsOfAPutThatIsThere) {
  Buffer there(1 << 16, 0, false), from(1 << 16, 3), note(4096, 0, false);
  const auto remote = open(there.data(), there.size(), STM_REMOTE_WRITE);
  const auto source = client.memory(from.data(), from.size(), STM_LOCAL_READ);
  const auto sink = server.memory(note.data(), note.size());
  for (std::uint64_t round = 0; round < 50; ++round) {
    from[60'000] = static_cast<unsigned char>(round);
    ASSERT_EQ(stm_receive(server.connection, 2, sink, note.data(), 100), 0);
    ASSERT_EQ(
        stm_put(client.connection, 0, STM_QUIET, source, from.data(), from.size(), remote.key, 0),
        0);
    ASSERT_EQ(stm_send(client.connection, 1, STM_FENCE, 0, source, from.data(), 4), 0);
    ASSERT_EQ(server.completion(2).status, 0);
    ASSERT_EQ(there[60'000], round);
    ASSERT_EQ(client.completion(1).status, 0);
  }
}

TEST_P(Transfers, FiveFetchOpsAreExecutedOnceEach) {
  alignas(4'096) static std::atomic<std::uint64_t> words[512];
  words[3] = 40;
  const auto remote = open(words, sizeof words, STM_REMOTE_ATOMIC);
  Buffer before(1 << 16, 0, false);
  const auto sink = client.memory(before.data(), before.size());
  auto* const old = reinterpret_cast<std::uint64_t*>(before.data());
  const auto fetch = [&](stm_fetch_op op, std::uint64_t operand, std::uint64_t compare) {
    EXPECT_EQ(stm_fetch(client.connection, 1, 0, op, operand, compare, sink, old, remote.key, 24),
              0);
    EXPECT_EQ(client.completion(1).status, 0);
    return *old;
  };
  EXPECT_EQ(fetch(STM_FETCH_INCREMENT, 0, 0), 40U);
  EXPECT_EQ(fetch(STM_FETCH_ADD, 9, 0), 41U);
  EXPECT_EQ(fetch(STM_FETCH_DECREMENT, 0, 0), 50U);
  EXPECT_EQ(fetch(STM_COMPARE_AND_SWAP, 77, 49), 49U);
  EXPECT_EQ(fetch(STM_COMPARE_AND_SWAP, 1, 49), 77U);
  EXPECT_EQ(fetch(STM_FETCH_CLEAR, 0, 0), 77U);
  EXPECT_EQ(words[3], 0U);
  ASSERT_EQ(stm_fetch(client.connection, 1, 0, STM_FETCH_CLEAR, 0, 0, sink, old, remote.key, 20),
            0);
  EXPECT_EQ(client.completion(1).status, -EINVAL) << "not at a multiple of 8";
}

TEST_P(Transfers, AKeyGivesWhatItsRegionPermitsAndNothingBeyondIt) {
  Buffer there(1 << 16, 1), mine(1 << 16, 2);
  const auto remote = open(there.data(), 1'000, STM_REMOTE_READ, 5'000);
  const auto memory = client.memory(mine.data(), mine.size());
  const auto status = [&](int error) { return error != 0 ? error : client.completion(1).status; };
  const auto get = [&](std::uint32_t key, std::uint64_t at, std::size_t length) {
    return status(stm_get(client.connection, 1, 0, memory, mine.data(), length, key, at));
  };
  EXPECT_EQ(get(remote.key, 5'000, 1'000), 0);
  EXPECT_EQ(get(remote.key, 5'001, 1'000), -ERANGE);
  EXPECT_EQ(get(remote.key, 4'999, 1), -ERANGE);
  EXPECT_EQ(get(remote.key + 1, 5'000, 1), -EACCES);
  EXPECT_EQ(get(1, 0, 1), -EACCES) << "the library's own";
  EXPECT_EQ(status(stm_put(client.connection, 1, 0, memory, mine.data(), 1, remote.key, 5'000)),
            -EACCES);
  EXPECT_EQ(there[0], 1);
}

TEST_P(Transfers, EachByteOfARegionHasAnAddress) {
  constexpr std::size_t kLength = 100;
  Buffer there(1 << 13), mine(1 << 13, 2);
  const auto rights = STM_REMOTE_WRITE;
  const auto memory = server.memory(there.data(), there.size(), rights);
  stm_remote_t remote{};
  const auto open_at = [&](std::uint64_t address) {
    return stm_region_open(memory, there.data(), kLength, rights, nullptr, address, &region,
                           &remote);
  };
  EXPECT_EQ(open_at(UINT64_MAX - 3), -EINVAL);
  EXPECT_EQ(open_at(UINT64_MAX - kLength + 2), -EINVAL);
  EXPECT_NE(std::string(st_strerror(-EINVAL)).find("address"), std::string::npos);
  ASSERT_EQ(open_at(UINT64_MAX - kLength + 1), 0);
  const auto source = client.memory(mine.data(), mine.size());
  ASSERT_EQ(stm_put(client.connection, 1, 0, source, mine.data(), 1, remote.key, UINT64_MAX), 0);
  EXPECT_EQ(client.completion(1).status, 0);
  EXPECT_EQ(there[kLength - 1], mine[0]);
}

TEST_P(Transfers, ARevokedRegionIsReachedNoMore) {
  Buffer there(1 << 16, 1), mine(1 << 16, 2);
  const auto remote = open(there.data(), 1'000, STM_REMOTE_READ | STM_REMOTE_WRITE);
  const auto memory = client.memory(mine.data(), mine.size());
  ASSERT_EQ(stm_put(client.connection, 1, 0, memory, mine.data(), 100, remote.key, 0), 0);
  ASSERT_EQ(client.completion(1).status, 0);
  ASSERT_EQ(stm_region_close(region), 0);
  std::memset(there.data(), 0, 1'000);
  ASSERT_EQ(stm_put(client.connection, 2, 0, memory, mine.data(), 100, remote.key, 0), 0);
  ASSERT_EQ(stm_get(client.connection, 3, 0, memory, mine.data(), 100, remote.key, 0), 0);
  EXPECT_EQ(client.completion(2).status, -EACCES);
  EXPECT_EQ(client.completion(3).status, -EACCES);
  EXPECT_EQ(there[0], 0);
}

TEST_P(Transfers, QuietOperationsTellOnlyOfFailure) {
  Buffer there(1 << 16), mine(1 << 16);
  const auto remote = open(there.data(), 1'000, STM_REMOTE_WRITE);
  const auto memory = client.memory(mine.data(), mine.size());
  ASSERT_EQ(stm_put(client.connection, 1, STM_QUIET, memory, mine.data(), 9, remote.key, 0), 0);
  ASSERT_EQ(stm_put(client.connection, 2, STM_QUIET, memory, mine.data(), 9, remote.key, 995), 0);
  ASSERT_EQ(stm_put(client.connection, 3, 0, memory, mine.data(), 9, remote.key, 0), 0);
  EXPECT_EQ(client.completion(2).status, -ERANGE);
  EXPECT_EQ(client.completion(3).status, 0);
  EXPECT_TRUE(client.quiet());
}

TEST_P(Transfers, MemoryOfAQuietPutCanBeReleasedOnceItsBytesHaveArrived) {
  Buffer there(1 << 16), mine(1 << 16);
  const auto remote = open(there.data(), 1'000, STM_REMOTE_WRITE);
  for (unsigned char round = 1; round <= 20; ++round) {
    auto* memory = client.memory(mine.data(), mine.size());
    mine[8] = round;
    ASSERT_EQ(stm_put(client.connection, 1, STM_QUIET, memory, mine.data(), 9, remote.key, 0), 0);
    const auto arrived = [&] {
      return std::atomic_ref(there[8]).load(std::memory_order_acquire) == round;
    };
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (!arrived() && std::chrono::steady_clock::now() < until) {
      EXPECT_TRUE(client.seen.empty() && server.seen.empty());
      stm_event_t event;
      EXPECT_EQ(stm_queue_poll(client.queue, &event, 1), 0);
      EXPECT_EQ(stm_queue_poll(server.queue, &event, 1), 0);
    }
    ASSERT_TRUE(arrived());
    ASSERT_EQ(stm_memory_release(memory), 0) << int{round};
  }
}

TEST_P(Transfers, MemoryOfLazyMessagesCanBeReleasedBeforeTheirEventsAreTaken) {
  constexpr std::uint64_t kMessages = 8;
  Buffer mine(1 << 16);
  client.await_eager();
  auto* const memory = client.memory(mine.data(), mine.size(), STM_LOCAL_READ);
  for (std::uint64_t i = 0; i < kMessages; ++i)
    ASSERT_EQ(stm_send(client.connection, i, STM_LAZY, 0, memory, mine.data(), 100), 0);
  EXPECT_EQ(stm_memory_release(memory), 0);
  for (std::uint64_t i = 0; i < kMessages; ++i) EXPECT_EQ(client.completion(i).status, 0);
}

TEST_P(Transfers, QuietPutsEndBeforeAConnectionIsDisconnected) {
  Buffer there(1 << 16), mine(1 << 16, 7);
  const auto remote = open(there.data(), 1'000, STM_REMOTE_WRITE);
  const auto memory = client.memory(mine.data(), mine.size());
  for (std::size_t i = 0; i < 100; ++i)
    ASSERT_EQ(stm_put(client.connection, 1, STM_QUIET, memory, mine.data() + i, 1, remote.key, i),
              0);
  ASSERT_EQ(stm_disconnect(client.connection, STM_GRACEFUL), 0);
  EXPECT_EQ(client.next(STM_DISCONNECTED).status, 0);
  EXPECT_EQ(std::memcmp(there.data(), mine.data(), 100), 0);
  EXPECT_EQ(stm_memory_release(memory), 0);
}

TEST_P(Transfers, QuietPutsFreeTheirPlacesInAShortQueue) {
  ASSERT_EQ(stm_queue_resize(client.queue, 8), 0);
  Buffer there(1 << 16), mine(1 << 16, 7);
  const auto remote = open(there.data(), 1'000, STM_REMOTE_WRITE);
  const auto memory = client.memory(mine.data(), mine.size());
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  for (std::size_t i = 0; i < 1'000;) {
    const auto error =
        stm_put(client.connection, 1, STM_QUIET, memory, mine.data() + i, 1, remote.key, i);
    ASSERT_TRUE(error == 0 || error == -EAGAIN) << error;
    if (error == 0) {
      ++i;
      continue;
    }
    ASSERT_LT(std::chrono::steady_clock::now(), until);
    stm_event_t event;
    ASSERT_EQ(stm_queue_poll(client.queue, &event, 1), 0);
    ASSERT_EQ(stm_queue_poll(server.queue, &event, 1), 0);
  }
  while (stm_put(client.connection, 2, 0, memory, mine.data(), 0, remote.key, 0) == -EAGAIN)
    EXPECT_TRUE(server.quiet());
  EXPECT_EQ(client.completion(2).status, 0);
  EXPECT_EQ(std::memcmp(there.data(), mine.data(), 1'000), 0);
}

TEST_P(Transfers, WhatIsCancelledSaysSoAtBothEnds) {
  Buffer from(1 << 20), to(1 << 20);
  const auto source = client.memory(from.data(), from.size(), STM_LOCAL_READ);
  const auto sink = server.memory(to.data(), to.size());
  ASSERT_EQ(stm_receive(server.connection, 1, sink, to.data(), to.size()), 0);
  ASSERT_EQ(stm_cancel(server.connection, 1), 0);
  EXPECT_EQ(server.completion(1).status, -ECANCELED);
  EXPECT_EQ(stm_cancel(server.connection, 1), -ENOENT);
  EXPECT_NE(std::string(st_strerror(-ENOENT)).find("this context"), std::string::npos);
  // A message that waits for a receive.
  ASSERT_EQ(stm_send(client.connection, 2, 0, 0, source, from.data(), 500'000), 0);
  ASSERT_EQ(stm_cancel(client.connection, 2), 0);
  EXPECT_EQ(client.completion(2).status, -ECANCELED);
  // The next message is received.
  ASSERT_EQ(stm_send(client.connection, 3, 0, 33, source, from.data(), 600'000), 0);
  ASSERT_EQ(stm_receive(server.connection, 4, sink, to.data(), to.size()), 0);
  const auto got = server.completion(4);
  EXPECT_EQ(got.status, 0);
  EXPECT_EQ(got.tag, 33U);
  EXPECT_EQ(client.completion(3).status, 0);
}

TEST_P(Transfers, AReceiveThatIsWithdrawnCostsThePeerNoMessage) {
  Buffer from(1 << 20, 7), to(1 << 20);
  const auto source = client.memory(from.data(), from.size(), STM_LOCAL_READ);
  const auto sink = server.memory(to.data(), to.size());
  ASSERT_EQ(stm_receive(server.connection, 1, sink, to.data(), to.size()), 0);
  ASSERT_EQ(stm_withdraw(server.connection, 1), 0);
  EXPECT_EQ(server.completion(1).status, -ECANCELED);
  EXPECT_EQ(stm_withdraw(server.connection, 1), -ENOENT);
  EXPECT_NE(std::string(st_strerror(-ENOENT)).find("this context"), std::string::npos);
  EXPECT_EQ(stm_withdraw(nullptr, 1), -EBADF);
  for (std::uint64_t i = 2; i < 20; ++i) {
    ASSERT_EQ(stm_receive(server.connection, i, sink, to.data(), to.size()), 0);
    ASSERT_EQ(stm_send(client.connection, i, 0, 0, source, from.data(), from.size()), 0);
    auto error = stm_withdraw(server.connection, i);
    ASSERT_TRUE(error == 0 || error == -EBUSY || error == -ENOENT) << error;
    auto got = server.completion(i);
    EXPECT_EQ(got.status, error == 0 ? -ECANCELED : 0);
    if (error == 0) {
      ASSERT_EQ(stm_receive(server.connection, 1, sink, to.data(), to.size()), 0);
      got = server.completion(1);
    }
    EXPECT_EQ(got.status, 0);
    EXPECT_EQ(got.length, from.size());
    EXPECT_EQ(client.completion(i).status, 0);
  }
}

TEST_P(Transfers, MemoryStaysWhileAnOperationUsesIt) {
  Buffer to(1 << 16);
  const auto sink = server.memory(to.data(), to.size());
  ASSERT_EQ(stm_receive(server.connection, 1, sink, to.data(), to.size()), 0);
  EXPECT_EQ(stm_memory_release(sink), -EBUSY);
  ASSERT_EQ(stm_cancel(server.connection, 1), 0);
  EXPECT_EQ(stm_memory_release(sink), 0);
  EXPECT_EQ(stm_memory_release(sink), -EBADF);
}

TEST_P(Transfers, WhatIsNotInTheMemoryOrNotForThatIsRefusedAtOnce) {
  Buffer mine(1 << 16);
  const auto memory = client.memory(mine.data() + 10, 1'000, STM_LOCAL_READ);
  const auto c = client.connection;
  EXPECT_EQ(stm_send(c, 1, 0, 0, memory, mine.data(), 10), -EINVAL);
  EXPECT_EQ(stm_send(c, 1, 0, 0, memory, mine.data() + 10, 1'001), -EINVAL);
  EXPECT_EQ(stm_send(c, 1, 0, 0, nullptr, mine.data(), 1), -EINVAL);
  EXPECT_EQ(stm_receive(c, 1, memory, mine.data() + 10, 10), -EACCES);
  EXPECT_EQ(stm_send(c, 1, 64, 0, memory, mine.data() + 10, 10), -EINVAL);
  EXPECT_EQ(stm_send(nullptr, 1, 0, 0, memory, mine.data() + 10, 10), -EBADF);
  stm_memory_t none = nullptr;
  EXPECT_EQ(stm_memory_register(client.domain, reinterpret_cast<void*>(4096), 64, 0, &none),
            -EFAULT);
  EXPECT_EQ(stm_memory_register(client.domain, mine.data(), SIZE_MAX, 0, &none), -EFAULT);
  EXPECT_NE(std::string(st_strerror(-EFAULT)).find("last address"), std::string::npos);
}

}  // namespace
}  // namespace stp::test::transfer_test
