// SPDX-License-Identifier: BSD-3-Clause
#include "libst/libfabric/wait.h"

#include <poll.h>
#include <rdma/fi_errno.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>

#include "libst/libfabric/link.h"

namespace stp::fi {

Clock::time_point deadline_in(int timeout) {
  return timeout < 0 ? Clock::time_point::max() : Clock::now() + std::chrono::milliseconds(timeout);
}

bool Wait::offers(fi_wait_obj wanted) {
  return wanted == FI_WAIT_NONE || wanted == FI_WAIT_UNSPEC || wanted == FI_WAIT_FD;
}

Wait::Wait(Link& link, fi_wait_obj wanted)
    : link_(link), kind_(wanted == FI_WAIT_UNSPEC ? FI_WAIT_FD : wanted) {}

Wait::~Wait() {
  if (epoll_ >= 0) ::close(epoll_);
  if (event_ >= 0) ::close(event_);
}

int Wait::open() {
  if (is_open()) return 0;
  const auto queue = stm_queue_fd(link_.queue());
  if (queue < 0) return queue;
  event_ = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  const auto epoll = ::epoll_create1(EPOLL_CLOEXEC);
  epoll_event readable{};
  readable.events = EPOLLIN;
  const auto made = event_ >= 0 && epoll >= 0 &&
                    ::epoll_ctl(epoll, EPOLL_CTL_ADD, event_, &readable) == 0 &&
                    ::epoll_ctl(epoll, EPOLL_CTL_ADD, queue, &readable) == 0;
  if (made) {
    epoll_ = epoll;
    return 0;
  }
  const auto error = errno;
  if (epoll >= 0) ::close(epoll);
  if (event_ >= 0) ::close(event_);
  event_ = -1;
  return -error;
}

void Wait::wake() {
  if (!is_open() || awake_) return;
  awake_ = true;
  ::eventfd_write(event_, 1);
}

void Wait::clear() {
  if (!awake_) return;
  awake_ = false;
  eventfd_t count = 0;
  ::eventfd_read(event_, &count);
}

int Wait::control(int command, void* argument, bool has_events) {
  if (argument == nullptr) return -FI_EINVAL;
  if (command == FI_GETWAITOBJ) {
    *static_cast<fi_wait_obj*>(argument) = kind_;
    return 0;
  }
  if (command != FI_GETWAIT || !possible()) return -FI_ENOSYS;
  if (const auto error = open(); error != 0) return error;
  if (has_events) wake();
  *static_cast<int*>(argument) = epoll_;
  return 0;
}

int Wait::sleep(LinkLock& lock, Clock::time_point deadline) const {
  auto limit = -1;
  if (deadline != Clock::time_point::max()) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
    if (left <= 0) return 0;
    limit = static_cast<int>(std::min<std::int64_t>(left, INT_MAX));
  }
  lock.unlock();
  pollfd readable{.fd = epoll_, .events = POLLIN, .revents = 0};
  const auto interrupted =
      ::poll(&readable, 1, limit) < 0 && errno == EINTR && Clock::now() < deadline;
  lock.lock();
  return interrupted ? -FI_EINTR : 0;
}

}  // namespace stp::fi
