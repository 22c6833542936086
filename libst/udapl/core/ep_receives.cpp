// SPDX-License-Identifier: BSD-3-Clause
// Receives: those posted to the EP, or those that it takes from its SRQ.
#include <algorithm>

#include "libst/udapl/core/connection_info.h"
#include "libst/udapl/core/ep.h"
#include "libst/udapl/core/ia.h"
#include "stp/base/assert.h"

namespace stp::udapl {

Result Ep::post_recv(std::span<const LmrTriplet> segments, std::uint64_t cookie, Flags flags) {
  const Lock lock(ia().mutex());
  if (freed()) return Result::kInvalidHandle;
  if (parts_.srq) return Result::kInvalidState;  // receives must be posted to the SRQ
  if ((flags & ~(kSuppress | kUnsignalled)) != 0 ||
      segments.size() > static_cast<std::size_t>(attr_.max_recv_iov))
    return Result::kInvalidParameter;
  if ((flags & kUnsignalled) != 0 && (attr_.recv_flags & kUnsignalled) == 0)
    return Result::kInvalidParameter;
  const auto full = [&] { return allocation().buffers >= attr_.max_recv_dtos; };
  if (full()) ia().progress().poll();
  if (full()) return Result::kInsufficientResources;
  Receive receive{{}, cookie, flags};
  if (const auto result = receive.iov.assign(ia(), pz(), segments, kLocalWrite);
      result != Result::kSuccess)
    return result;
  receives_.push_back(std::move(receive));
  if (state_ == EpState::kDisconnected) {
    flush_receives();
  } else if (connection_ != nullptr && post_pending_receives() == -EAGAIN) {
    receives_.pop_back();
    return Result::kInsufficientResources;
  }
  return Result::kSuccess;
}

// Posts the receives that were posted before the connection existed. Returns an error if the
// connection has ended (its event follows) or has no place.
int Ep::post_pending_receives() {
  for (; posted_ < receives_.size(); ++posted_) {
    const auto& iov = receives_[posted_].iov;
    const auto error = stm_receive(connection_, 0, iov.memory(), iov.data(), iov.length());
    if (error != 0) return error;
  }
  return 0;
}

void Ep::complete_receive(const stm_event_t& event) {
  auto status = DtoStatus::kFlushed;
  if (event.status == 0) status = DtoStatus::kSuccess;
  if (event.status == -EMSGSIZE) status = DtoStatus::kLocalLength;
  if (event.status == -EACCES) status = DtoStatus::kLocalProtection;
  const auto solicited = (event.tag & kSolicitedWait) != 0;
  const auto finish = [&](const Receive& receive) {
    if (event.status == 0 && !receive.iov.scatter(event.length))
      status = DtoStatus::kLocalProtection;
    tell_receive(receive, status, event.length, solicited);
  };
  if (parts_.srq) {
    const auto receive = parts_.srq->completed(event.context);
    if (!receive) return;
    finish(*receive);
    parts_.srq->check_watermark();
  } else {
    STP_ASSERT(posted_ > 0 && posted_ <= receives_.size(), "a receive that completes was posted");
    finish(receives_.front());  // receives complete in the order of their messages
    receives_.pop_front();
    --posted_;
  }
  if (status == DtoStatus::kLocalLength || status == DtoStatus::kLocalProtection)
    break_connection();
}

void Ep::tell_receive(const Receive& receive, DtoStatus status, std::uint64_t length,
                      bool solicited) {
  const auto good = status == DtoStatus::kSuccess;
  const auto suppressed = good && (receive.flags & kSuppress) != 0;
  if (!parts_.recv || parts_.recv->freed() || suppressed) {
    if (parts_.srq) parts_.srq->reaped();
    return;
  }
  Event event;
  event.number = EventNumber::kDtoCompletion;
  event.handle = handle();
  event.dto = Dto::kReceive;
  event.status = status;
  event.cookie = receive.cookie;
  event.length = length;
  event.srq = parts_.srq;
  if (good && (attr_.recv_flags & kSolicitedWait) != 0) event.notify = solicited;
  if (good && (receive.flags & kUnsignalled) != 0) event.notify = false;
  parts_.recv->push(std::move(event));
}

// Flushes the receives that were not posted to a connection.
void Ep::flush_receives() {
  STP_ASSERT(posted_ <= receives_.size(), "what the connection has is among the receives");
  for (auto i = posted_; i < receives_.size(); ++i)
    tell_receive(receives_[i], DtoStatus::kFlushed, 0, false);
  while (receives_.size() > posted_) receives_.pop_back();
}

// With an SRQ, counts the receives that the connection has taken for arriving messages.
Ep::Allocation Ep::allocation() const {
  if (!parts_.srq) {
    const auto posted = static_cast<int>(receives_.size());
    return {posted, posted};
  }
  const auto info = info_of(connection_);
  return {static_cast<int>(info.receives), static_cast<int>(info.span)};
}

Result Ep::recv_query(int* buffers, int* span) {
  const Lock lock(ia().mutex());
  if (freed()) return Result::kInvalidHandle;
  ia().progress().poll();
  const auto now = allocation();
  if (buffers != nullptr) *buffers = now.buffers;
  if (span != nullptr) *span = now.span;
  return Result::kSuccess;
}

Result Ep::set_watermarks(int soft, int hard) {
  const Lock lock(ia().mutex());
  if (freed()) return Result::kInvalidHandle;
  if (!parts_.srq) return Result::kInvalidState;
  soft_ = attr_.soft_watermark = soft;
  hard_ = hard;
  watch_allocation();
  return Result::kSuccess;
}

// The connection reports when the lower of the two watermarks is passed.
void Ep::watch_allocation() {
  const auto next = soft_ < 0 || hard_ < 0 ? std::max(soft_, hard_) : std::min(soft_, hard_);
  if (next >= 0 && connection_ != nullptr)
    stm_set_watermark(connection_, static_cast<std::uint64_t>(next));
}

void Ep::passed_watermark(std::uint64_t buffers) {
  const auto passed = [&](int mark) {
    return mark >= 0 && buffers > static_cast<std::uint64_t>(mark);
  };
  if (passed(hard_)) {
    hard_ = -1;
    break_connection();
  }
  if (passed(soft_)) {
    soft_ = -1;
    Event event;
    event.number = EventNumber::kProviderInternalError;
    event.handle = handle();
    event.reason = AsyncReason::kSoftHighWatermark;
    ia().tell_async(std::move(event));
  }
  watch_allocation();
}

}  // namespace stp::udapl
