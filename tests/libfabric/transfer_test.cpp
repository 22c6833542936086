// SPDX-License-Identifier: BSD-3-Clause
// Messages, writes, reads and atomic operations of connected endpoints.
#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>

#include "tests/libfabric/fi_fixture.h"
#include "tests/libst/libst_fixture.h"

namespace stp::test::transfer_test {
namespace {

constexpr std::uint64_t kAll =
    FI_SEND | FI_RECV | FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE;

std::vector<char> pattern(std::size_t size) {
  std::vector<char> bytes(size);
  for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<char>(i * 7 + i / 251);
  return bytes;
}

class FiTransfer : public FiTest {
 protected:
  // On the link that STP_LINK names now.
  void open_sides() {
    ASSERT_EQ(get_info(nullptr, nullptr, 0, hints(), info_), 0);
    client_.reset();
    server_ = std::make_unique<Side>(info_);
    client_ = std::make_unique<Side>(info_);
    server_->other = client_.get();
    client_->other = server_.get();
  }
  void close_all() {
    accepted_.reset();
    connected_.reset();
    pep_.reset();
    client_.reset();
    server_.reset();
  }
  // The client sends `sent`; what the server has received of it.
  void exchange(std::size_t size, bool registered) {
    auto sent = pattern(size);
    std::vector<char> got(size);
    Fid<fid_mr> from, to;
    if (registered && size != 0) {
      from = client_->memory(sent.data(), size, kAll);
      to = server_->memory(got.data(), size, kAll);
    }
    ASSERT_EQ(fi_recv(accepted_.get(), got.data(), size, to ? fi_mr_desc(to.get()) : nullptr, 0,
                      got.data()),
              0);
    ASSERT_EQ(fi_send(connected_.get(), sent.data(), size, from ? fi_mr_desc(from.get()) : nullptr,
                      0, sent.data()),
              0);
    const auto received = server_->completed(server_->rx.get());
    EXPECT_EQ(received.op_context, got.data());
    EXPECT_EQ(received.len, size);
    EXPECT_EQ(received.flags, FI_RECV | FI_MSG);
    EXPECT_EQ(got, sent);
    const auto done = client_->completed(client_->tx.get());
    EXPECT_EQ(done.op_context, sent.data());
    EXPECT_EQ(done.flags, FI_SEND | FI_MSG);
  }
};

TEST_F(FiTransfer, MessagesOfEachSizeArrive) {
  connect();
  for (const std::size_t size :
       {0, 1, 8, 4064, 4080, 4081, 16'384, 17'408, 17'409, 65'536, 1'000'003})
    for (const bool registered : {true, false}) exchange(size, registered);
}

// ofi_rxm would post their buffers again, to an endpoint that is gone.
TEST_F(FiTransfer, ReceivesThatNobodyHasReadAreNotToldOnceTheirEndpointIsClosed) {
  connect();
  const char sent = 'x';
  char got = 0;
  ASSERT_EQ(fi_recv(accepted_.get(), &got, 1, nullptr, 0, &got), 0);
  ASSERT_EQ(fi_send(connected_.get(), &sent, 1, nullptr, 0, nullptr), 0);
  client_->completed(client_->tx.get());
  for (int i = 0; i < 1'000'000 && got != sent; ++i)
    fi_cq_read(server_->rx.get(), nullptr, 0);  // progress only
  ASSERT_EQ(got, sent);
  accepted_.reset();
  fi_cq_tagged_entry entry{};
  EXPECT_EQ(fi_cq_read(server_->rx.get(), &entry, 1), -FI_EAGAIN);
}

TEST_F(FiTransfer, SegmentsAreGatheredAndScattered) {
  connect();
  for (const std::size_t part : {100, 30'000}) {
    auto sent = pattern(3 * part);
    std::vector<char> got(3 * part);
    const std::vector<iovec> from{{sent.data(), part}, {&sent[part], 2 * part}};
    const std::vector<iovec> to{{got.data(), 2 * part}, {&got[2 * part], part}};
    ASSERT_EQ(fi_recvv(accepted_.get(), to.data(), nullptr, 2, 0, nullptr), 0);
    ASSERT_EQ(fi_sendv(connected_.get(), from.data(), nullptr, 2, 0, nullptr), 0);
    EXPECT_EQ(server_->completed(server_->rx.get()).len, 3 * part);
    EXPECT_EQ(got, sent);
    client_->completed(client_->tx.get());
  }
  const std::vector<iovec> many(5, iovec{nullptr, 0});
  EXPECT_EQ(fi_sendv(connected_.get(), many.data(), nullptr, 5, 0, nullptr), -FI_EINVAL);
}

TEST_F(FiTransfer, BytesThatAreNowhereAreRefused) {
  connect();
  auto* const ep = connected_.get();
  const iovec parts[]{{nullptr, 0}, {nullptr, 8}};
  EXPECT_EQ(fi_sendv(ep, parts, nullptr, 2, 0, nullptr), -FI_EINVAL);
  EXPECT_EQ(fi_send(ep, nullptr, 8, nullptr, 0, nullptr), -FI_EINVAL);
  EXPECT_EQ(fi_inject(ep, nullptr, 8, 0), -FI_EINVAL);
  EXPECT_EQ(fi_recv(ep, nullptr, 8, nullptr, 0, nullptr), -FI_EINVAL);
  EXPECT_EQ(fi_write(ep, nullptr, 8, nullptr, 0, 0, 1, nullptr), -FI_EINVAL);
  EXPECT_EQ(fi_readv(ep, parts, nullptr, 2, 0, 0, 1, nullptr), -FI_EINVAL);
}

// Each has to be read before the program posts a receive for the next one.
TEST_F(FiTransfer, LongMessagesAreReadWhileOthersWaitForReceives) {
  connect();
  constexpr int kMany = 150;
  const auto sent = pattern(20'000);
  for (int i = 0; i < kMany; ++i)
    ASSERT_EQ(fi_send(connected_.get(), sent.data(), sent.size(), nullptr, 0, nullptr), 0);
  for (int i = 0; i < kMany; ++i) {
    std::vector<char> got(sent.size());
    ASSERT_EQ(fi_recv(accepted_.get(), got.data(), got.size(), nullptr, 0, got.data()), 0);
    ASSERT_EQ(server_->completed(server_->rx.get()).op_context, got.data()) << i;
    EXPECT_EQ(got, sent);
  }
  for (int i = 0; i < kMany; ++i) client_->completed(client_->tx.get());
}

// Both send before they receive. What is read of the client passes what waits there for receives,
// in its 32 buffers and in the ring behind them. A word that asked for it would not.
TEST_F(FiTransfer, ALongMessageIsReadThoughItsSenderHasNoBufferFree) {
  connect();
  constexpr int kWaiting = 40;
  const auto sent = pattern(20'000);
  for (int i = 0; i < kWaiting; ++i)
    ASSERT_EQ(fi_send(accepted_.get(), sent.data(), 8, nullptr, 0, nullptr), 0);
  ASSERT_EQ(fi_send(connected_.get(), sent.data(), sent.size(), nullptr, 0, nullptr), 0);
  std::vector<char> got(sent.size());
  ASSERT_EQ(fi_recv(accepted_.get(), got.data(), got.size(), nullptr, 0, got.data()), 0);
  EXPECT_EQ(server_->completed(server_->rx.get()).op_context, got.data());
  client_->completed(client_->tx.get());
  EXPECT_EQ(got, sent);
}

TEST_F(FiTransfer, ImmediateDataComesAlong) {
  connect();
  constexpr std::uint64_t kData = 0x0123'4567'89ab'cdef;
  for (const std::size_t size : {0, 10, 17'408, 100'000}) {
    auto sent = pattern(size);
    std::vector<char> got(size);
    ASSERT_EQ(fi_recv(accepted_.get(), got.data(), size, nullptr, 0, nullptr), 0);
    ASSERT_EQ(fi_senddata(connected_.get(), sent.data(), size, nullptr, kData, 0, nullptr), 0);
    const auto received = server_->completed(server_->rx.get());
    EXPECT_EQ(received.flags, FI_RECV | FI_MSG | FI_REMOTE_CQ_DATA);
    EXPECT_EQ(received.data, kData);
    EXPECT_EQ(received.len, size);
    EXPECT_EQ(got, sent);
    client_->completed(client_->tx.get());
  }
}

TEST_F(FiTransfer, InjectedBytesAreFreeAtOnceAndTellNothing) {
  connect();
  std::vector<char> got(5);
  ASSERT_EQ(fi_recv(accepted_.get(), got.data(), got.size(), nullptr, 0, nullptr), 0);
  std::string sent = "hello";
  ASSERT_EQ(fi_inject(connected_.get(), sent.data(), sent.size(), 0), 0);
  sent = "xxxxx";
  server_->completed(server_->rx.get());
  EXPECT_EQ(std::string(got.begin(), got.end()), "hello");
  fi_cq_data_entry entry{};
  EXPECT_EQ(fi_cq_read(client_->tx.get(), &entry, 1), -FI_EAGAIN);
  const std::vector<char> large(4065);
  EXPECT_EQ(fi_inject(connected_.get(), large.data(), large.size(), 0), -FI_EMSGSIZE);
}

TEST_F(FiTransfer, DeliveryIsToldWhenTheReceiverHasTheMessage) {
  connect();
  for (const std::size_t size : {0, 10, 4'000, 30'000}) {
    auto sent = pattern(size);
    std::vector<char> got(size);
    const iovec iov{sent.data(), size};
    fi_msg message{};
    message.msg_iov = &iov;
    message.iov_count = 1;
    // Bytes of the last but one are copied, too.
    const auto inject = size == 4'000 ? FI_INJECT : 0;
    ASSERT_EQ(fi_sendmsg(connected_.get(), &message, FI_COMPLETION | FI_DELIVERY_COMPLETE | inject),
              0);
    if (inject != 0) std::fill(sent.begin(), sent.end(), 'x');
    fi_cq_data_entry entry{};
    for (int i = 0; i < 50; ++i) {
      EXPECT_EQ(fi_cq_read(client_->tx.get(), &entry, 1), -FI_EAGAIN);
      fi_cq_read(server_->rx.get(), nullptr, 0);
    }
    ASSERT_EQ(fi_recv(accepted_.get(), got.data(), size, nullptr, 0, nullptr), 0);
    EXPECT_EQ(server_->completed(server_->rx.get()).len, size);
    EXPECT_EQ(got, pattern(size));
    client_->completed(client_->tx.get());
  }
}

TEST_F(FiTransfer, TheFlagInjectFreesBytesAndIsTold) {
  connect();
  std::vector<char> got(5);
  ASSERT_EQ(fi_recv(accepted_.get(), got.data(), got.size(), nullptr, 0, nullptr), 0);
  std::string sent = "hello";
  const iovec bytes{sent.data(), sent.size()};
  fi_msg message{};
  message.msg_iov = &bytes;
  message.iov_count = 1;
  message.context = &sent;
  ASSERT_EQ(fi_sendmsg(connected_.get(), &message, FI_INJECT | FI_COMPLETION), 0);
  sent = "xxxxx";
  EXPECT_EQ(client_->completed(client_->tx.get()).op_context, &sent);
  server_->completed(server_->rx.get());
  EXPECT_EQ(std::string(got.begin(), got.end()), "hello");
}

// There is no context that an error could name.
TEST_F(FiTransfer, NothingIsToldOfWhatWasInjectedInVain) {
  connect();
  std::uint64_t number = 1;
  ASSERT_EQ(fi_inject_write(connected_.get(), &number, sizeof number, 0, 0, 4711), 0);
  const auto memory = server_->memory(&number, sizeof number, kAll);
  std::uint64_t got = 0;
  // What is posted later is complete later.
  ASSERT_EQ(fi_read(connected_.get(), &got, sizeof got, nullptr, 0,
                    reinterpret_cast<std::uintptr_t>(&number), fi_mr_key(memory.get()), &got),
            0);
  EXPECT_EQ(client_->completed(client_->tx.get()).op_context, &got);
  fi_cq_data_entry entry{};
  EXPECT_EQ(fi_cq_read(client_->tx.get(), &entry, 1), -FI_EAGAIN);
}

TEST_F(FiTransfer, MessagesWaitForReceivesInOrder) {
  connect();
  constexpr int kCount = 200;  // more than the endpoint has buffers for
  std::vector<int> got(kCount, -1);
  int posted = 0;
  for (int i = 0; i < kCount; ++i) {
    while (fi_inject(connected_.get(), &i, sizeof i, 0) == -FI_EAGAIN) {
      fi_cq_read(client_->tx.get(), nullptr, 0);
    }
    fi_cq_read(server_->rx.get(), nullptr, 0);
  }
  for (; posted < kCount; ++posted)
    ASSERT_EQ(fi_recv(accepted_.get(), &got[static_cast<std::size_t>(posted)], sizeof(int), nullptr,
                      0, nullptr),
              0);
  for (int i = 0; i < kCount; ++i) server_->completed(server_->rx.get());
  std::vector<int> expected(kCount);
  std::iota(expected.begin(), expected.end(), 0);
  EXPECT_EQ(got, expected);
}

// A long one takes until the peer has read it; short ones behind it are there long before.
TEST_F(FiTransfer, SendsAreToldInTheOrderOfPosting) {
  connect();
  auto sent = pattern(200'000);
  std::vector<char> got(200'000);
  constexpr std::size_t kCount = 6;
  for (std::size_t i = 0; i < kCount; ++i)
    ASSERT_EQ(fi_recv(accepted_.get(), got.data(), got.size(), nullptr, 0, nullptr), 0);
  for (std::size_t i = 0; i < kCount; ++i)
    ASSERT_EQ(
        fi_send(connected_.get(), sent.data(), i == 0 ? sent.size() : 10, nullptr, 0, &sent[i]), 0);
  for (std::size_t i = 0; i < kCount; ++i)
    EXPECT_EQ(client_->completed(client_->tx.get()).op_context, &sent[i]);
}

TEST_F(FiTransfer, AMessageThatIsTooLongIsCutAndSaysSo) {
  connect();
  for (const std::size_t size : {10, 50'000})
    for (const std::size_t room : {std::size_t{0}, size - 3}) {
      const auto sent = pattern(size);
      std::vector<char> got(size, '.');
      ASSERT_EQ(fi_recv(accepted_.get(), got.data(), room, nullptr, 0, got.data()), 0);
      ASSERT_EQ(fi_send(connected_.get(), sent.data(), size, nullptr, 0, nullptr), 0);
      const auto error = server_->failed(server_->rx.get());
      EXPECT_EQ(error.err, FI_ETRUNC);
      EXPECT_STREQ(fi_cq_strerror(server_->rx.get(), error.prov_errno, nullptr, nullptr, 0),
                   fi_strerror(FI_ETRUNC));
      EXPECT_EQ(error.op_context, got.data());
      EXPECT_EQ(error.len, room);
      EXPECT_EQ(error.olen, size - room);
      EXPECT_TRUE(
          std::equal(got.begin(), got.begin() + static_cast<std::ptrdiff_t>(room), sent.begin()));
      EXPECT_EQ(got[room], '.');
      client_->completed(client_->tx.get());
    }
}

// The message is read nevertheless: else the peer would take the next read for this one.
TEST_F(FiTransfer, AReceiveThatCannotBeWrittenFailsAndTheNextOneGetsItsOwnMessage) {
  connect();
  const std::vector<char> first(20'000, 'a'), second(20'000, 'b');
  std::vector<char> closed(first.size(), '.'), got(second.size());
  const auto to_send = server_->memory(closed.data(), closed.size(), FI_SEND);
  for (const auto* const sent : {&first, &second})
    ASSERT_EQ(fi_send(connected_.get(), sent->data(), sent->size(), nullptr, 0, nullptr), 0);
  ASSERT_EQ(fi_recv(accepted_.get(), closed.data(), closed.size(), fi_mr_desc(to_send.get()), 0,
                    closed.data()),
            0);
  const auto error = server_->failed(server_->rx.get());
  EXPECT_EQ(error.err, FI_EACCES);
  EXPECT_EQ(error.op_context, closed.data());
  ASSERT_EQ(fi_recv(accepted_.get(), got.data(), got.size(), nullptr, 0, got.data()), 0);
  EXPECT_EQ(server_->completed(server_->rx.get()).op_context, got.data());
  EXPECT_EQ(got, second);
  for (int i = 0; i < 2; ++i) client_->completed(client_->tx.get());
}

// With a stpd whose operator gives a program so much. What is under way gives it back.
TEST_F(FiTransfer, ALongMessageIsReadWhenThereIsMemoryForItAgain) {
  Daemon daemon;
  const UseLink link(daemon.link());
  open_sides();
  connect();
  const auto back = pattern(90'000), sent = pattern(100'000);
  std::vector<char> got(sent.size());
  ASSERT_EQ(fi_send(accepted_.get(), back.data(), back.size(), nullptr, 0, nullptr), 0);
  ASSERT_EQ(fi_send(connected_.get(), sent.data(), sent.size(), nullptr, 0, nullptr), 0);
  daemon.limit_mapped(1);
  ASSERT_EQ(fi_recv(accepted_.get(), got.data(), got.size(), nullptr, 0, nullptr), 0);
  fi_cq_data_entry entry{};
  for (int i = 0; i < 20; ++i) {
    fi_cq_read(client_->tx.get(), nullptr, 0);
    EXPECT_EQ(fi_cq_read(server_->rx.get(), &entry, 1), -FI_EAGAIN);
  }
  daemon.limit_mapped(std::uint64_t{1} << 30);
  EXPECT_EQ(server_->completed(server_->rx.get()).len, sent.size());
  EXPECT_EQ(got, sent);
  close_all();
}

// The memory that is awaited is another endpoint's.
TEST_F(FiTransfer, LongMessagesThatWaitForMemoryFailAtTheEnd) {
  Daemon daemon;
  const UseLink link(daemon.link());
  open_sides();
  connect();
  auto to_other = std::move(connected_), other = std::move(accepted_);
  connect();
  const auto back = pattern(90'000), sent = pattern(100'000);
  std::array<std::vector<char>, 2> got;
  ASSERT_EQ(fi_send(other.get(), back.data(), back.size(), nullptr, 0, nullptr), 0);
  for (auto& each : got) {
    ASSERT_EQ(fi_send(connected_.get(), sent.data(), sent.size(), nullptr, 0, nullptr), 0);
    each.resize(sent.size());
  }
  daemon.limit_mapped(1);
  for (auto& each : got)
    ASSERT_EQ(fi_recv(accepted_.get(), each.data(), each.size(), nullptr, 0, &each), 0);
  fi_cq_data_entry entry{};
  for (int i = 0; i < 20; ++i) {
    fi_cq_read(client_->tx.get(), nullptr, 0);
    EXPECT_EQ(fi_cq_read(server_->rx.get(), &entry, 1), -FI_EAGAIN);
  }
  accepted_.reset();
  for (auto& each : got) EXPECT_EQ(server_->failed(server_->rx.get()).op_context, &each);
  other.reset();
  to_other.reset();
  close_all();
}

TEST_F(FiTransfer, AReceiveIsCancelled) {
  connect();
  char room = 0;
  ASSERT_EQ(fi_recv(accepted_.get(), &room, 1, nullptr, 0, &room), 0);
  EXPECT_EQ(fi_cancel(&accepted_->fid, this), -FI_ENOENT);
  EXPECT_EQ(fi_cancel(&accepted_->fid, &room), 0);
  EXPECT_EQ(server_->failed(server_->rx.get()).err, FI_ECANCELED);
}

TEST_F(FiTransfer, OnlyWhatAsksForItIsTold) {
  connect(FI_SELECTIVE_COMPLETION);
  char room[2]{};
  for (auto& byte : room) ASSERT_EQ(fi_recv(accepted_.get(), &byte, 1, nullptr, 0, nullptr), 0);
  const char sent = 's';
  ASSERT_EQ(fi_send(connected_.get(), &sent, 1, nullptr, 0, nullptr), 0);
  const iovec iov{const_cast<char*>(&sent), 1};
  fi_msg message{};
  message.msg_iov = &iov;
  message.iov_count = 1;
  message.context = room;
  ASSERT_EQ(fi_sendmsg(connected_.get(), &message, FI_COMPLETION), 0);
  EXPECT_EQ(client_->completed(client_->tx.get()).op_context, room);
  fi_cq_data_entry entry{};
  EXPECT_EQ(fi_cq_read(client_->tx.get(), &entry, 1), -FI_EAGAIN);
  accepted_.reset();  // the receives end before their memory does
}

TEST_F(FiTransfer, WritesAndReadsMoveBytesWithoutThePeer) {
  connect();
  for (const std::size_t size : {1, 5000, 300'000}) {
    auto bytes = pattern(size);
    std::vector<char> there(size), back(size);
    const auto remote = server_->memory(there.data(), size, FI_REMOTE_READ | FI_REMOTE_WRITE);
    const auto from = client_->memory(bytes.data(), size, FI_WRITE);
    auto key = fi_mr_key(remote.get());
    const auto at = reinterpret_cast<std::uintptr_t>(there.data());
    ASSERT_EQ(
        fi_write(connected_.get(), bytes.data(), size, fi_mr_desc(from.get()), 0, at, key, &key),
        0);
    const auto written = client_->completed(client_->tx.get());
    EXPECT_EQ(written.op_context, &key);
    EXPECT_EQ(written.flags, FI_RMA | FI_WRITE);
    EXPECT_EQ(there, bytes);
    const std::vector<iovec> parts{{back.data(), size / 2}, {&back[size / 2], size - size / 2}};
    ASSERT_EQ(fi_readv(connected_.get(), parts.data(), nullptr, 2, 0, at, key, nullptr), 0);
    EXPECT_EQ(client_->completed(client_->tx.get()).flags, FI_RMA | FI_READ);
    EXPECT_EQ(back, bytes);
  }
}

TEST_F(FiTransfer, AWriteWithDataIsToldAtThePeerWithoutAReceive) {
  connect();
  std::vector<char> there(100);
  const auto remote = server_->memory(there.data(), there.size(), FI_REMOTE_WRITE);
  const auto at = reinterpret_cast<std::uintptr_t>(there.data());
  ASSERT_EQ(fi_writedata(connected_.get(), "flag", 4, nullptr, 42, 0, at, fi_mr_key(remote.get()),
                         nullptr),
            0);
  const auto told = server_->completed(server_->rx.get());
  EXPECT_EQ(told.flags, FI_RMA | FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA);
  EXPECT_EQ(told.data, 42U);
  EXPECT_EQ(std::string(there.data(), 4), "flag");
  client_->completed(client_->tx.get());
}

TEST_F(FiTransfer, AWriteWithDataIsToldThoughItsSenderShutsDownAtOnce) {
  connect();
  std::vector<char> there(100);
  const auto remote = server_->memory(there.data(), there.size(), FI_REMOTE_WRITE);
  const auto at = reinterpret_cast<std::uintptr_t>(there.data());
  auto* const ep = connected_.get();
  ASSERT_EQ(fi_writedata(ep, "flag", 4, nullptr, 7, 0, at, fi_mr_key(remote.get()), nullptr), 0);
  ASSERT_EQ(fi_shutdown(ep, 0), 0);
  EXPECT_EQ(server_->completed(server_->rx.get()).data, 7U);
  client_->completed(client_->tx.get());
}

// The peer hears of those alone that have been written, in their order.
TEST_F(FiTransfer, AWriteWithDataThatFailsIsNotToldAtThePeer) {
  connect();
  std::vector<char> there(100);
  const auto remote = server_->memory(there.data(), there.size(), FI_REMOTE_WRITE);
  const auto at = reinterpret_cast<std::uintptr_t>(there.data());
  const auto key = fi_mr_key(remote.get());
  auto* const ep = connected_.get();
  ASSERT_EQ(fi_writedata(ep, "flag", 4, nullptr, 1, 0, at, key, nullptr), 0);
  ASSERT_EQ(fi_writedata(ep, "lost", 4, nullptr, 2, 0, at, key + 12'345, nullptr), 0);
  ASSERT_EQ(fi_writedata(ep, "lost", 4, nullptr, 3, 0, at + 98, key, nullptr), 0);
  ASSERT_EQ(fi_writedata(ep, "last", 4, nullptr, 4, 0, at, key, nullptr), 0);
  EXPECT_EQ(server_->completed(server_->rx.get()).data, 1U);
  EXPECT_EQ(server_->completed(server_->rx.get()).data, 4U);
  int failed = 0;
  for (int i = 0; i < 4; ++i) {
    fi_cq_data_entry entry{};
    const auto result = client_->read(client_->tx.get(), entry);
    if (result == 1) continue;
    EXPECT_EQ(client_->failed(client_->tx.get()).err, FI_EACCES);
    ++failed;
  }
  EXPECT_EQ(failed, 2);
}

// The peer has been told of a write, too, before an operation with FI_FENCE that follows it begins.
TEST_F(FiTransfer, AFenceWaitsForWhatIsToldOfAWrite) {
  connect();
  std::vector<char> there(100), got(5);
  const auto remote = server_->memory(there.data(), there.size(), FI_REMOTE_WRITE);
  const auto at = reinterpret_cast<std::uintptr_t>(there.data());
  ASSERT_EQ(fi_recv(accepted_.get(), got.data(), got.size(), nullptr, 0, nullptr), 0);
  ASSERT_EQ(fi_writedata(connected_.get(), "flag", 4, nullptr, 1, 0, at, fi_mr_key(remote.get()),
                         nullptr),
            0);
  const iovec iov{got.data(), 1};
  fi_msg message{};
  message.msg_iov = &iov;
  message.iov_count = 1;
  ASSERT_TRUE(becomes_true([&] {
    const auto sent = fi_sendmsg(connected_.get(), &message, FI_FENCE);
    fi_cq_read(client_->tx.get(), nullptr, 0);
    fi_cq_read(server_->rx.get(), nullptr, 0);
    return sent != -FI_EAGAIN;
  }));
  EXPECT_NE(server_->completed(server_->rx.get()).flags & FI_REMOTE_WRITE, 0U);
  EXPECT_NE(server_->completed(server_->rx.get()).flags & FI_RECV, 0U);
}

TEST_F(FiTransfer, AccessThatIsNotGrantedFails) {
  connect();
  std::vector<char> there(100), here(200);
  const auto remote = server_->memory(there.data(), there.size(), FI_REMOTE_READ);
  const auto at = reinterpret_cast<std::uintptr_t>(there.data());
  const auto key = fi_mr_key(remote.get());
  ASSERT_EQ(fi_write(connected_.get(), here.data(), 1, nullptr, 0, at, key, nullptr), 0);
  EXPECT_EQ(client_->failed(client_->tx.get()).err, FI_EACCES);
  ASSERT_EQ(fi_read(connected_.get(), here.data(), 101, nullptr, 0, at, key, nullptr), 0);
  EXPECT_EQ(client_->failed(client_->tx.get()).err, FI_EACCES);
}

TEST_F(FiTransfer, NumbersAreAddedComparedAndRead) {
  connect();
  alignas(8) std::uint64_t there = 40;
  const auto remote = server_->memory(&there, sizeof there, FI_REMOTE_READ | FI_REMOTE_WRITE);
  const auto at = reinterpret_cast<std::uintptr_t>(&there);
  const auto key = fi_mr_key(remote.get());
  std::uint64_t operand = 2, old = 0;
  auto* const ep = connected_.get();
  ASSERT_EQ(fi_fetch_atomic(ep, &operand, 1, nullptr, &old, nullptr, 0, at, key, FI_UINT64, FI_SUM,
                            nullptr),
            0);
  EXPECT_EQ(client_->completed(client_->tx.get()).flags, FI_ATOMIC | FI_READ);
  EXPECT_EQ(old, 40U);
  EXPECT_EQ(there, 42U);
  std::uint64_t compare = 42;
  operand = 7;
  ASSERT_EQ(fi_compare_atomic(ep, &operand, 1, nullptr, &compare, nullptr, &old, nullptr, 0, at,
                              key, FI_UINT64, FI_CSWAP, nullptr),
            0);
  client_->completed(client_->tx.get());
  EXPECT_EQ(old, 42U);
  EXPECT_EQ(there, 7U);
  ASSERT_EQ(fi_atomic(ep, &operand, 1, nullptr, 0, at, key, FI_UINT64, FI_SUM, nullptr), 0);
  EXPECT_EQ(client_->completed(client_->tx.get()).flags, FI_ATOMIC | FI_WRITE);
  EXPECT_EQ(there, 14U);
  ASSERT_EQ(fi_fetch_atomic(ep, nullptr, 1, nullptr, &old, nullptr, 0, at, key, FI_UINT64,
                            FI_ATOMIC_READ, nullptr),
            0);
  client_->completed(client_->tx.get());
  EXPECT_EQ(old, 14U);
  // In several steps, which hold back what is fenced.
  const double number = 1.5;
  std::memcpy(&there, &number, sizeof number);
  ASSERT_EQ(fi_atomic(ep, &number, 1, nullptr, 0, at, key, FI_DOUBLE, FI_SUM, nullptr), 0);
  fi_rma_iov remote_iov{at, 0, key};
  fi_msg_rma fenced{};
  fenced.rma_iov = &remote_iov;
  fenced.rma_iov_count = 1;
  EXPECT_EQ(fi_writemsg(ep, &fenced, FI_FENCE), -FI_EAGAIN);
  client_->completed(client_->tx.get());
  EXPECT_EQ(fi_writemsg(ep, &fenced, FI_FENCE), 0);
  client_->completed(client_->tx.get());
  double sum = 0;
  std::memcpy(&sum, &there, sizeof sum);
  EXPECT_EQ(sum, 3.0);
  std::size_t count = 0;
  EXPECT_EQ(fi_atomicvalid(ep, FI_UINT64, FI_SUM, &count), 0);
  EXPECT_EQ(count, 1U);
  EXPECT_EQ(fi_atomicvalid(ep, FI_LONG_DOUBLE, FI_SUM, &count), -FI_EOPNOTSUPP);
}

// So does what is fenced behind a message that the peer reads.
TEST_F(FiTransfer, AFenceWaitsForAMessageThatIsRead) {
  connect();
  const auto bytes = pattern(100'000);
  std::vector<char> got(bytes.size());
  ASSERT_EQ(fi_send(connected_.get(), bytes.data(), bytes.size(), nullptr, 0, nullptr), 0);
  const iovec iov{got.data(), 1};
  fi_msg message{};
  message.msg_iov = &iov;
  message.iov_count = 1;
  EXPECT_EQ(fi_sendmsg(connected_.get(), &message, FI_FENCE), -FI_EAGAIN);
  ASSERT_EQ(fi_recv(accepted_.get(), got.data(), got.size(), nullptr, 0, nullptr), 0);
  server_->completed(server_->rx.get());
  client_->completed(client_->tx.get());
  EXPECT_EQ(fi_sendmsg(connected_.get(), &message, FI_FENCE), 0);
  client_->completed(client_->tx.get());
}

// FI_TRANSMIT_COMPLETE is for receives, too, and each is that.
TEST_F(FiTransfer, AReceiveMayAskForALevelOfCompletion) {
  connect();
  char got = 0;
  const iovec iov{&got, 1};
  fi_msg message{};
  message.msg_iov = &iov;
  message.iov_count = 1;
  ASSERT_EQ(fi_recvmsg(accepted_.get(), &message, FI_COMPLETION | FI_TRANSMIT_COMPLETE), 0);
  EXPECT_EQ(fi_recvmsg(accepted_.get(), &message, FI_INJECT), -FI_EBADFLAGS);
  ASSERT_EQ(fi_inject(connected_.get(), "x", 1, 0), 0);
  EXPECT_EQ(server_->completed(server_->rx.get()).len, 1U);
}

TEST_F(FiTransfer, AReceiveOfASharedContextIsCancelled) {
  fid_ep* made = nullptr;
  ASSERT_EQ(fi_srx_context(server_->domain.get(), nullptr, &made, nullptr), 0);
  const Fid<fid_ep> srx(made);
  char got[2] = {};
  EXPECT_EQ(fi_cancel(&made->fid, &got[0]), -FI_ENOCQ);
  connect(0, made);
  for (auto& each : got) ASSERT_EQ(fi_recv(made, &each, 1, nullptr, 0, &each), 0);
  ASSERT_EQ(fi_cancel(&made->fid, &got[0]), 0);
  const auto cancelled = server_->failed(server_->rx.get());
  EXPECT_EQ(cancelled.op_context, &got[0]);
  EXPECT_EQ(cancelled.err, FI_ECANCELED);
  EXPECT_EQ(fi_cancel(&made->fid, &got[0]), -FI_ENOENT);
  ASSERT_EQ(fi_inject(connected_.get(), "x", 1, 0), 0);
  EXPECT_EQ(server_->completed(server_->rx.get()).op_context, &got[1]);
  accepted_.reset();
}

TEST_F(FiTransfer, ASharedContextServesItsEndpoints) {
  fid_ep* made = nullptr;
  ASSERT_EQ(fi_srx_context(server_->domain.get(), nullptr, &made, nullptr), 0);
  const Fid<fid_ep> srx(made);
  connect(0, made);
  std::vector<char> got(30'000);
  EXPECT_EQ(fi_recv(accepted_.get(), got.data(), 1, nullptr, 0, nullptr), -FI_EINVAL);
  ASSERT_EQ(fi_inject(connected_.get(), "early", 5, 0), 0);
  ASSERT_EQ(fi_recv(made, got.data(), got.size(), nullptr, 0, nullptr), 0);
  EXPECT_EQ(server_->completed(server_->rx.get()).len, 5U);
  const auto sent = pattern(got.size());
  ASSERT_EQ(fi_recv(made, got.data(), got.size(), nullptr, 0, nullptr), 0);
  ASSERT_EQ(fi_send(connected_.get(), sent.data(), sent.size(), nullptr, 0, nullptr), 0);
  EXPECT_EQ(server_->completed(server_->rx.get()).len, sent.size());
  EXPECT_EQ(got, sent);
  EXPECT_EQ(fi_close(&made->fid), -FI_EBUSY);
  client_->completed(client_->tx.get());
  accepted_.reset();
}

}  // namespace
}  // namespace stp::test::transfer_test
