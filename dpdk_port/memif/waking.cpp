// SPDX-License-Identifier: BSD-3-Clause
#include "dpdk_port/memif/waking.h"

#include <linux/aio_abi.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <time.h>

#include <array>
#include <cerrno>

#include "dpdk_port/link/engine.h"

namespace stp::port::memif {
namespace {

// Asynchronous operations that are over at once: asking whether an eventfd is readable that always
// is. The kernel signals another eventfd at the end of each.
class Operations {
 public:
  static Operations& of_this_process() {
    static Operations& all = *new Operations;  // threads may use it until the process ends
    return all;
  }

  bool signal(int eventfd) {
    iocb operation{};
    operation.aio_lio_opcode = IOCB_CMD_POLL;
    operation.aio_fildes = static_cast<std::uint32_t>(readable_.get());
    operation.aio_buf = POLLIN;
    operation.aio_flags = IOCB_FLAG_RESFD;
    operation.aio_resfd = static_cast<std::uint32_t>(eventfd);
    auto* one = &operation;
    for (int i = 0; i < kTries; ++i) {
      if (::syscall(SYS_io_submit, context_, 1, &one) == 1) return true;
      if (errno != EAGAIN) return false;
      forget_results();
    }
    return false;
  }

 private:
  static constexpr unsigned kMost = 128;  // results that wait
  static constexpr int kTries = 3;        // other threads may have taken the room

  Operations() : readable_(::eventfd(1, EFD_CLOEXEC | EFD_NONBLOCK)) {
    if (::syscall(SYS_io_setup, kMost, &context_) != 0) context_ = 0;  // signals fail
  }
  void forget_results() const {
    std::array<io_event, kMost> results;
    timespec at_once{};
    ::syscall(SYS_io_getevents, context_, 0, results.size(), results.data(), &at_once);
  }

  const FileDescriptor readable_;
  aio_context_t context_ = 0;
};

Time time_on_cpu() {
  timespec time{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<Time>(time.tv_sec) * kSecond + static_cast<Time>(time.tv_nsec);
}

}  // namespace

bool send_signal(int eventfd) {
  return Operations::of_this_process().signal(eventfd);
}

FileDescriptor Waking::make() {
  return FileDescriptor(::epoll_create1(EPOLL_CLOEXEC));
}

// The first signals show that these are eventfds: to ask a file of another kind whether it is
// readable might make this thread wait.
void Waking::begin(const SleepSign& own, const SleepSign& peer) {
  end();
  if (!all_ || now() < quiet_until_ || !send_signal(own.bell) || !send_signal(peer.bell)) return;
  // Only edges: nobody reads the bell, which the peer could make wait.
  epoll_event edges{};
  edges.events = EPOLLIN | static_cast<std::uint32_t>(EPOLLET);
  if (::epoll_ctl(all_.get(), EPOLL_CTL_ADD, own.bell, &edges) != 0) return;
  own_ = own;
  peer_ = peer;
  woke_up();
  is_woken_ = false;
}

void Waking::end() {
  if (own_.bell >= 0) ::epoll_ctl(all_.get(), EPOLL_CTL_DEL, own_.bell, nullptr);
  own_ = peer_ = {};
  sleeps_ = told_ = 0;
  signals_ = slow_ = 0;
  is_woken_ = false;
}

void Waking::fall_asleep() {
  if (own_.sleeps == nullptr) return;
  if (sleeps_ % 2 == 0) ++sleeps_;
  __atomic_store_n(own_.sleeps, sleeps_, __ATOMIC_SEQ_CST);
}

void Waking::woke_up() {
  if (own_.sleeps == nullptr) return;
  if (sleeps_ % 2 != 0) ++sleeps_;
  __atomic_store_n(own_.sleeps, sleeps_, __ATOMIC_RELAXED);
  epoll_event rung{};
  if (::epoll_wait(all_.get(), &rung, 1, 0) > 0) is_woken_ = true;
}

void Waking::tell(std::uint16_t sleeps) {
  told_ = sleeps;
  const bool measured = slow_ != 0 || signals_++ % kMeasured == 0;
  const auto begin = measured ? time_on_cpu() : 0;
  const bool sent = send_signal(peer_.bell);
  if (measured) slow_ = time_on_cpu() - begin > kMost ? slow_ + 1 : 0;
  const bool costs_much = slow_ == kInARow;
  if (costs_much) quiet_until_ = now() + kPause;
  if (costs_much || !sent) peer_.sleeps = nullptr;
}

}  // namespace stp::port::memif
