// SPDX-License-Identifier: BSD-3-Clause
#include "libst/udapl/core/evd.h"

#include <linux/futex.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <utility>

#include "libst/udapl/core/ia.h"
#include "stp/base/assert.h"

namespace stp::udapl {
namespace {

constexpr int kBatch = 64;

// Returns the microseconds left, rounded up, or -1 for ever.
std::int64_t left_until(Deadline deadline) {
  if (deadline == Deadline::max()) return -1;
  const auto left =
      std::chrono::ceil<std::chrono::microseconds>(deadline - std::chrono::steady_clock::now());
  return std::max<std::int64_t>(left.count(), 0);
}

}  // namespace

void Progress::poll() {
  if (leader_ != nullptr) return;
  stm_event_t events[kBatch];
  for (;;) {
    const auto count = stm_queue_poll(queue_, events, kBatch);
    for (int i = 0; i < count; ++i) handler_(events[i]);
    if (count < kBatch) return;
  }
}

int Progress::wait(Lock& lock, Waiter& waiter, const std::function<bool()>& done,
                   Deadline deadline) {
  poll();
  if (done()) return 0;
  waiters_.push_back(&waiter);
  int result = 0;
  for (bool met = false; !met;) {
    if (left_until(deadline) == 0) {
      result = -ETIMEDOUT;
      break;
    }
    if (leader_ == nullptr) {
      leader_ = &waiter;
      result = lead(lock, deadline);
      STP_ASSERT(leader_ == &waiter, "who leads does so until it stops");
      leader_ = nullptr;
    } else {
      result = follow(lock, waiter, deadline);
    }
    met = done();
    if (met) result = 0;
    if (result == -EINTR) break;
    result = 0;
  }
  waiters_.remove(&waiter);
  if (leader_ == nullptr) hand_over();
  return result;
}

int Progress::lead(Lock& lock, Deadline deadline) {
  stm_event_t events[kBatch];
  const auto count =
      lock.without([&] { return stm_queue_wait(queue_, 1, events, kBatch, left_until(deadline)); });
  for (int i = 0; i < count; ++i) handler_(events[i]);
  return count == -EINTR ? -EINTR : 0;
}

int Progress::follow(Lock& lock, Waiter& waiter, Deadline deadline) {
  const auto seen = waiter.word.load(std::memory_order_relaxed);
  const auto left = left_until(deadline);
  timespec limit{left / 1'000'000, left % 1'000'000 * 1'000};
  const auto interrupted = lock.without([&] {
    return ::syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&waiter.word), FUTEX_WAIT_PRIVATE,
                     seen, left < 0 ? nullptr : &limit, nullptr, 0) != 0 &&
           errno == EINTR;
  });
  return interrupted ? -EINTR : 0;
}

void Progress::wake(Waiter& waiter) {
  waiter.word.fetch_add(1, std::memory_order_relaxed);
  // If the queue is full, it has events, and the leader wakes anyway.
  if (leader_ == &waiter)
    stm_queue_post(queue_, 0);
  else
    ::syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&waiter.word), FUTEX_WAKE_PRIVATE, 1,
              nullptr, nullptr, 0);
}

void Progress::wake_all() {
  for (auto* const waiter : waiters_) wake(*waiter);
}

void Progress::hand_over() {
  if (!waiters_.empty()) wake(*waiters_.front());
}

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
  ia().mutex().is_held();
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
  ia().mutex().is_held();
  for (auto* const waiter : waiters_) ia().progress().wake(*waiter);
}

Result Evd::create(Ia& ia, int length, const std::shared_ptr<Cno>& cno, Flags streams,
                   std::shared_ptr<Evd>& out) {
  constexpr Flags kKnown =
      kStreamSoftware | kStreamCr | kStreamDto | kStreamConnection | kStreamBind | kStreamAsync;
  if (length <= 0 || streams == 0 || (streams & ~kKnown) != 0) return Result::kInvalidParameter;
  if (length > kMaxLength) return Result::kInsufficientResources;
  const Lock lock(ia.mutex());
  if (cno && !cno->is_of(ia)) return Result::kInvalidHandle;
  if (cno) cno->use();
  out = ia.adopt(std::make_shared<Evd>(ia, length, cno, streams));
  return Result::kSuccess;
}

Result Evd::free() {
  const Lock lock(ia().mutex());
  if (freed()) return Result::kInvalidHandle;
  if (used()) return Result::kInvalidState;
  if (cno_) {
    cno_->forget(*this);
    cno_->unuse();
  }
  ia().forget(*this);
  abort();
  while (!events_.empty()) took();
  return Result::kSuccess;
}

void Evd::push(Event&& event) {
  ia().mutex().is_held();
  if (freed()) return;
  if (!has_place()) {
    if (event.srq) event.srq->reaped();
    overflow();
    return;
  }
  const auto notify = event.notify;
  events_.add() = std::move(event);
  STP_ASSERT(events_.size() <= static_cast<std::size_t>(length_),
             "an EVD holds no more than it may");
  if (!enabled_ || !notify) return;
  if (waiter_ != nullptr) {
    notified_ = true;
    if (events_.size() >= static_cast<std::size_t>(threshold_)) ia().progress().wake(*waiter_);
  } else if (cno_) {
    cno_->trigger(self<Evd>());
  }
}

// Reports the overflow once. Later losses cannot be counted.
void Evd::overflow() {
  ia().mutex().is_held();
  if (overflown_) return;
  overflown_ = true;
  Event event;
  event.number = EventNumber::kEvdOverflow;
  event.handle = handle();
  event.reason = AsyncReason::kOverflow;
  ia().tell_async(std::move(event), this);
}

void Evd::took() {
  if (const auto& srq = events_.front().srq; srq) srq->reaped();
  events_.pop_front();
}

Result Evd::look(const Event*& event) {
  ia().mutex().is_held();
  if (freed()) return Result::kInvalidHandle;
  if (waiter_ != nullptr) return Result::kInvalidState;
  if (events_.empty()) ia().progress().poll();
  if (events_.empty()) return Result::kQueueEmpty;
  event = &events_.front();
  return Result::kSuccess;
}

Result Evd::post_software(void* pointer) {
  const Lock lock(ia().mutex());
  if (freed()) return Result::kInvalidHandle;
  if ((streams_ & kStreamSoftware) == 0) return Result::kInvalidParameter;
  if (!has_place()) return Result::kQueueFull;
  Event event;
  event.number = EventNumber::kSoftware;
  event.pointer = pointer;
  push(std::move(event));
  return Result::kSuccess;
}

Result Evd::resize(int length) {
  const Lock lock(ia().mutex());
  if (freed()) return Result::kInvalidHandle;
  if (length <= 0) return Result::kInvalidParameter;
  if (length > kMaxLength) return Result::kInsufficientResources;
  ia().progress().poll();
  if (events_.size() > static_cast<std::size_t>(length)) return Result::kInvalidState;
  length_ = length;
  return Result::kSuccess;
}

Result Evd::modify_cno(const std::shared_ptr<Cno>& cno) {
  const Lock lock(ia().mutex());
  if (freed() || (cno && !cno->is_of(ia()))) return Result::kInvalidHandle;
  if (cno) cno->use();
  if (cno_) {
    cno_->forget(*this);
    cno_->unuse();
  }
  cno_ = cno;
  return Result::kSuccess;
}

Result Evd::set_enabled(bool enabled) {
  const Lock lock(ia().mutex());
  if (freed()) return Result::kInvalidHandle;
  enabled_ = enabled;
  return Result::kSuccess;
}

Result Evd::set_waitable(bool waitable) {
  const Lock lock(ia().mutex());
  if (freed()) return Result::kInvalidHandle;
  waitable_ = waitable;
  if (!waitable && waiter_ != nullptr) ia().progress().wake(*waiter_);
  return Result::kSuccess;
}

Result Evd::query(Param& out) {
  const Lock lock(ia().mutex());
  if (freed()) return Result::kInvalidHandle;
  Flags config = 0;
  for (const auto& [flag, streams] : completion_streams_) config |= flag;
  out = {length_, enabled_, waitable_, cno_, streams_, config};
  return Result::kSuccess;
}

// All completion streams of an EVD must have the same notification flag, and solicited wait cannot
// be combined with other streams.
bool Evd::allows(Flags flag) const {
  for (const auto& [present, streams] : completion_streams_)
    if (present != flag) return false;
  return (flag & kSolicitedWait) == 0 || other_streams_ == 0;
}

Result Evd::attach(Flags flag) {
  if (freed()) return Result::kInvalidHandle;
  if ((streams_ & kStreamDto) == 0 || !allows(flag)) return Result::kInvalidParameter;
  ++completion_streams_[flag];
  use();
  return Result::kSuccess;
}

void Evd::detach(Flags flag) {
  STP_ASSERT(completion_streams_.contains(flag), "a stream that is detached was attached");
  if (--completion_streams_[flag] == 0) completion_streams_.erase(flag);
  unuse();
}

Result Evd::attach_other() {
  if (freed()) return Result::kInvalidHandle;
  if (completion_streams_.contains(kSolicitedWait)) return Result::kInvalidParameter;
  ++other_streams_;
  use();
  return Result::kSuccess;
}

void Evd::detach_other() {
  STP_ASSERT(other_streams_ > 0, "a stream that is detached was attached");
  --other_streams_;
  unuse();
}

void Evd::abort() {
  ia().mutex().is_held();
  if (waiter_ != nullptr) ia().progress().wake(*waiter_);
}

// dat_evd_wait.

bool Evd::controlled() const {
  return completion_streams_.contains(kUnsignalled) || completion_streams_.contains(kSolicitedWait);
}

Result Evd::check_wait(int threshold) const {
  if (freed()) return Result::kInvalidHandle;
  if (threshold <= 0 || threshold > length_) return Result::kInvalidParameter;
  if (!waitable_ || waiter_ != nullptr) return Result::kInvalidState;
  return threshold != 1 && controlled() ? Result::kInvalidState : Result::kSuccess;
}

Result Evd::wait(std::uint32_t timeout, int threshold, Event& event, int& nmore) {
  const auto deadline = timeout == kForEver
                            ? Deadline::max()
                            : std::chrono::steady_clock::now() + std::chrono::microseconds(timeout);
  const auto keep = shared_from_this();
  Lock lock(ia().mutex());
  if (const auto result = check_wait(threshold); result != Result::kSuccess) return result;
  Progress::Waiter waiter;
  bool slept = false;  // events that are there before the first sleep need no notification
  const auto enough = [&] { return events_.size() >= static_cast<std::size_t>(threshold); };
  const auto done = [&] {
    const auto ready = enough() && (!slept || notified_);
    slept = true;
    return ready || freed() || !waitable_;
  };
  waiter_ = &waiter;
  threshold_ = threshold;
  notified_ = false;
  const auto error = ia().progress().wait(lock, waiter, done, deadline);
  waiter_ = nullptr;
  if (freed()) return Result::kAbort;
  nmore = static_cast<int>(events_.size());
  if (!waitable_) return Result::kInvalidState;
  if (error == -ETIMEDOUT) return Result::kTimeoutExpired;
  if (error != 0) return Result::kInterruptedCall;
  event = events_.front();
  event.srq.reset();
  took();
  --nmore;
  return Result::kSuccess;
}

}  // namespace stp::udapl
