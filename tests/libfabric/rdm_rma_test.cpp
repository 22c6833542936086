// SPDX-License-Identifier: BSD-3-Clause
// Writes and reads of endpoints of FI_EP_RDM.
#include <rdma/fi_atomic.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <memory>

#include "tests/host/test_port.h"
#include "tests/libfabric/rdm_fixture.h"
#include "tests/libst/libst_fixture.h"

namespace stp::test::rdm_rma_test {
namespace {

class RdmRma : public RdmTest {};

TEST_F(RdmRma, WritesAndReadsMoveBytesWithoutThePeersProgram) {
  for (const std::size_t size : {1, 5000, 300'000}) {
    const auto bytes = pattern(size);
    std::vector<char> there(size), back(size);
    const auto remote = b_->memory(there.data(), size, FI_REMOTE_READ | FI_REMOTE_WRITE);
    auto key = fi_mr_key(remote.get());
    const auto at = reinterpret_cast<std::uintptr_t>(there.data());
    ASSERT_EQ(fi_write(a_->ep.get(), bytes.data(), size, nullptr, to_b_, at, key, &key), 0);
    const auto written = a_->completed(a_->tx.get());
    EXPECT_EQ(written.op_context, &key);
    EXPECT_EQ(written.flags, FI_RMA | FI_WRITE);
    EXPECT_EQ(there, bytes);
    const std::vector<iovec> parts{{back.data(), size / 2}, {&back[size / 2], size - size / 2}};
    ASSERT_EQ(fi_readv(a_->ep.get(), parts.data(), nullptr, 2, to_b_, at, key, nullptr), 0);
    EXPECT_EQ(a_->completed(a_->tx.get()).flags, FI_RMA | FI_READ);
    EXPECT_EQ(back, bytes);
  }
}

TEST_F(RdmRma, AWriteWithDataIsToldAtThePeerWithoutAReceive) {
  std::vector<char> there(100);
  const auto remote = b_->memory(there.data(), there.size(), FI_REMOTE_WRITE);
  const auto at = reinterpret_cast<std::uintptr_t>(there.data());
  ASSERT_EQ(fi_writedata(a_->ep.get(), "flag", 4, nullptr, 42, to_b_, at, fi_mr_key(remote.get()),
                         nullptr),
            0);
  const auto told = b_->completed(b_->rx.get());
  EXPECT_EQ(told.flags, FI_RMA | FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA);
  EXPECT_EQ(told.data, 42U);
  EXPECT_EQ(told.len, 4U);
  EXPECT_EQ(std::string(there.data(), 4), "flag");
  a_->completed(a_->tx.get());
}

TEST_F(RdmRma, AWriteWithDataThatFailsIsNotToldAtThePeer) {
  std::vector<char> there(100);
  const auto remote = b_->memory(there.data(), there.size(), FI_REMOTE_WRITE);
  const auto at = reinterpret_cast<std::uintptr_t>(there.data());
  const auto key = fi_mr_key(remote.get());
  auto* const ep = a_->ep.get();
  ASSERT_EQ(fi_writedata(ep, "lost", 4, nullptr, 1, to_b_, at, key + 12'345, nullptr), 0);
  EXPECT_EQ(a_->failed(a_->tx.get()).err, FI_EACCES);
  ASSERT_EQ(fi_writedata(ep, "lost", 4, nullptr, 2, to_b_, at + 98, key, nullptr), 0);
  EXPECT_EQ(a_->failed(a_->tx.get()).err, FI_EACCES);
  ASSERT_EQ(fi_inject_writedata(ep, "flag", 4, 3, to_b_, at, key), 0);
  EXPECT_EQ(b_->completed(b_->rx.get()).data, 3U);
}

// Until the peer has been told of a write, and of a message that it reads, what is fenced waits: to
// that peer alone.
TEST_F(RdmRma, AFenceWaitsForWhatWasPostedToThatPeer) {
  std::vector<char> there(100), bytes(100'000), got(100'000);
  const auto remote = b_->memory(there.data(), there.size(), FI_REMOTE_WRITE);
  const auto at = reinterpret_cast<std::uintptr_t>(there.data());
  const auto to_itself = a_->insert(a_->name());
  const iovec whole{bytes.data(), 1};
  fi_msg_tagged message{};
  message.msg_iov = &whole;
  message.iov_count = 1;
  const auto fenced = [&](fi_addr_t to) {
    message.addr = to;
    return fi_tsendmsg(a_->ep.get(), &message, FI_FENCE);
  };
  const auto expect_to_wait = [&] {
    EXPECT_EQ(fenced(to_b_), -FI_EAGAIN);
    EXPECT_EQ(fenced(to_itself), 0);
  };
  ASSERT_EQ(fi_writedata(a_->ep.get(), "flag", 4, nullptr, 1, to_b_, at, fi_mr_key(remote.get()),
                         nullptr),
            0);
  expect_to_wait();
  EXPECT_EQ(b_->completed(b_->rx.get()).data, 1U);
  for (int i = 0; i < 2; ++i) a_->completed(a_->tx.get());
  ASSERT_EQ(fi_tsend(a_->ep.get(), bytes.data(), bytes.size(), nullptr, to_b_, 1, nullptr), 0);
  expect_to_wait();
  ASSERT_EQ(fi_trecv(b_->ep.get(), got.data(), got.size(), nullptr, FI_ADDR_UNSPEC, 1, 0, nullptr),
            0);
  EXPECT_EQ(b_->completed(b_->rx.get()).len, got.size());
  for (int i = 0; i < 2; ++i) a_->completed(a_->tx.get());
  EXPECT_EQ(fenced(to_b_), 0);
  a_->completed(a_->tx.get());
}

// What is under way to others does not hold it up.
TEST_F(RdmRma, AFencedReadOfNothingWaitsForAllToThatPeer) {
  char there = 0, here = 'x';
  const auto remote = b_->memory(&there, 1, FI_REMOTE_WRITE);
  const auto at = reinterpret_cast<std::uintptr_t>(&there);
  const auto key = fi_mr_key(remote.get());
  const iovec nothing{&here, 0};
  const fi_rma_iov from{at, 0, key};
  fi_msg_rma read{};
  read.msg_iov = &nothing;
  read.iov_count = 1;
  read.addr = to_b_;
  read.rma_iov = &from;
  read.rma_iov_count = 1;
  for (int i = 0; i < 2; ++i) {  // the second one when the connection is up
    ASSERT_EQ(fi_write(a_->ep.get(), &here, 1, nullptr, to_b_, at, key, nullptr), 0);
    EXPECT_EQ(fi_readmsg(a_->ep.get(), &read, FI_FENCE), -FI_EAGAIN);
    a_->completed(a_->tx.get());
  }
  std::vector<char> bytes(100'000);
  const auto to_itself = a_->insert(a_->name());
  ASSERT_EQ(fi_tsend(a_->ep.get(), bytes.data(), bytes.size(), nullptr, to_itself, 1, nullptr), 0);
  EXPECT_EQ(fi_readmsg(a_->ep.get(), &read, FI_FENCE), 0);
  EXPECT_EQ(a_->completed(a_->tx.get()).flags, FI_RMA | FI_READ);
  read.addr = to_itself;
  EXPECT_EQ(fi_readmsg(a_->ep.get(), &read, FI_FENCE), -FI_EAGAIN);
}

TEST_F(RdmRma, AccessThatIsNotGrantedFails) {
  std::vector<char> there(100), here(200);
  const auto remote = b_->memory(there.data(), there.size(), FI_REMOTE_READ);
  const auto at = reinterpret_cast<std::uintptr_t>(there.data());
  const auto key = fi_mr_key(remote.get());
  ASSERT_EQ(fi_write(a_->ep.get(), here.data(), 1, nullptr, to_b_, at, key, nullptr), 0);
  EXPECT_EQ(a_->failed(a_->tx.get()).err, FI_EACCES);
  ASSERT_EQ(fi_read(a_->ep.get(), here.data(), 101, nullptr, to_b_, at, key, nullptr), 0);
  EXPECT_EQ(a_->failed(a_->tx.get()).err, FI_EACCES);
  ASSERT_EQ(fi_read(a_->ep.get(), here.data(), 0, nullptr, to_b_, at, key, nullptr), 0);
  a_->completed(a_->tx.get());
}

TEST_F(RdmRma, InjectedBytesAreWritten) {
  std::vector<char> there(8);
  const auto remote = b_->memory(there.data(), there.size(), FI_REMOTE_WRITE);
  const auto at = reinterpret_cast<std::uintptr_t>(there.data());
  const auto key = fi_mr_key(remote.get());
  std::string sent = "injected";
  ASSERT_EQ(fi_inject_writedata(a_->ep.get(), sent.data(), 8, 1, to_b_, at, key), 0);
  sent = "xxxxxxxx";
  b_->completed(b_->rx.get());
  EXPECT_EQ(std::string(there.data(), 8), "injected");
  a_->expect_nothing(a_->tx.get());
}

// Memory of `b` that others have mapped, too. It cannot be lent to a stpd.
class RdmShared : public testing::Test {
 protected:
  static constexpr std::size_t kSize = 200'000;
  static constexpr std::uint64_t kAll = FI_REMOTE_READ | FI_REMOTE_WRITE;

  void SetUp() override {
    const auto asked = rdm_hints();
    ASSERT_EQ(get_info(nullptr, nullptr, 0, asked, info_), 0);
    a_ = std::make_unique<RdmNode>(info_);
    b_ = std::make_unique<RdmNode>(info_);
    a_->others = {b_.get()};
    b_->others = {a_.get()};
    to_b_ = a_->insert(b_->name());
    const auto file = ::memfd_create("shared", 0);
    ASSERT_EQ(::ftruncate(file, kSize), 0);
    there_ = map(file, PROT_READ | PROT_WRITE);
    seen_ = map(file, PROT_READ);
    readable_ = map(file, PROT_READ);
    file_ = file;
  }
  void TearDown() override {
    ::close(file_);
    for (auto* const each : {there_, seen_, readable_}) ::munmap(each, kSize);
  }
  static char* map(int file, int protection) {
    auto* const at = ::mmap(nullptr, kSize, protection, MAP_SHARED, file, 0);
    EXPECT_NE(at, MAP_FAILED);
    return static_cast<char*>(at);
  }
  [[nodiscard]] std::uint64_t at(std::size_t offset = 0) const {
    return reinterpret_cast<std::uintptr_t>(there_) + offset;
  }

  // `a` may no longer write, read and change the word at that place.
  void expect_refused(std::uint64_t key, std::size_t offset) {
    std::uint64_t word = 1, old = 0;
    auto* const ep = a_->ep.get();
    const auto place = at(offset);
    ASSERT_EQ(fi_write(ep, &word, sizeof word, nullptr, to_b_, place, key, nullptr), 0);
    EXPECT_EQ(a_->failed(a_->tx.get()).err, FI_EACCES);
    ASSERT_EQ(fi_read(ep, &old, sizeof old, nullptr, to_b_, place, key, nullptr), 0);
    EXPECT_EQ(a_->failed(a_->tx.get()).err, FI_EACCES);
    ASSERT_EQ(fi_fetch_atomic(ep, &word, 1, nullptr, &old, nullptr, to_b_, place, key, FI_UINT64,
                              FI_SUM, nullptr),
              0);
    EXPECT_EQ(a_->failed(a_->tx.get()).err, FI_EACCES);
  }
  void expect_written(std::uint64_t key, std::size_t offset) {
    ASSERT_EQ(fi_write(a_->ep.get(), "here", 4, nullptr, to_b_, at(offset), key, nullptr), 0);
    a_->completed(a_->tx.get());
    EXPECT_EQ(std::string(seen_ + offset, 4), "here");
  }

  const Daemon daemon_{std::make_unique<TestPort>()};
  const UseLink link_{daemon_.link()};
  Info info_;
  std::unique_ptr<RdmNode> a_, b_;
  fi_addr_t to_b_ = FI_ADDR_NOTAVAIL;
  int file_ = -1;
  char *there_ = nullptr, *seen_ = nullptr, *readable_ = nullptr;
};

TEST_F(RdmShared, IsWrittenAndReadByItsProgram) {
  const auto memory = b_->memory(there_, kSize, kAll);
  const auto key = fi_mr_key(memory.get());
  for (const std::size_t size : {std::size_t{0}, std::size_t{1}, std::size_t{17'376}, kSize - 8}) {
    SCOPED_TRACE(size);
    const auto bytes = pattern(size);
    std::vector<char> back(size);
    ASSERT_EQ(fi_writedata(a_->ep.get(), bytes.data(), size, nullptr, 42, to_b_, at(8), key, &back),
              0);
    EXPECT_EQ(a_->completed(a_->tx.get()).op_context, &back);
    EXPECT_EQ(std::string(seen_ + 8, size), std::string(bytes.begin(), bytes.end()));
    const auto told = b_->completed(b_->rx.get());
    EXPECT_EQ(told.data, 42U);
    EXPECT_EQ(told.len, size);
    ASSERT_EQ(fi_read(a_->ep.get(), back.data(), size, nullptr, to_b_, at(8), key, &back), 0);
    EXPECT_EQ(a_->completed(a_->tx.get()).flags, FI_RMA | FI_READ);
    EXPECT_EQ(back, bytes);
  }
}

// They wait for each other, and none of them for a message.
TEST_F(RdmShared, ManyAccessesAreUnderWay) {
  const auto memory = b_->memory(there_, kSize, kAll);
  const auto key = fi_mr_key(memory.get());
  constexpr std::uint64_t kMany = 50, kOne = 1;
  for (std::uint64_t i = 0; i < kMany; ++i)
    ASSERT_EQ(
        fi_atomic(a_->ep.get(), &kOne, 1, nullptr, to_b_, at(16), key, FI_UINT64, FI_SUM, nullptr),
        0);
  std::uint32_t sum = 7, old = 0;
  ASSERT_EQ(fi_fetch_atomic(a_->ep.get(), &sum, 1, nullptr, &old, nullptr, to_b_, at(20), key,
                            FI_UINT32, FI_BOR, &old),
            0);
  for (std::uint64_t i = 0; i < kMany; ++i)
    EXPECT_EQ(a_->completed(a_->tx.get()).flags, FI_ATOMIC | FI_WRITE);
  EXPECT_EQ(a_->completed(a_->tx.get()).op_context, &old);
  EXPECT_EQ(old, 0U);
  const std::array<std::uint32_t, 2> expected{kMany, 7};
  EXPECT_EQ(std::memcmp(seen_ + 16, expected.data(), sizeof expected), 0);
  std::uint64_t compare = std::uint64_t{7} << 32 | kMany, next = 5, found = 0;
  ASSERT_EQ(fi_compare_atomic(a_->ep.get(), &next, 1, nullptr, &compare, nullptr, &found, nullptr,
                              to_b_, at(16), key, FI_UINT64, FI_CSWAP, nullptr),
            0);
  a_->completed(a_->tx.get());
  EXPECT_EQ(found, compare);
  EXPECT_EQ(std::memcmp(seen_ + 16, &next, sizeof next), 0);
}

TEST_F(RdmShared, IsProtected) {
  std::vector<char> bytes(kSize + 1);
  auto memory = b_->memory(there_, kSize, FI_REMOTE_READ);
  auto key = fi_mr_key(memory.get());
  const auto write_fails = [&](std::size_t length) {
    ASSERT_EQ(fi_write(a_->ep.get(), bytes.data(), length, nullptr, to_b_, at(), key, nullptr), 0);
    EXPECT_EQ(a_->failed(a_->tx.get()).err, FI_EACCES);
  };
  write_fails(1);
  memory = b_->memory(there_, kSize, FI_REMOTE_WRITE);
  key = fi_mr_key(memory.get());
  ASSERT_EQ(fi_read(a_->ep.get(), bytes.data(), 1, nullptr, to_b_, at(), key, nullptr), 0);
  EXPECT_EQ(a_->failed(a_->tx.get()).err, FI_EACCES);
  write_fails(kSize + 1);
  memory.reset();
  write_fails(1);
  // Nor by its own program, which would end by it.
  fid_mr* none = nullptr;
  EXPECT_EQ(fi_mr_reg(b_->domain.get(), readable_, kSize, FI_REMOTE_WRITE, 0, 0, 0, &none, nullptr),
            -FI_EFAULT);
}

// The program would end by the access.
TEST_F(RdmShared, IsNotTouchedWhereItIsNoMoreOrMayNotBeWritten) {
  constexpr std::size_t kGone = 40'960;
  const auto memory = b_->memory(there_, kSize, kAll);
  const auto key = fi_mr_key(memory.get());
  ASSERT_EQ(
      ::mmap(there_ + kGone, kGone, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0),
      there_ + kGone);
  expect_refused(key, kGone);
  expect_refused(key, kGone - 8 + kGone);
  expect_written(key, kGone - 8);
  // A write that reaches there changes nothing.
  const std::string both(16, 'x');
  ASSERT_EQ(
      fi_write(a_->ep.get(), both.data(), both.size(), nullptr, to_b_, at(kGone - 8), key, nullptr),
      0);
  EXPECT_EQ(a_->failed(a_->tx.get()).err, FI_EACCES);
  EXPECT_EQ(std::string(seen_ + kGone - 8, 4), "here");
}
// Whoever else has the file can make it shorter.
TEST_F(RdmShared, IsNotTouchedWhereItsFileHasBecomeShorter) {
  const auto memory = b_->memory(there_, kSize, kAll);
  const auto key = fi_mr_key(memory.get());
  ASSERT_EQ(::ftruncate(file_, 4096), 0);
  expect_refused(key, 8192);
  expect_written(key, 100);
}

TEST_F(RdmShared, WhatWaitsForAnAccessFailsWithItsPeer) {
  const auto memory = b_->memory(there_, kSize, kAll);
  const auto key = fi_mr_key(memory.get());
  constexpr std::uint64_t kOne = 1;
  std::vector<char> bytes(kSize);
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(fi_write(a_->ep.get(), bytes.data(), kSize, nullptr, to_b_, at(), key, &bytes), 0);
    ASSERT_EQ(
        fi_atomic(a_->ep.get(), &kOne, 1, nullptr, to_b_, at(), key, FI_UINT32, FI_SUM, &bytes), 0);
  }
  a_->completed(a_->tx.get());
  a_->others.clear();
  b_->ep.reset();
  for (int i = 0; i < 5; ++i) EXPECT_EQ(a_->failed(a_->tx.get()).op_context, &bytes);
}

// Another endpoint of `b`, where counters count what `a` does to its memory.
class RdmRmaEvent : public RdmRma {
 protected:
  RdmRmaEvent() {
    make(0, [](fi_info& asked) { asked.caps |= FI_ATOMIC | FI_RMA_EVENT; });
    fi_cntr_attr attr{};
    attr.events = FI_CNTR_EVENTS_COMP;
    attr.wait_obj = FI_WAIT_NONE;
    for (auto* const counter : {&reads_, &writes_, &memory_writes_}) {
      fid_cntr* made = nullptr;
      EXPECT_EQ(fi_cntr_open(b_->domain.get(), &attr, &made, nullptr), 0);
      counter->reset(made);
    }
    fid_ep* made = nullptr;
    EXPECT_EQ(fi_endpoint(b_->domain.get(), info_.get(), &made, nullptr), 0);
    ep_.reset(made);
    EXPECT_EQ(fi_ep_bind(made, &b_->av->fid, 0), 0);
    EXPECT_EQ(fi_ep_bind(made, &reads_->fid, FI_REMOTE_READ), 0);
    EXPECT_EQ(fi_ep_bind(made, &writes_->fid, FI_REMOTE_WRITE), 0);
    EXPECT_EQ(fi_enable(made), 0);
    sockaddr_in name{};
    auto length = sizeof name;
    EXPECT_EQ(fi_getname(&made->fid, &name, &length), 0);
    to_ep_ = a_->insert(name);
  }

  // `a` has been told of its operation. By then the peer has been told, too.
  void expect_counted(std::uint64_t reads, std::uint64_t writes, std::uint64_t memory_writes) {
    a_->completed(a_->tx.get());
    EXPECT_EQ(fi_cntr_read(reads_.get()), reads);
    EXPECT_EQ(fi_cntr_read(writes_.get()), writes);
    EXPECT_EQ(fi_cntr_read(memory_writes_.get()), memory_writes);
  }

  Fid<fid_cntr> reads_, writes_, memory_writes_;
  Fid<fid_ep> ep_;
  fi_addr_t to_ep_ = FI_ADDR_NOTAVAIL;
};

TEST_F(RdmRmaEvent, CountersOfTheOwnerCountEachAccessOnce) {
  alignas(8) std::array<std::uint64_t, 4> there{}, other{};
  const auto memory = b_->memory(there.data(), sizeof there, FI_REMOTE_READ | FI_REMOTE_WRITE);
  const auto not_counted = b_->memory(other.data(), sizeof other, FI_REMOTE_READ | FI_REMOTE_WRITE);
  EXPECT_EQ(fi_mr_bind(memory.get(), &memory_writes_->fid, FI_SEND), -FI_EBADFLAGS);
  ASSERT_EQ(fi_mr_bind(memory.get(), &memory_writes_->fid, FI_REMOTE_WRITE), 0);
  EXPECT_EQ(fi_mr_bind(memory.get(), &memory_writes_->fid, FI_REMOTE_WRITE), -FI_EINVAL);
  const auto at = reinterpret_cast<std::uintptr_t>(there.data());
  const auto key = fi_mr_key(memory.get());
  auto* const ep = a_->ep.get();
  std::uint64_t here = 1;
  ASSERT_EQ(fi_write(ep, &here, sizeof here, nullptr, to_ep_, at, key, nullptr), 0);
  expect_counted(0, 1, 1);
  ASSERT_EQ(fi_read(ep, &here, sizeof here, nullptr, to_ep_, at, key, nullptr), 0);
  expect_counted(1, 1, 1);
  ASSERT_EQ(fi_writedata(ep, &here, sizeof here, nullptr, 5, to_ep_, at, key, nullptr), 0);
  expect_counted(1, 2, 2);
  ASSERT_EQ(fi_atomic(ep, &here, 1, nullptr, to_ep_, at, key, FI_UINT64, FI_BXOR, nullptr), 0);
  expect_counted(1, 3, 3);
  ASSERT_EQ(fi_fetch_atomic(ep, &here, 1, nullptr, &here, nullptr, to_ep_, at, key, FI_UINT64,
                            FI_SUM, nullptr),
            0);
  expect_counted(2, 3, 3);
  const auto where = reinterpret_cast<std::uintptr_t>(other.data());
  ASSERT_EQ(fi_write(ep, &here, sizeof here, nullptr, to_ep_, where, fi_mr_key(not_counted.get()),
                     nullptr),
            0);
  expect_counted(2, 4, 3);
  // What is not permitted is none.
  ASSERT_EQ(fi_write(ep, &here, sizeof here, nullptr, to_ep_, at, key + 1000, nullptr), 0);
  a_->failed(a_->tx.get());
  ASSERT_EQ(fi_writedata(ep, &here, sizeof here, nullptr, 5, to_ep_, at, key + 1000, nullptr), 0);
  a_->failed(a_->tx.get());
  ASSERT_EQ(fi_writedata(ep, &here, sizeof here, nullptr, 6, to_ep_, at, key, nullptr), 0);
  expect_counted(2, 5, 4);
}

// Memory that may only be read, such as a mapped file, is read by its program for its peers.
TEST_F(RdmRmaEvent, WhatMayOnlyBeReadIsReadAndCounted) {
  static constexpr std::array<char, 20'000> kText{'t', 'e', 'x', 't'};
  const auto memory = b_->memory(const_cast<char*>(kText.data()), kText.size(), FI_REMOTE_READ);
  ASSERT_EQ(fi_mr_bind(memory.get(), &memory_writes_->fid, FI_REMOTE_READ), 0);
  const auto at = reinterpret_cast<std::uintptr_t>(kText.data());
  const auto key = fi_mr_key(memory.get());
  std::array<char, kText.size()> got{};
  ASSERT_EQ(fi_read(a_->ep.get(), got.data(), got.size(), nullptr, to_ep_, at, key, nullptr), 0);
  expect_counted(1, 0, 1);
  EXPECT_EQ(got, kText);
  ASSERT_EQ(fi_write(a_->ep.get(), got.data(), 1, nullptr, to_ep_, at, key, nullptr), 0);
  EXPECT_EQ(a_->failed(a_->tx.get()).err, FI_EACCES);
  for (const auto access : {FI_REMOTE_WRITE, FI_REMOTE_READ | FI_READ, FI_REMOTE_READ | FI_RECV}) {
    fid_mr* none = nullptr;
    EXPECT_EQ(
        fi_mr_reg(b_->domain.get(), kText.data(), kText.size(), access, 0, 0, 0, &none, nullptr),
        -FI_EFAULT);
  }
}

// The counter has counted what was posted before, when what is fenced begins.
TEST_F(RdmRmaEvent, AFenceWaitsForWhatIsCounted) {
  std::vector<char> there(8);
  const auto memory = b_->memory(there.data(), there.size(), FI_REMOTE_WRITE);
  iovec here{there.data(), 1};
  fi_rma_iov remote{reinterpret_cast<std::uintptr_t>(there.data()), 1, fi_mr_key(memory.get())};
  fi_msg_rma write{};
  write.msg_iov = &here;
  write.iov_count = 1;
  write.addr = to_ep_;
  write.rma_iov = &remote;
  write.rma_iov_count = 1;
  ASSERT_EQ(fi_writemsg(a_->ep.get(), &write, 0), 0);
  EXPECT_EQ(fi_writemsg(a_->ep.get(), &write, FI_FENCE), -FI_EAGAIN);
  expect_counted(0, 1, 0);
  ASSERT_EQ(fi_writemsg(a_->ep.get(), &write, FI_FENCE), 0);
  expect_counted(0, 2, 0);
}

TEST_F(RdmRmaEvent, ItCostsNothingUnlessItIsAskedFor) {
  EXPECT_NE(info_->caps & FI_RMA_EVENT, 0U);
  const auto asked = rdm_hints();
  asked->caps = 0;
  Info all;
  ASSERT_EQ(get_info(nullptr, nullptr, 0, asked, all), 0);
  EXPECT_NE(all->caps & FI_ATOMIC, 0U);
  EXPECT_EQ(all->caps & FI_RMA_EVENT, 0U);
  fid_ep* made = nullptr;
  ASSERT_EQ(fi_endpoint(b_->domain.get(), all.get(), &made, nullptr), 0);
  const Fid<fid_ep> plain(made);
  EXPECT_EQ(fi_ep_bind(made, &reads_->fid, FI_REMOTE_READ), -FI_ENOSYS);
}

}  // namespace
}  // namespace stp::test::rdm_rma_test
