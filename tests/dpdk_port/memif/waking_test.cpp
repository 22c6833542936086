// SPDX-License-Identifier: BSD-3-Clause
#include "dpdk_port/memif/waking.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>

#include <vector>

namespace stp::port::memif {
namespace {

FileDescriptor make_bell(int flags = EFD_NONBLOCK) {
  return FileDescriptor(::eventfd(0, EFD_CLOEXEC | flags));
}

bool is_readable(int fd) {
  pollfd one{.fd = fd, .events = POLLIN, .revents = 0};
  return ::poll(&one, 1, 0) > 0;
}

TEST(MemifSignal, ArrivesAndMayBeSentWithoutEnd) {
  const auto bell = make_bell();
  for (int i = 0; i < 1'000; ++i) ASSERT_TRUE(send_signal(bell.get())) << i;
  std::uint64_t count = 0;
  EXPECT_EQ(::read(bell.get(), &count, sizeof count), static_cast<ssize_t>(sizeof count));
  EXPECT_EQ(count, 1'000U);
}

// A write to it would never return.
TEST(MemifSignal, DoesNotWaitForABellThatIsFull) {
  const auto bell = make_bell(0);
  constexpr std::uint64_t kFull = 0xffff'ffff'ffff'fffe;
  ASSERT_EQ(::write(bell.get(), &kFull, sizeof kFull), static_cast<ssize_t>(sizeof kFull));
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(send_signal(bell.get()));
}

TEST(MemifSignal, IsOnlyForEventfds) {
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  const FileDescriptor out(ends[0]), in(ends[1]);
  EXPECT_FALSE(send_signal(in.get()));
  EXPECT_FALSE(is_readable(out.get()));
  EXPECT_FALSE(send_signal(-1));
}

class MemifWaking : public ::testing::Test {
 protected:
  void begin() {
    const SleepSign of_a{&a_sleeps, a_bell.get()}, of_b{&b_sleeps, b_bell.get()};
    a.begin(of_a, of_b);
    b.begin(of_b, of_a);
    a.woke_up();  // what they began with
    b.woke_up();
  }
  [[nodiscard]] bool a_is_woken() const { return is_readable(a.descriptor()); }

  std::uint16_t a_sleeps = 0, b_sleeps = 0;
  FileDescriptor a_bell = make_bell(), b_bell = make_bell();
  Waking a, b;
};

TEST_F(MemifWaking, WhoSleepsIsWokenOnceForEachSleep) {
  begin();
  b.wake_peer();
  EXPECT_FALSE(a_is_woken()) << "it is awake";
  for (int i = 0; i < 3; ++i) {
    a.fall_asleep();
    EXPECT_FALSE(a_is_woken());
    b.wake_peer();
    EXPECT_TRUE(a_is_woken());
    ASSERT_EQ(::epoll_wait(a.descriptor(), std::vector<epoll_event>(1).data(), 1, 0), 1);
    b.wake_peer();
    EXPECT_FALSE(a_is_woken()) << "it has been told";
    a.woke_up();
    b.wake_peer();
    EXPECT_FALSE(a_is_woken()) << "it is awake again";
  }
}

TEST_F(MemifWaking, KnowsWhetherThePeerWakesIt) {
  const SleepSign of_a{&a_sleeps, a_bell.get()}, of_b{&b_sleeps, b_bell.get()};
  a.begin(of_a, of_b);
  a.fall_asleep();
  a.woke_up();
  EXPECT_FALSE(a.is_woken()) << "a peer that is none of ours";
  b.begin(of_b, of_a);
  a.fall_asleep();
  b.wake_peer();
  a.woke_up();
  EXPECT_TRUE(a.is_woken());
  a.end();
  EXPECT_FALSE(a.is_woken());
  a.fall_asleep();  // nobody is there
  a.woke_up();
  begin();
  a.fall_asleep();
  b.wake_peer();
  EXPECT_TRUE(a_is_woken()) << "of the next peer";
}

TEST_F(MemifWaking, WhatIsNoBellIsLeftAlone) {
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  const FileDescriptor out(ends[0]), in(ends[1]);
  for (const int none : {in.get(), -1}) {
    b.begin({&b_sleeps, b_bell.get()}, {&a_sleeps, none});
    a_sleeps += 2;
    b.wake_peer();
    b.begin({&b_sleeps, none}, {&a_sleeps, a_bell.get()});
    b.fall_asleep();
    b.woke_up();
    EXPECT_FALSE(b.is_woken());
  }
  EXPECT_FALSE(is_readable(out.get()));
}

// A signal makes the kernel visit everybody who waits for it.
class MemifManyWait : public MemifWaking {
 protected:
  void SetUp() override {
    constexpr int kSets = 200, kWatches = 400;
    for (int i = 0; i < kWatches; ++i)
      bells_.emplace_back(::fcntl(a_bell.get(), F_DUPFD_CLOEXEC, 0));
    epoll_event event{};
    event.events = EPOLLIN;
    for (int i = 0; i < kSets; ++i) {
      sets.emplace_back(::epoll_create1(EPOLL_CLOEXEC));
      for (const auto& bell : bells_)
        ASSERT_EQ(::epoll_ctl(sets.back().get(), EPOLL_CTL_ADD, bell.get(), &event), 0);
    }
    begin();
    EXPECT_TRUE(take_signals()) << "what they began with";
  }
  bool take_signals() {
    std::uint64_t count = 0;
    return ::read(a_bell.get(), &count, sizeof count) > 0;
  }
  // Whether B wakes A once.
  bool wakes() {
    a.fall_asleep();
    b.wake_peer();
    a.woke_up();
    return take_signals();
  }

  std::vector<FileDescriptor> sets;

 private:
  std::vector<FileDescriptor> bells_;
};

TEST_F(MemifManyWait, APeerThatMakesSignalsCostMuchGetsNoMore) {
  // Some may take less than they cost: a processor that others share does not measure exactly.
  constexpr unsigned kSignals = 32 * Waking::kMeasured;
  unsigned signals = 0;
  for (unsigned i = 0; i < kSignals; ++i) signals += wakes() ? 1 : 0;
  EXPECT_LT(signals, kSignals / 2);
  begin();  // it has connected again, and signals its own bell
  EXPECT_TRUE(take_signals());
  EXPECT_FALSE(wakes());
}

// A processor that others had for a moment may make one signal cost much.
TEST_F(MemifManyWait, APeerOfWhichOneSignalCostsMuchGetsMore) {
  EXPECT_TRUE(wakes());
  sets.clear();
  for (unsigned i = 0; i < 4 * Waking::kMeasured; ++i) ASSERT_TRUE(wakes()) << i;
}

}  // namespace
}  // namespace stp::port::memif
