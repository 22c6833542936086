// SPDX-License-Identifier: BSD-3-Clause
#include "libst/udapl/core/evd.h"

#include "libst/udapl/core/ia.h"
#include "stp/base/assert.h"

namespace stp::udapl {

Result Evd::create(Ia& ia, int length, const std::shared_ptr<Cno>& cno, Flags streams,
                   std::shared_ptr<Evd>& out) {
  constexpr Flags kKnown =
      kStreamSoftware | kStreamCr | kStreamDto | kStreamConnection | kStreamBind | kStreamAsync;
  if (length <= 0 || streams == 0 || (streams & ~kKnown) != 0) return Result::kInvalidParameter;
  if (length > kMaxLength) return Result::kInsufficientResources;
  const Lock lock(ia.mutex());
  if (cno && cno->freed()) return Result::kInvalidHandle;
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
  while (!events_.empty()) take();
  return Result::kSuccess;
}

void Evd::push(Event event) {
  if (freed()) return;
  if (!has_place()) {
    if (event.srq) event.srq->reaped();
    overflow();
    return;
  }
  const auto notify = event.notify;
  events_.push_back(std::move(event));
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
  if (overflown_) return;
  overflown_ = true;
  Event event;
  event.number = EventNumber::kEvdOverflow;
  event.handle = handle();
  event.reason = AsyncReason::kOverflow;
  ia().tell_async(std::move(event), this);
}

Event Evd::take() {
  auto event = std::move(events_.front());
  events_.pop_front();
  if (event.srq) {
    event.srq->reaped();
    event.srq.reset();
  }
  return event;
}

Result Evd::dequeue(Event& event) {
  const Lock lock(ia().mutex());
  if (freed()) return Result::kInvalidHandle;
  if (waiter_ != nullptr) return Result::kInvalidState;
  if (events_.empty()) ia().progress().poll();
  if (events_.empty()) return Result::kQueueEmpty;
  event = take();
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
  if (freed() || (cno && cno->freed())) return Result::kInvalidHandle;
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
  if (waiter_ != nullptr) ia().progress().wake(*waiter_);
}

}  // namespace stp::udapl
