// SPDX-License-Identifier: BSD-3-Clause
// No frame that fails a check writes a byte; each check has its own counter (section 7).

#include "stp/node/inbound/placement.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <thread>
#include <vector>

#include "tests/stp/node/write_fixture.h"

namespace stp::test {
namespace {

namespace flag = wire::flag;

class Placement : public Writing {
 protected:
  wire::Header permission;

  void SetUp() override {
    Writing::SetUp();
    permission = grant(3 * kStu);
  }
};

TEST_F(Placement, the_right_stu_is_written) {
  inject_stu(stu(permission, 1, kStu), 0, kStu);
  EXPECT_TRUE(arrived(kStu, kStu));
}

// protocol: 7.4, 7.5, 7.6
TEST_F(Placement, an_mx_that_does_not_live) {
  auto h = stu(permission, 0, 0);
  h.mx = 999;
  expect_dropped(h, Counter::kBadMx);
  h.mx = 0;
  expect_dropped(h, Counter::kBadMx);
  ASSERT_EQ(b.node.free_mx(listener, mx), 0);
  expect_dropped(stu(permission, 0, 0), Counter::kBadMx);
}

// protocol: 7.3, 7.6
TEST_F(Placement, an_mx_of_another_endpoint_or_connection) {
  const auto other = b.open({.bufsize = kBufsize});
  Buffers foreign(kBufsize, 4);
  const auto piece = foreign.all();
  RegionId region = kNoneId;
  std::uint16_t foreign_mx = 0;
  ASSERT_EQ(b.node.map(other, Direction::kReceive, kTargetBufx, {&piece, 1}, region), 0);
  ASSERT_EQ(b.node.alloc_mx(region, kNoneId, permit::kData, foreign_mx), 0);
  auto h = stu(permission, 0, 0);
  h.mx = foreign_mx;
  expect_dropped(h, Counter::kMxNotOwned);
  for (auto byte : foreign.all()) ASSERT_EQ(byte, std::byte{0});
}

// protocol: 7.6
TEST_F(Placement, a_bufx_outside_the_mx) {
  auto h = stu(permission, 0, 0);
  h.bufx = kTargetBufx - 1;
  expect_dropped(h, Counter::kBadBufx);
  h.bufx = kTargetBufx + kBuffers;
  expect_dropped(h, Counter::kBadBufx);
  h.bufx = 0xffffffff;
  expect_dropped(h, Counter::kBadBufx);
}

// protocol: 7.6
TEST_F(Placement, an_offset_beyond_the_buffer) {
  auto h = stu(permission, 0, 0);
  h.offset = kStu;
  expect_dropped(h, Counter::kBadOffset);
  h.offset = 0xffffffff;
  expect_dropped(h, Counter::kBadOffset);
}

// protocol: 7.6
TEST_F(Placement, an_stu_that_leaves_its_buffer) {
  auto h = stu(permission, 0, 0);
  h.offset = 1;
  expect_dropped(h, Counter::kStuCrossesBuffer);
}

// protocol: 7.3, 7.6
TEST_F(Placement, an_mx_that_does_not_permit_data) {
  std::uint16_t get_only = 0;
  ASSERT_EQ(b.node.alloc_mx(target_region, cb.id, permit::kGet, get_only), 0);
  auto h = stu(permission, 0, 0);
  h.mx = get_only;
  expect_dropped(h, Counter::kNoPermission);
}

// protocol: 7.6
TEST_F(Placement, an_id_never_granted) {
  auto h = stu(permission, 0, 0);
  h.d_id = kRId + 1;
  expect_dropped(h, Counter::kNoGrant);
}

// protocol: 7.6, 7.7
TEST_F(Placement, a_block_never_granted) {
  auto h = stu(permission, 0, 0);
  h.b_num = 1;
  expect_dropped(h, Counter::kBadBNum);
}

// protocol: 7.6, 7.9
TEST_F(Placement, an_address_outside_the_grant) {
  auto h = stu(permission, 3, 3 * kStu);
  expect_dropped(h, Counter::kOutsideGrant);  // inside the Mx, beyond T_len
  std::uint16_t wider = 0;
  ASSERT_EQ(b.node.alloc_mx(target_region, cb.id, permit::kData, wider), 0);
  h = stu(permission, 0, 0);
  h.mx = wider;
  expect_dropped(h, Counter::kOutsideGrant);  // another Mx than the CTS named
}

// protocol: 8.3, 8.6
TEST_F(Placement, stu_numbers_that_do_not_fit_the_tiling) {
  expect_dropped(stu(permission, 1, 0), Counter::kBadStuNum);  // wrong tile for its number
  expect_dropped(stu(permission, 0, kStu), Counter::kBadStuNum);
  expect_dropped(stu(permission, 0, 0), Counter::kBadStuNum, 100);  // short, and not the last
  expect_dropped(stu(permission, 0, 0, flag::kLast), Counter::kBadStuNum);  // the Block goes on
  expect_dropped(stu(permission, 2, 2 * kStu), Counter::kBadStuNum);  // the last STU without Last
  expect_dropped(stu(permission, 1, kStu + 8), Counter::kBadStuNum, 8);
}

// protocol: 6.9
TEST_F(Placement, a_full_queue_drops_what_would_complete_a_block_and_a_repeat_delivers_it) {
  wire::Header nop = stu(permission, 0, 0);
  nop.op_flags = wire::op_flags(wire::Op::kNoOperation);
  for (int i = 0; i < 64; ++i) inject(b, kMacA, nop);
  inject_stu(stu(permission, 0, 0), 0, kStu);
  inject_stu(stu(permission, 1, kStu), kStu, kStu);
  inject_stu(stu(permission, 2, 2 * kStu, flag::kLast), 2 * kStu, kStu);
  EXPECT_EQ(b.count(Counter::kSlotOverrun), 1U);
  EXPECT_TRUE(untouched(2 * kStu));
  get(cb);
  inject_stu(stu(permission, 2, 2 * kStu, flag::kLast), 2 * kStu, kStu);
  EXPECT_TRUE(arrived(3 * kStu));
}

}  // namespace
}  // namespace stp::test

namespace stp::test::ordered_copy_test {
namespace {

constexpr std::size_t kMost = 9'000, kAround = 64;
const std::vector<std::size_t> kLengths = {1,   2,   3,   4,   7,   8,   9,   12,    15,    16,
                                           20,  24,  31,  32,  33,  36,  40,  63,    64,    65,
                                           100, 127, 128, 136, 255, 256, 300, 1'000, 1'024, 8'192};

struct Room {
  alignas(64) std::byte bytes[kMost + 2 * kAround] = {};
};

// protocol: 8.14
TEST(OrderedCopy, every_length_and_alignment_arrives_and_nothing_else_changes) {
  Room from, to, expected;
  for (std::size_t i = 0; i < kMost; ++i) from.bytes[i] = static_cast<std::byte>(i * 7 + i / 251);
  for (const auto length : kLengths)
    for (std::size_t to_at = 0; to_at < 40; ++to_at)
      for (std::size_t from_at = 0; from_at < 9; ++from_at) {
        std::memset(to.bytes, 0xee, length + 2 * kAround);
        std::memset(expected.bytes, 0xee, length + 2 * kAround);
        std::memcpy(expected.bytes + to_at, from.bytes + from_at, length);
        copy_in_order(to.bytes + to_at, from.bytes + from_at, length);
        ASSERT_EQ(std::memcmp(to.bytes, expected.bytes, length + 2 * kAround), 0)
            << length << " bytes to " << to_at << " from " << from_at;
      }
}

TEST(OrderedCopy, what_overlaps_is_moved) {
  for (const std::size_t apart : {0, 1, 8, 31, 64, 200})
    for (const bool up : {false, true}) {
      Room room, expected;
      for (std::size_t i = 0; i < kMost; ++i) room.bytes[i] = static_cast<std::byte>(i % 251);
      expected = room;
      const auto from = up ? 0 : apart, to = up ? apart : 0;
      std::memmove(expected.bytes + to, expected.bytes + from, 1'000);
      copy_in_order(room.bytes + to, room.bytes + from, 1'000);
      ASSERT_EQ(std::memcmp(room.bytes, expected.bytes, kMost), 0) << apart;
    }
}

// Two pages. The first write to the second page causes a fault; the handler then checks what has
// been written to the first.
class WatchedPages {
 public:
  WatchedPages() {
    const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
    pages_ = static_cast<std::byte*>(
        ::mmap(nullptr, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    border_ = pages_ + page;
    struct sigaction watch {};
    watch.sa_handler = look;
    ::sigaction(SIGSEGV, &watch, &before_);
  }
  ~WatchedPages() {
    ::sigaction(SIGSEGV, &before_, nullptr);
    ::munmap(pages_, 2 * static_cast<std::size_t>(border_ - pages_));
  }
  WatchedPages(const WatchedPages&) = delete;
  WatchedPages& operator=(const WatchedPages&) = delete;

  // Copies `length` bytes so that the last `tail` lie behind the border. Returns how many of the
  // others had not been written when the first of the tail was.
  std::size_t missing_at_the_tail(std::size_t length, std::size_t tail) {
    const auto size = static_cast<std::size_t>(border_ - pages_);
    std::memset(pages_, 0, 2 * size);
    ::mprotect(border_, size, PROT_READ);
    first_ = border_ - (length - tail);
    missing_ = length;
    const std::vector<std::byte> from(length, kByte);
    copy_in_order(first_, from.data(), length);
    return missing_;
  }

 private:
  static constexpr std::byte kByte{0x5a};
  static void look(int) {
    missing_ = static_cast<std::size_t>(
        std::count_if(first_, border_, [](std::byte each) { return each != kByte; }));
    ::mprotect(border_, static_cast<std::size_t>(border_ - pages_), PROT_READ | PROT_WRITE);
  }
  struct sigaction before_ {};
  static inline std::byte *pages_ = nullptr, *border_ = nullptr, *first_ = nullptr;
  static inline volatile std::size_t missing_ = 0;
};

// protocol: 8.14
TEST(OrderedCopy, nothing_of_the_tail_is_written_before_all_else_is) {
  WatchedPages pages;
  for (std::size_t length = 1; length <= 4'096; length += length < 300 ? 1 : 61)
    for (std::size_t tail = 1; tail <= std::min<std::size_t>(8, length); ++tail)
      ASSERT_EQ(pages.missing_at_the_tail(length, tail), 0U) << length << " bytes, tail " << tail;
}

// One thread copies. The other polls the last byte, then checks all others and clears the byte,
// which must not be written again. protocol: 8.14
void poll_last_byte(std::size_t length, std::size_t at, unsigned rounds) {
  static Room from, to;
  std::atomic<unsigned> placed{0}, consumed{0};
  to.bytes[at + length - 1] = std::byte{0};
  std::thread writer([&] {
    for (unsigned round = 1; round <= rounds; ++round) {
      std::memset(from.bytes, static_cast<int>(1 + round % 255), length);
      copy_in_order(to.bytes + at, from.bytes, length);
      placed.store(round, std::memory_order_release);
      while (consumed.load(std::memory_order_acquire) != round) std::this_thread::yield();
    }
  });
  std::atomic_ref<std::byte> last(to.bytes[at + length - 1]);
  unsigned early = 0, again = 0;
  for (unsigned round = 1; round <= rounds; ++round) {
    const auto value = static_cast<std::byte>(1 + round % 255);
    for (unsigned turns = 0; last.load(std::memory_order_acquire) == std::byte{0};)
      if (++turns % 256 == 0) std::this_thread::yield();
    for (std::size_t i = 0; i < length; ++i) early += to.bytes[at + i] != value ? 1 : 0;
    last.store(std::byte{0}, std::memory_order_relaxed);
    while (placed.load(std::memory_order_acquire) != round) std::this_thread::yield();
    again += last.load(std::memory_order_relaxed) != std::byte{0} ? 1 : 0;
    last.store(std::byte{0}, std::memory_order_relaxed);
    consumed.store(round, std::memory_order_release);
  }
  writer.join();
  EXPECT_EQ(early, 0U) << length << " bytes at " << at;
  EXPECT_EQ(again, 0U) << length << " bytes at " << at;
}

// protocol: 8.14
TEST(OrderedCopy, who_sees_the_last_byte_sees_all_of_them_once) {
  // Where both threads have to share a CPU, a round may take milliseconds.
  const auto enough = std::chrono::steady_clock::now() + std::chrono::seconds(4);
  for (const auto length : kLengths)
    for (const std::size_t at : {0, 3, 8, 20})
      poll_last_byte(length, at, std::chrono::steady_clock::now() < enough ? 300 : 2);
}

}  // namespace
}  // namespace stp::test::ordered_copy_test
