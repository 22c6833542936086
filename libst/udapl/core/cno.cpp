// SPDX-License-Identifier: BSD-3-Clause
#include "libst/udapl/core/cno.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "libst/udapl/core/ia.h"
#include "stp/base/assert.h"

namespace stp::udapl {

Cno::~Cno() {
  if (fd_ >= 0) ::close(fd_);
}

Result Cno::create(Ia& ia, Agent agent, std::shared_ptr<Cno>& out) {
  const Lock lock(ia.mutex());
  const auto watched = static_cast<bool>(agent);
  out = ia.adopt(std::make_shared<Cno>(ia));
  out->agent_ = std::move(agent);
  if (watched) ia.watch();
  return Result::kSuccess;
}

Result Cno::create_with_fd(Ia& ia, int& fd, std::shared_ptr<Cno>& out) {
  const auto made = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (made < 0) return Result::kInsufficientResources;
  const Lock lock(ia.mutex());
  out = ia.adopt(std::make_shared<Cno>(ia));
  out->fd_ = fd = made;
  ia.watch();
  return Result::kSuccess;
}

Result Cno::free() {
  const Lock lock(ia().mutex());
  if (freed()) return Result::kInvalidHandle;
  if (used() || !waiters_.empty()) return Result::kInvalidState;
  ia().forget(*this);
  return Result::kSuccess;
}

Result Cno::modify_agent(Agent agent) {
  const Lock lock(ia().mutex());
  if (freed()) return Result::kInvalidHandle;
  if (agent) ia().watch();
  agent_ = std::move(agent);
  return Result::kSuccess;
}

bool Cno::has_agent() {
  const Lock lock(ia().mutex());
  return static_cast<bool>(agent_);
}

void* Cno::next() {
  STP_ASSERT(!triggered_.empty(), "a trigger is taken where there is one");
  auto* const evd = triggered_.front()->handle();
  triggered_.pop_front();
  std::uint64_t value;
  if (fd_ >= 0 && triggered_.empty()) [[maybe_unused]]
    const auto got = ::read(fd_, &value, sizeof value);
  return evd;
}

Result Cno::wait(std::uint32_t timeout, void*& evd) {
  const auto deadline = timeout == Evd::kForEver
                            ? Deadline::max()
                            : std::chrono::steady_clock::now() + std::chrono::microseconds(timeout);
  const auto keep = shared_from_this();
  Lock lock(ia().mutex());
  if (freed()) return Result::kInvalidHandle;
  Progress::Waiter waiter;
  waiters_.push_back(&waiter);
  const auto error = ia().progress().wait(
      lock, waiter, [&] { return !triggered_.empty() || freed(); }, deadline);
  std::erase(waiters_, &waiter);
  if (freed()) return Result::kAbort;
  if (error == -ETIMEDOUT) return Result::kTimeoutExpired;
  if (error != 0) return Result::kInterruptedCall;
  evd = next();
  return Result::kSuccess;
}

Result Cno::take_trigger(void*& evd) {
  const Lock lock(ia().mutex());
  if (freed()) return Result::kInvalidHandle;
  ia().progress().poll();
  if (triggered_.empty()) return Result::kQueueEmpty;
  evd = next();
  return Result::kSuccess;
}

void Cno::trigger(const std::shared_ptr<Evd>& evd) {
  if (agent_)
    ia().call_later([agent = std::exchange(agent_, {}), handle = evd->handle()] { agent(handle); });
  if (std::find(triggered_.begin(), triggered_.end(), evd) != triggered_.end()) return;
  triggered_.push_back(evd);
  if (fd_ >= 0) ::eventfd_write(fd_, 1);
  if (!waiters_.empty()) ia().progress().wake(*waiters_.front());
}

void Cno::forget(const Evd& evd) {
  std::erase_if(triggered_, [&](const auto& waiting) { return waiting.get() == &evd; });
}

// EVDs hold a reference to their CNO. Dropping the CNO's references to them breaks the cycle.
void Cno::abandon() {
  triggered_.clear();
  abort();
}

void Cno::abort() {
  for (auto* const waiter : waiters_) ia().progress().wake(*waiter);
}

}  // namespace stp::udapl
