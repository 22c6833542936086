// SPDX-License-Identifier: BSD-3-Clause
#include "stp/node/memory/ordered_copy.h"

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
  const auto enough = std::chrono::steady_clock::now() + std::chrono::seconds(15);
  for (const auto length : kLengths)
    for (const std::size_t at : {0, 3, 8, 20})
      poll_last_byte(length, at, std::chrono::steady_clock::now() < enough ? 300 : 2);
}

}  // namespace
}  // namespace stp::test::ordered_copy_test
