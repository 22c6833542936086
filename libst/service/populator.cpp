// SPDX-License-Identifier: BSD-3-Clause
#include "libst/service/populator.h"

#include <sys/eventfd.h>

#include <cerrno>
#include <system_error>
#include <utility>

#include "stp/base/assert.h"

namespace stp::service {

Populator::Populator() : done_fd_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (!done_fd_) throw std::system_error(errno, std::generic_category(), "eventfd");
  thread_ = std::thread([this] { run(); });
}

Populator::~Populator() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  added_.notify_one();
  thread_.join();
}

void Populator::add(Job job) {
  STP_ASSERT(job.memory != nullptr, "pages are made of some memory");
  {
    std::lock_guard lock(mutex_);
    waiting_.push_back(std::move(job));
  }
  added_.notify_one();
}

std::optional<Populator::Job> Populator::take() {
  std::lock_guard lock(mutex_);
  if (done_.empty()) {
    eventfd_t count;
    ::eventfd_read(done_fd_.get(), &count);
    return std::nullopt;
  }
  auto job = std::move(done_.front());
  done_.pop_front();
  return job;
}

void Populator::abandon(std::uint64_t key) {
  std::deque<Job> gone;  // destroyed after the lock is released: unmapping takes time
  std::lock_guard lock(mutex_);
  for (auto* jobs : {&waiting_, &done_}) {
    for (auto at = jobs->begin(); at != jobs->end();) {
      if (at->key == key) gone.push_back(std::move(*at));
      at = at->memory == nullptr ? jobs->erase(at) : at + 1;
    }
  }
  if (working_ == key) working_.reset();
}

void Populator::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    added_.wait(lock, [this] { return stopping_ || !waiting_.empty(); });
    if (stopping_) return;
    auto job = std::move(waiting_.front());
    waiting_.pop_front();
    STP_ASSERT(!working_, "one job is in hand at a time");
    working_ = job.key;
    lock.unlock();
    job.result = job.memory->populate(kSlice);
    lock.lock();
    if (!working_) {
      lock.unlock();
      job = {};
      lock.lock();
    } else if (std::exchange(working_, std::nullopt); job.result == -EAGAIN) {
      waiting_.push_back(std::move(job));
    } else {
      done_.push_back(std::move(job));
      ::eventfd_write(done_fd_.get(), 1);
    }
  }
}

}  // namespace stp::service
