// SPDX-License-Identifier: BSD-3-Clause
// What an EP moves: receives, then requests.
#include <algorithm>
#include <utility>

#include "libst/udapl/core/ep.h"
#include "libst/udapl/core/ia.h"
#include "libst/udapl/core/memory.h"
#include "libst/udapl/core/private_data.h"
#include "stp/base/assert.h"

namespace stp::udapl {

// ---- receives: those posted to the EP, or those that it takes from its SRQ

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

// Send, RDMA write, RDMA read and bind. Their completions are reported in the order of posting,
// although the managed API may complete them in another order.

namespace {

DtoStatus status_of(int error) {
  switch (error) {
    case 0:
      return DtoStatus::kSuccess;
    case -EACCES:
    case -ERANGE:
      return DtoStatus::kRemoteAccess;
    case -EMSGSIZE:
      return DtoStatus::kRemoteResponder;
    case -EPROTO:
      return DtoStatus::kTransport;
    case -ENOBUFS:
      return DtoStatus::kReceiverNotReady;
    default:
      return DtoStatus::kFlushed;
  }
}

}  // namespace

Result Ep::check_request(Flags flags) {
  if (freed()) return Result::kInvalidHandle;
  constexpr Flags kKnown = kSuppress | kSolicitedWait | kUnsignalled | kBarrierFence;
  if ((flags & ~kKnown) != 0) return Result::kInvalidParameter;
  if ((flags & kUnsignalled) != 0 && (attr_.request_flags & kUnsignalled) == 0)
    return Result::kInvalidParameter;
  const auto ready = [&] {
    return state_ == EpState::kConnected || state_ == EpState::kDisconnected;
  };
  const auto full = [&] { return static_cast<int>(requests_.size()) >= attr_.max_request_dtos; };
  if (!ready() || full()) ia().progress().poll();
  if (!ready()) return Result::kInvalidState;
  return full() ? Result::kInsufficientResources : Result::kSuccess;
}

Result Ep::prepare(std::span<const LmrTriplet> segments, unsigned privilege, Request& request) {
  if (const auto result = check_request(request.flags); result != Result::kSuccess) return result;
  if (const auto result = request.iov.assign(ia(), pz(), segments, privilege);
      result != Result::kSuccess)
    return result;
  // The maxima that the program requested for the EP are not enforced: programs exceed them.
  return request.iov.length() > kMaxMessage ? Result::kLengthError : Result::kSuccess;
}

Result Ep::post_send(std::span<const LmrTriplet> segments, std::uint64_t cookie, Flags flags) {
  const Lock lock(ia().mutex());
  if (segments.size() > static_cast<std::size_t>(attr_.max_request_iov))
    return Result::kInvalidParameter;
  Request request{Dto::kSend, {}, cookie, flags, nullptr, false, DtoStatus::kSuccess};
  if (const auto result = prepare(segments, kLocalRead, request); result != Result::kSuccess)
    return result;
  request.iov.gather();
  return post(std::move(request), {});
}

Result Ep::post_rdma_write(std::span<const LmrTriplet> segments, std::uint64_t cookie,
                           const RmrTriplet& remote, Flags flags) {
  const Lock lock(ia().mutex());
  if (segments.size() > static_cast<std::size_t>(attr_.max_rdma_write_iov))
    return Result::kInvalidParameter;
  Request request{Dto::kRdmaWrite, {}, cookie, flags, nullptr, false, DtoStatus::kSuccess};
  if (const auto result = prepare(segments, kLocalRead, request); result != Result::kSuccess)
    return result;
  if (request.iov.length() > remote.length) return Result::kLengthError;
  request.iov.gather();
  return post(std::move(request), remote);
}

Result Ep::post_rdma_read(std::span<const LmrTriplet> segments, std::uint64_t cookie,
                          const RmrTriplet& remote, Flags flags) {
  const Lock lock(ia().mutex());
  if (segments.size() > static_cast<std::size_t>(attr_.max_rdma_read_iov))
    return Result::kInvalidParameter;
  Request request{Dto::kRdmaRead, {}, cookie, flags, nullptr, false, DtoStatus::kSuccess};
  if (const auto result = prepare(segments, kLocalWrite, request); result != Result::kSuccess)
    return result;
  if (request.iov.length() < remote.length) return Result::kLengthError;
  return post(std::move(request), remote);
}

Result Ep::post(Request request, const RmrTriplet& remote) {
  requests_.push_back(std::move(request));
  auto& posted = requests_.back();
  if (state_ == EpState::kDisconnected) {
    posted.done = true;
    posted.status = DtoStatus::kFlushed;
    tell_requests();
    return Result::kSuccess;
  }
  const auto error = begin_last_request(remote);
  if (error == -EAGAIN) {
    requests_.pop_back();
    return Result::kInsufficientResources;
  }
  if (error != 0) {  // the connection has just ended
    posted.done = true;
    posted.status = DtoStatus::kFlushed;
    tell_requests();
  } else if (posted.dto == Dto::kRdmaWrite) {
    ++writes_;
  } else if (posted.dto == Dto::kRdmaRead) {
    ++reads_;
  }
  return Result::kSuccess;
}

// Adds the order that DAT demands and the managed API does not give: operations after an RDMA write
// take effect after it, and a barrier fence waits for earlier RDMA reads.
unsigned Ep::managed_flags(const Request& request) const {
  const auto after_write = writes_ != 0 && request.dto != Dto::kRdmaWrite;
  const auto after_read = reads_ != 0 && (request.flags & kBarrierFence) != 0;
  return after_write || after_read ? STM_FENCE : 0;
}

int Ep::begin_last_request(const RmrTriplet& remote) {
  const auto& request = requests_.back();
  const auto context = told_requests_ + requests_.size() - 1;
  const auto flags = managed_flags(request);
  const auto& iov = request.iov;
  switch (request.dto) {
    case Dto::kSend:
      return stm_send(connection_, context, flags, request.flags & kSolicitedWait, iov.memory(),
                      iov.data(), iov.length());
    case Dto::kRdmaWrite:
      return stm_put(connection_, context, flags, iov.memory(), iov.data(), iov.length(),
                     remote.context, remote.address);
    default:
      return stm_get(connection_, context, flags, iov.memory(), iov.data(), remote.length,
                     remote.context, remote.address);
  }
}

Result Ep::post_bind(Rmr& rmr, std::uint64_t cookie, Flags flags) {
  requests_.push_back({Dto::kBind, {}, cookie, flags, rmr.handle(), true, DtoStatus::kSuccess});
  tell_requests();
  return Result::kSuccess;
}

void Ep::complete_request(const stm_event_t& event) {
  STP_ASSERT(event.context >= told_requests_, "a request is told after it has completed");
  auto& request = requests_[event.context - told_requests_];
  STP_ASSERT(!request.done, "a request completes once");
  STP_ASSERT((request.dto != Dto::kRdmaWrite || writes_ > 0) &&
                 (request.dto != Dto::kRdmaRead || reads_ > 0),
             "an RDMA that completes was under way");
  request.done = true;
  request.status = status_of(event.status);
  // Only the first request reports the cause. The others are flushed.
  if (request.status == DtoStatus::kReceiverNotReady && std::exchange(broken_, true))
    request.status = DtoStatus::kFlushed;
  if (request.dto == Dto::kRdmaWrite) --writes_;
  if (request.dto == Dto::kRdmaRead) {
    --reads_;
    if (event.status == 0 && !request.iov.scatter(event.length))
      request.status = DtoStatus::kLocalProtection;
  }
  const auto failed =
      request.status != DtoStatus::kSuccess && request.status != DtoStatus::kFlushed;
  tell_requests();
  if (failed) break_connection();
}

void Ep::tell_requests() {
  while (!requests_.empty() && requests_.front().done) {
    tell_request(requests_.front());
    requests_.pop_front();
    ++told_requests_;
  }
}

void Ep::tell_request(const Request& request) {
  const auto good = request.status == DtoStatus::kSuccess;
  if (!parts_.request || (good && (request.flags & kSuppress) != 0)) return;
  Event event;
  const auto bind = request.dto == Dto::kBind;
  event.number = bind ? EventNumber::kRmrBindCompletion : EventNumber::kDtoCompletion;
  event.handle = bind ? request.handle : handle();
  event.notify = !good || (request.flags & kUnsignalled) == 0;
  event.dto = request.dto;
  event.status = request.status;
  event.cookie = request.cookie;
  event.length = request.iov.length();
  parts_.request->push(std::move(event));
}

}  // namespace stp::udapl
