// SPDX-License-Identifier: BSD-3-Clause
// Atomic operations of endpoints of FI_EP_RDM: on each type, and while others change the numbers.
#include <rdma/fi_atomic.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstring>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "libst/libfabric/op.h"
#include "tests/libfabric/rdm_fixture.h"

namespace stp::test::atomic_test {
namespace {

constexpr std::uint64_t kShared = FI_REMOTE_READ | FI_REMOTE_WRITE;

template <class T>
struct Case {
  fi_op op;
  T old, operand, compare, expected;
};

// By hand, for numbers that each type has.
template <class T>
std::vector<Case<T>> cases() {
  std::vector<Case<T>> all{
      {FI_MIN, 5, 3, 0, 3},          {FI_MIN, 3, 5, 0, 3},         {FI_MAX, 5, 3, 0, 5},
      {FI_MAX, 3, 5, 0, 5},          {FI_SUM, 40, 2, 0, 42},       {FI_PROD, 6, 7, 0, 42},
      {FI_LOR, 0, 7, 0, 1},          {FI_LOR, 0, 0, 0, 0},         {FI_LAND, 3, 7, 0, 1},
      {FI_LAND, 3, 0, 0, 0},         {FI_LXOR, 3, 7, 0, 0},        {FI_LXOR, 3, 0, 0, 1},
      {FI_ATOMIC_WRITE, 3, 9, 0, 9}, {FI_ATOMIC_READ, 3, 9, 0, 3}, {FI_CSWAP, 3, 9, 3, 9},
      {FI_CSWAP, 3, 9, 4, 3},        {FI_CSWAP_NE, 3, 9, 3, 3},    {FI_CSWAP_NE, 3, 9, 4, 9},
      {FI_CSWAP_LE, 3, 9, 3, 9},     {FI_CSWAP_LE, 3, 9, 4, 3},    {FI_CSWAP_LT, 3, 9, 2, 9},
      {FI_CSWAP_LT, 3, 9, 3, 3},     {FI_CSWAP_GE, 3, 9, 3, 9},    {FI_CSWAP_GE, 3, 9, 2, 3},
      {FI_CSWAP_GT, 3, 9, 4, 9},     {FI_CSWAP_GT, 3, 9, 3, 3}};
  if constexpr (std::integral<T>) {
    all.insert(all.end(),
               {{FI_BOR, 5, 3, 0, 7},
                {FI_BAND, 5, 3, 0, 1},
                {FI_BXOR, 5, 3, 0, 6},
                {FI_MSWAP, 0x55, 0x2a, 0x0f, 0x5a},
                {FI_SUM, std::numeric_limits<T>::max(), 1, 0, std::numeric_limits<T>::min()}});
  }
  if constexpr (std::signed_integral<T> || std::floating_point<T>)
    all.push_back({FI_MIN, 1, -2, 0, -2});
  return all;
}

class RdmAtomic : public RdmTest {
 protected:
  RdmAtomic() {
    make(0, [](fi_info& asked) { asked.caps |= FI_ATOMIC; });
  }

  // Fetches `op` of the number at `at` in memory of `b`, as the call of its kind does.
  template <class T>
  ssize_t fetch(fi_datatype type, const Case<T>& each, T* at, std::uint64_t key, T& old) {
    const auto address = reinterpret_cast<std::uintptr_t>(at);
    if (each.op >= FI_CSWAP)
      return fi_compare_atomic(a_->ep.get(), &each.operand, 1, nullptr, &each.compare, nullptr,
                               &old, nullptr, to_b_, address, key, type, each.op, &old);
    return fi_fetch_atomic(a_->ep.get(), &each.operand, 1, nullptr, &old, nullptr, to_b_, address,
                           key, type, each.op, &old);
  }

  // Each operation changes the number in the middle of the memory, and no byte beside it.
  template <class T>
  void expect_all(fi_datatype type) {
    alignas(8) std::array<T, 24 / sizeof(T)> there;
    const auto memory = b_->memory(there.data(), sizeof there, kShared);
    for (std::size_t at = 8 / sizeof(T); at < 16 / sizeof(T); ++at)
      for (const auto& each : cases<T>()) {
        SCOPED_TRACE(fi_tostr(&type, FI_TYPE_ATOMIC_TYPE));
        SCOPED_TRACE(fi_tostr(&each.op, FI_TYPE_ATOMIC_OP));
        there.fill(T{77});
        there[at] = each.old;
        auto expected = there;
        expected[at] = each.expected;
        T old{};
        ASSERT_EQ(fetch(type, each, &there[at], fi_mr_key(memory.get()), old), 0);
        const auto told = a_->completed(a_->tx.get());
        EXPECT_EQ(told.flags, FI_ATOMIC | FI_READ);
        EXPECT_EQ(told.op_context, &old);
        EXPECT_EQ(old, each.old);
        EXPECT_EQ(there, expected);
      }
  }

  // Adds without a result, as often as the endpoint takes it.
  template <class T>
  void add(fi_datatype type, T* at, std::uint64_t key, int times) {
    const T one = 1;
    for (int i = 0; i < times; ++i) {
      ASSERT_EQ(fi_atomic(a_->ep.get(), &one, 1, nullptr, to_b_,
                          reinterpret_cast<std::uintptr_t>(at), key, type, FI_SUM, nullptr),
                0);
      EXPECT_EQ(a_->completed(a_->tx.get()).flags, FI_ATOMIC | FI_WRITE);
    }
  }
};

TEST_F(RdmAtomic, EachOperationChangesTheNumberAndNothingBesideIt) {
  expect_all<std::int8_t>(FI_INT8);
  expect_all<std::uint8_t>(FI_UINT8);
  expect_all<std::int16_t>(FI_INT16);
  expect_all<std::uint16_t>(FI_UINT16);
  expect_all<std::int32_t>(FI_INT32);
  expect_all<std::uint32_t>(FI_UINT32);
  expect_all<std::int64_t>(FI_INT64);
  expect_all<std::uint64_t>(FI_UINT64);
  expect_all<float>(FI_FLOAT);
  expect_all<double>(FI_DOUBLE);
}

// Another thread of the peer changes the number itself, and the one beside it. What is added to the
// lower one takes two steps or more.
TEST_F(RdmAtomic, NothingIsLostWhileThePeerChangesTheSameBytes) {
  alignas(8) std::array<std::uint32_t, 2> there{};
  const auto memory = b_->memory(there.data(), sizeof there, kShared);
  constexpr int kTimes = 250;
  std::atomic<bool> done{false};
  std::uint32_t changes = 0;
  std::jthread other([&] {
    for (; !done; ++changes)
      for (auto& number : there) std::atomic_ref(number).fetch_add(1);
  });
  for (auto& number : there) add(FI_UINT32, &number, fi_mr_key(memory.get()), kTimes);
  done = true;
  other.join();
  EXPECT_EQ(there[0], changes + kTimes);
  EXPECT_EQ(there[1], changes + kTimes);
}

// Of a sum nothing is carried out of the 8 bytes. So in their highest one a FetchOp adds it, which
// is one round trip instead of two.
TEST(Atomic, ASumInTheHighestBytesIsOneStep) {
  const std::uint32_t operand = 0x90000001;
  std::uint32_t got = 0;
  const fi::Function sum{.kind = fi::Function::Kind::kFetch,
                         .type = FI_UINT32,
                         .op = FI_SUM,
                         .operand = &operand,
                         .compare = nullptr,
                         .result = &got};
  constexpr auto kHighest = std::endian::native == std::endian::little ? 4 : 0;
  fi::Atomic highest(sum, 0x1000 + kHighest);
  EXPECT_FALSE(highest.repeats());
  EXPECT_EQ(highest.step().op, STM_FETCH_ADD);
  EXPECT_EQ(highest.step().operand, 0x9000000100000000);
  EXPECT_FALSE(highest.goes_on(0x8000000100000002));
  EXPECT_EQ(got, 0x80000001);
  EXPECT_TRUE(fi::Atomic(sum, 0x1004 - kHighest).repeats()) << "it would carry into the other one";
}

// Who was the last to change the 8 bytes stores at once. Who was not reads them, and goes on as
// ever.
TEST(Atomic, ASumIsOneStepWhereWhatWasLeftStillStands) {
  const std::int32_t operand = 5;
  std::int32_t got = 0;
  const fi::Function sum{.kind = fi::Function::Kind::kFetch,
                         .type = FI_INT32,
                         .op = FI_SUM,
                         .operand = &operand,
                         .compare = nullptr,
                         .result = &got};
  constexpr std::uint64_t kLowest = std::endian::native == std::endian::little ? 0x1000 : 0x1004;
  fi::Atomic first(sum, kLowest);
  EXPECT_TRUE(first.goes_on(0x700000002)) << "it has read";
  EXPECT_FALSE(first.goes_on(0x700000002)) << "it has stored";
  EXPECT_EQ(got, 2);
  EXPECT_EQ(first.left(), 0x700000007);
  fi::Atomic second(sum, kLowest), third(sum, kLowest);
  second.expect(first.left());
  third.expect(first.left());
  EXPECT_FALSE(second.goes_on(0x700000007));
  EXPECT_EQ(got, 7);
  EXPECT_EQ(second.left(), 0x70000000c);
  EXPECT_TRUE(third.goes_on(0x70000000c)) << "another one stands there";
  EXPECT_EQ(third.step().operand, 0x700000011);
  EXPECT_FALSE(third.goes_on(0x70000000c));
  EXPECT_EQ(got, 12);
}

// Connections with the same peer, and the 8 bytes in its memory, without a link between them.
class Words : public testing::Test {
 protected:
  // An operation under way, on memory with that key.
  struct Way {
    fi::LastWord& last;
    fi::Op op;
    Way(fi::LastWord& of, const fi::Function& function, std::uint64_t address, std::uint32_t key)
        : last(of) {
      op.atomic = std::make_unique<fi::Atomic>(function, address);
      op.remote_key = key;
      last.begin(op);
    }
  };
  // Its next step. False: that was the last one.
  static bool step(Way& way, std::uint64_t& word) {
    const auto& step = way.op.atomic->step();
    auto old = word;
    if (step.op == STM_FETCH_ADD)
      word += step.operand;
    else if (old == step.compare)
      word = step.operand;
    int status = 0;
    way.op.span.data = reinterpret_cast<std::byte*>(&old);
    way.last.go_on(nullptr, way.op, status);
    way.op.span.data = nullptr;
    return status != 0;  // it could not be posted: there is no connection
  }
};

TEST_F(Words, AreExpectedWhereTheLastOperationOfSeveralStepsLeftThemAlone) {
  const std::int16_t two = 2;
  const fi::Function sum{
      .kind = fi::Function::Kind::kPlain, .type = FI_INT16, .op = FI_SUM, .operand = &two};
  const auto steps = [&](fi::LastWord& last, std::uint64_t& word, std::uint64_t address,
                         std::uint32_t key) {
    Way way(last, sum, address, key);
    int count = 1;
    while (step(way, word)) ++count;
    return count;
  };
  fi::LastWord last, other;
  std::uint64_t word = 7, beside = 9;
  EXPECT_EQ(steps(last, word, 0x1002, 1), 2);
  EXPECT_EQ(steps(last, word, 0x1002, 1), 1);
  EXPECT_EQ(steps(last, word, 0x1004, 1), 1) << "another number in the same bytes";
  EXPECT_EQ(steps(other, word, 0x1002, 1), 2) << "of another peer, as it seems";
  EXPECT_EQ(steps(last, word, 0x1002, 1), 2) << "somebody has come in between";
  EXPECT_EQ(steps(last, beside, 0x1002, 2), 2) << "of other memory";
  EXPECT_EQ(steps(last, beside, 0x100a, 2), 2) << "other bytes";
}

// Four operations under way on two connections, whose steps come in any order.
TEST_F(Words, LoseNothingWhateverComesInBetween) {
  struct Place {
    fi_datatype type;
    std::size_t size, at;
  };
  constexpr std::array<Place, 4> kPlaces{
      {{FI_UINT8, 1, 0}, {FI_UINT8, 1, 1}, {FI_INT16, 2, 2}, {FI_UINT32, 4, 4}}};
  constexpr int kTimes = 2'000;
  std::mt19937 random(1);
  const auto any = [&](std::size_t below) { return random() % below; };
  std::array<fi::LastWord, 2> connections;
  std::uint64_t word = 0, expected = 0;
  std::vector<std::unique_ptr<Way>> ways;
  for (int begun = 0; begun < kTimes || !ways.empty();) {
    if (begun < kTimes && ways.size() < 4) {
      const auto& place = kPlaces[any(kPlaces.size())];
      const std::uint64_t operand = random();
      const fi::Function sum{.kind = fi::Function::Kind::kPlain,
                             .type = place.type,
                             .op = FI_SUM,
                             .operand = &operand};
      ways.push_back(std::make_unique<Way>(connections[any(2)], sum, 0x1000 + place.at, 1));
      auto* const there = reinterpret_cast<std::byte*>(&expected) + place.at;
      std::uint64_t number = 0;
      std::memcpy(&number, there, place.size);
      number += operand;
      std::memcpy(there, &number, place.size);
      ++begun;
    }
    const auto chosen = ways.begin() + static_cast<std::ptrdiff_t>(any(ways.size()));
    if (!step(**chosen, word)) ways.erase(chosen);
  }
  EXPECT_EQ(word, expected);
}

// `step` by `step`: the managed API alone cannot hold back what is fenced.
TEST_F(RdmAtomic, WhatIsFencedWaitsForAllStepsOfAnOperation) {
  alignas(8) double there = 0.5;
  const auto memory = b_->memory(&there, sizeof there, kShared);
  const auto key = fi_mr_key(memory.get());
  const auto at = reinterpret_cast<std::uintptr_t>(&there);
  const double operand = 0.25;
  double got = 0;
  ASSERT_EQ(
      fi_atomic(a_->ep.get(), &operand, 1, nullptr, to_b_, at, key, FI_DOUBLE, FI_SUM, nullptr), 0);
  const iovec iov{&got, sizeof got};
  const fi_rma_iov remote{at, sizeof got, key};
  fi_msg_rma read{};
  read.msg_iov = &iov;
  read.iov_count = 1;
  read.addr = to_b_;
  read.rma_iov = &remote;
  read.rma_iov_count = 1;
  EXPECT_EQ(fi_readmsg(a_->ep.get(), &read, FI_FENCE), -FI_EAGAIN);
  EXPECT_EQ(a_->completed(a_->tx.get()).flags, FI_ATOMIC | FI_WRITE);
  ASSERT_EQ(fi_readmsg(a_->ep.get(), &read, FI_FENCE), 0);
  a_->completed(a_->tx.get());
  EXPECT_EQ(got, 0.75);
}

TEST_F(RdmAtomic, VectorsMessagesAndInjectedOnesDoTheSame) {
  alignas(8) std::array<std::uint32_t, 2> there{40, 7};
  const auto memory = b_->memory(there.data(), sizeof there, kShared);
  const auto key = fi_mr_key(memory.get());
  const auto at = reinterpret_cast<std::uintptr_t>(there.data());
  std::uint32_t operand = 1, compare = 41, old = 0;
  auto* const ep = a_->ep.get();
  ASSERT_EQ(fi_inject_atomic(ep, &operand, 1, to_b_, at, key, FI_UINT32, FI_SUM), 0);
  fi_ioc from{&operand, 1}, than{&compare, 1}, to{&old, 1};
  fi_rma_ioc remote{at, 1, key};
  fi_msg_atomic msg{};
  msg.msg_iov = &from;
  msg.iov_count = 1;
  msg.addr = to_b_;
  msg.rma_iov = &remote;
  msg.rma_iov_count = 1;
  msg.datatype = FI_UINT32;
  msg.op = FI_CSWAP;
  // The injected one is told by nobody: until it is there, another number stands there.
  for (; old != 41; a_->completed(a_->tx.get()))
    ASSERT_EQ(fi_compare_atomicmsg(ep, &msg, &than, nullptr, 1, &to, nullptr, 1, FI_COMPLETION), 0);
  EXPECT_EQ(there[0], 1U);
  ASSERT_EQ(fi_fetch_atomicv(ep, &from, nullptr, 1, &to, nullptr, 1, to_b_, at, key, FI_UINT32,
                             FI_BOR, nullptr),
            0);
  a_->completed(a_->tx.get());
  EXPECT_EQ(old, 1U);
  msg.op = FI_ATOMIC_WRITE;
  operand = 12;
  ASSERT_EQ(fi_atomicmsg(ep, &msg, FI_INJECT | FI_COMPLETION), 0);
  operand = 13;
  a_->completed(a_->tx.get());
  EXPECT_EQ(there[0], 12U);
  EXPECT_EQ(there[1], 7U);
  EXPECT_EQ(fi_atomicmsg(ep, &msg, FI_REMOTE_CQ_DATA), -FI_EBADFLAGS);
}

TEST_F(RdmAtomic, WhatIsNotOfferedIsRefused) {
  alignas(8) std::array<std::uint64_t, 2> there{};
  const auto memory = b_->memory(there.data(), sizeof there, FI_REMOTE_READ);
  const auto key = fi_mr_key(memory.get());
  const auto at = reinterpret_cast<std::uintptr_t>(there.data());
  const std::uint64_t operand[2]{};
  auto* const ep = a_->ep.get();
  const auto add = [&](std::size_t count, std::uint64_t address, fi_datatype type, fi_op op) {
    return fi_atomic(ep, operand, count, nullptr, to_b_, address, key, type, op, nullptr);
  };
  EXPECT_EQ(add(2, at, FI_UINT64, FI_SUM), -FI_EINVAL);
  EXPECT_EQ(add(1, at + 4, FI_UINT64, FI_SUM), -FI_EINVAL);
  EXPECT_EQ(add(1, at, FI_DOUBLE, FI_BOR), -FI_EOPNOTSUPP);
  EXPECT_EQ(add(1, at, FI_LONG_DOUBLE, FI_SUM), -FI_EOPNOTSUPP);
  EXPECT_EQ(add(1, at, FI_UINT64, FI_CSWAP), -FI_EOPNOTSUPP);
  EXPECT_EQ(add(1, at, FI_UINT64, FI_ATOMIC_READ), -FI_EOPNOTSUPP);
  ASSERT_EQ(add(1, at, FI_UINT64, FI_SUM), 0);
  EXPECT_EQ(a_->failed(a_->tx.get()).err, FI_EACCES);
  ASSERT_EQ(add(1, at, FI_UINT32, FI_MAX), 0);  // its first step reads, and may not either
  EXPECT_EQ(a_->failed(a_->tx.get()).err, FI_EACCES);

  std::size_t count = 0;
  EXPECT_EQ(fi_atomicvalid(ep, FI_UINT8, FI_MIN, &count), 0);
  EXPECT_EQ(count, 1U);
  EXPECT_EQ(fi_fetch_atomicvalid(ep, FI_FLOAT, FI_ATOMIC_READ, &count), 0);
  EXPECT_EQ(fi_compare_atomicvalid(ep, FI_DOUBLE, FI_CSWAP_GT, &count), 0);
  EXPECT_EQ(fi_compare_atomicvalid(ep, FI_DOUBLE, FI_MSWAP, &count), -FI_EOPNOTSUPP);
  EXPECT_EQ(fi_atomicvalid(ep, FI_INT128, FI_SUM, &count), -FI_EOPNOTSUPP);
  EXPECT_EQ(fi_atomicvalid(ep, FI_UINT64, static_cast<fi_op>(99), &count), -FI_EINVAL);
  fi_atomic_attr attr{};
  EXPECT_EQ(fi_query_atomic(a_->domain.get(), FI_INT16, FI_SUM, &attr, FI_FETCH_ATOMIC), 0);
  EXPECT_EQ(attr.count, 1U);
  EXPECT_EQ(attr.size, 2U);
  EXPECT_EQ(fi_query_atomic(a_->domain.get(), FI_INT16, FI_SUM, &attr,
                            FI_FETCH_ATOMIC | FI_COMPARE_ATOMIC),
            -FI_EINVAL);
}

// The bytes around a short number have to be in the memory, too.
TEST_F(RdmAtomic, TheEightBytesAroundANumberHaveToBeShared) {
  alignas(8) std::array<std::uint32_t, 2> there{};
  const auto memory = b_->memory(there.data(), sizeof(std::uint32_t), kShared);
  const std::uint32_t one = 1;
  ASSERT_EQ(fi_atomic(a_->ep.get(), &one, 1, nullptr, to_b_,
                      reinterpret_cast<std::uintptr_t>(there.data()), fi_mr_key(memory.get()),
                      FI_UINT32, FI_SUM, nullptr),
            0);
  EXPECT_EQ(a_->failed(a_->tx.get()).err, FI_EACCES);
}

}  // namespace
}  // namespace stp::test::atomic_test
