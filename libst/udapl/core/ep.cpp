// SPDX-License-Identifier: BSD-3-Clause
#include "libst/udapl/core/ep.h"

#include <algorithm>
#include <string>
#include <utility>

#include "libst/udapl/core/ia.h"
#include "libst/udapl/core/memory.h"
#include "libst/udapl/core/private_data.h"
#include "stp/base/assert.h"

namespace stp::udapl {
namespace {

bool in(int value, int most) {
  return value >= 0 && value <= most;
}

}  // namespace

bool is_valid(const EpAttr& a) {
  constexpr Flags kRecv = kSolicitedWait | kUnsignalled | kEvdThreshold;
  constexpr Flags kRequest = kUnsignalled | kEvdThreshold;
  const auto one = [](Flags flags) { return (flags & (flags - 1)) == 0; };
  return a.max_message_size <= kMaxMessage && a.max_rdma_size <= kMaxMessage &&
         (a.recv_flags & ~kRecv) == 0 && (a.request_flags & ~kRequest) == 0 && one(a.recv_flags) &&
         one(a.request_flags) && in(a.max_recv_dtos, kMaxDtos) &&
         in(a.max_request_dtos, kMaxDtos) && in(a.max_recv_iov, kMaxIov) &&
         in(a.max_request_iov, kMaxIov) && in(a.max_rdma_read_in, kMaxReads) &&
         in(a.max_rdma_read_out, kMaxReads) && in(a.max_rdma_read_iov, kMaxIov) &&
         in(a.max_rdma_write_iov, kMaxIov);
}

Ep::Ep(Ia& ia, Parts parts, const EpAttr& attr)
    : Object(Kind::kEp, ia), parts_(std::move(parts)), attr_(attr), soft_(attr.soft_watermark) {}

Ep::~Ep() = default;

Result Ep::create(Ia& ia, const Parts& parts, const EpAttr& attr, std::shared_ptr<Ep>& out) {
  if (!is_valid(attr)) return Result::kInvalidParameter;
  const Lock lock(ia.mutex());
  auto ep = std::make_shared<Ep>(ia, parts, attr);
  if (const auto result = ep->check_parts(); result != Result::kSuccess) return result;
  if (!ia.has_place_for_ep()) return Result::kInsufficientResources;
  if (const auto result = ep->attach(); result != Result::kSuccess) return result;
  ia.count_ep(1);
  out = ia.adopt(std::move(ep));
  return Result::kSuccess;
}

Result Ep::check_parts() const {
  const auto& [pz, recv, request, connect, srq] = parts_;
  if (!pz->is_of(ia()) || (srq && !srq->is_of(ia()))) return Result::kInvalidHandle;
  for (const auto& evd : {recv, request, connect})
    if (evd && !evd->is_of(ia())) return Result::kInvalidHandle;
  if (connect && (connect->streams() & kStreamConnection) == 0) return Result::kInvalidParameter;
  return Result::kSuccess;
}

// Marks the EVDs, the PZ and the SRQ as used: all of them or none.
Result Ep::attach() {
  const auto& [pz, recv, request, connect, srq] = parts_;
  auto result = recv ? recv->attach(attr_.recv_flags) : Result::kSuccess;
  if (result != Result::kSuccess) return result;
  if (request) result = request->attach(attr_.request_flags);
  if (result == Result::kSuccess && connect) {
    result = connect->attach_other();
    if (result != Result::kSuccess && request) request->detach(attr_.request_flags);
  }
  if (result != Result::kSuccess) {
    if (recv) recv->detach(attr_.recv_flags);
    return result;
  }
  pz->use();
  if (srq) srq->use();
  return Result::kSuccess;
}

void Ep::detach() {
  const auto& [pz, recv, request, connect, srq] = parts_;
  if (recv) recv->detach(attr_.recv_flags);
  if (request) request->detach(attr_.request_flags);
  if (connect) connect->detach_other();
  pz->unuse();
  if (srq) srq->unuse();
}

Result Ep::free() {
  const Lock lock(ia().mutex());
  if (freed()) return Result::kInvalidHandle;
  if (state_ == EpState::kReserved || state_ == EpState::kPassivePending)
    return Result::kInvalidState;
  const auto keep = shared_from_this();
  if (connection_ != nullptr) {
    ia().close_connection(std::exchange(connection_, nullptr));
    ia().progress().poll();  // flushes the outstanding requests to the EVDs
  }
  flush_receives();
  detach();
  ia().count_ep(-1);
  ia().forget(*this);
  return Result::kSuccess;
}

// Closing the domain ends the connection.
void Ep::abandon() {
  connection_ = nullptr;
}

Result Ep::reset() {
  const Lock lock(ia().mutex());
  if (freed()) return Result::kInvalidHandle;
  ia().progress().poll();
  if (!enter(EpInput::kReset)) return Result::kInvalidState;
  if (connection_ != nullptr) ia().close_connection(std::exchange(connection_, nullptr));
  peer_data_ = {};
  broken_ = explained_ = false;
  return Result::kSuccess;
}

Result Ep::query(Param& out) {
  const Lock lock(ia().mutex());
  if (freed()) return Result::kInvalidHandle;
  ia().progress().poll();
  out = {state_.state(), parts_,           attr_,
         remote_ipv4_,   remote_udp_port_, info_of(connection_).local_port,
         remote_qual_};
  return Result::kSuccess;
}

Result Ep::modify(const Parts& parts, const EpAttr* attr) {
  const Lock lock(ia().mutex());
  if (freed()) return Result::kInvalidHandle;
  if (state_ != EpState::kUnconnected) return Result::kInvalidState;
  if (attr != nullptr && !is_valid(*attr)) return Result::kInvalidParameter;
  const auto before_parts = parts_;
  const auto before_attr = attr_;
  detach();
  if (parts.pz) parts_.pz = parts.pz;
  if (parts.recv) parts_.recv = parts.recv;
  if (parts.request) parts_.request = parts.request;
  if (parts.connect) parts_.connect = parts.connect;
  if (attr != nullptr) attr_ = *attr;
  auto result = check_parts();
  if (result == Result::kSuccess) result = attach();
  if (result == Result::kSuccess) {
    soft_ = attr_.soft_watermark;
    return result;
  }
  parts_ = before_parts;
  attr_ = before_attr;
  attach();
  return result;
}

Result Ep::status(EpState& state, bool& recv_idle, bool& request_idle) {
  const Lock lock(ia().mutex());
  if (freed()) return Result::kInvalidHandle;
  ia().progress().poll();
  state = state_.state();
  recv_idle = allocation().buffers == 0;
  request_idle = requests_.empty();
  return Result::kSuccess;
}

// States and connections of an EP.

bool Ep::enter(EpInput input) {
  return state_.advance(input);
}

stm_connection_attr_t Ep::connection_attr() const {
  ia().mutex().is_held();
  stm_connection_attr_t attr{};
  attr.size = sizeof attr;
  attr.events = ia().progress().queue();
  attr.pool = parts_.srq ? parts_.srq->pool() : nullptr;
  attr.flags = STM_ON_ARRIVAL;
  attr.group = parts_.pz->group();
  attr.receive_wait = attr_.receive_wait;
  return attr;
}

Result Ep::connect(const std::string& host, std::uint32_t ipv4, std::uint64_t conn_qual,
                   std::uint32_t timeout, std::span<const std::byte> private_data) {
  if (private_data.size() > kMaxPrivateData) return Result::kInvalidParameter;
  const auto keep = shared_from_this();
  stm_connection_t connection = nullptr;
  {
    const Lock lock(ia().mutex());
    if (freed()) return Result::kInvalidHandle;
    if (!parts_.connect) return Result::kInvalidParameter;
    if (!state_.next(EpInput::kConnect)) return Result::kInvalidState;
    const auto attr = connection_attr();
    if (const auto error = stm_connection_create(ia().domain(), &attr, &connection); error != 0)
      return result_of(error);
    enter(EpInput::kConnect);
    connection_ = connection;
    host_ = host;
    remote_ipv4_ = ipv4;
    remote_udp_port_ = udp_port_in(host);
    remote_qual_ = conn_qual;
    ia().add_connection(connection, self<Ep>());
    if (post_pending_receives() != 0) break_connection();
  }
  // Resolving the host may take seconds, so the mutex is not held.
  const auto peer = host + ":" + std::to_string(port_of(conn_qual));
  const auto packed = pack_request(ia().info().ipv4, conn_qual, private_data);
  const auto limit = timeout == Evd::kForEver ? -1 : static_cast<std::int64_t>(timeout);
  const auto error = stm_connect(connection, peer.c_str(), limit, packed.data(), packed.size());
  if (error == 0) return Result::kSuccess;
  told_result_of(error, "cannot connect to " + peer);
  const Lock lock(ia().mutex());
  if (connection_ == connection)
    ended(error == -EHOSTUNREACH ? EventNumber::kUnreachable : EventNumber::kNonPeerRejected);
  return Result::kSuccess;
}

Result Ep::dup_connect(Ep& other, std::uint32_t timeout, std::span<const std::byte> private_data) {
  std::string host;
  std::uint32_t ipv4 = 0;
  std::uint64_t qual = 0;
  {
    const Lock lock(ia().mutex());
    if (freed() || other.freed()) return Result::kInvalidHandle;
    if (&other.ia() != &ia()) return Result::kInvalidParameter;
    if (other.state_ != EpState::kConnected) return Result::kInvalidState;
    host = other.host_;
    ipv4 = other.remote_ipv4_;
    qual = other.remote_qual_;
  }
  return connect(host, ipv4, qual, timeout, private_data);
}

Result Ep::accept(stm_connection_t connection, std::span<const std::byte> private_data) {
  ia().mutex().is_held();
  if (private_data.size() > kMaxPrivateData || !parts_.connect) return Result::kInvalidParameter;
  if (!state_.next(EpInput::kAccept)) return Result::kInvalidState;
  const auto attr = connection_attr();
  const auto packed = pack(ia().info().ipv4, private_data);
  const auto data = unpack(connection);
  const auto error = stm_accept(connection, &attr, packed.data(), packed.size());
  if (error == -EAGAIN) return Result::kInsufficientResources;
  enter(EpInput::kAccept);
  connection_ = connection;
  remote_ipv4_ = data ? data->ipv4 : 0;
  remote_udp_port_ = peer_udp_port_of(connection);
  remote_qual_ = info_of(connection).peer_port;
  ia().add_connection(connection, self<Ep>());
  if (error != 0)
    ended(EventNumber::kAcceptCompletionError);
  else if (post_pending_receives() != 0)
    break_connection();
  return Result::kSuccess;
}

Result Ep::disconnect(bool abrupt) {
  const Lock lock(ia().mutex());
  if (freed()) return Result::kInvalidHandle;
  ia().progress().poll();
  if (state_ == EpState::kDisconnected) return Result::kSuccess;
  if (!enter(EpInput::kDisconnect)) return Result::kInvalidState;
  stm_disconnect(connection_, abrupt ? STM_ABRUPT : STM_GRACEFUL);
  ia().progress().poll();
  return Result::kSuccess;
}

void Ep::break_connection() {
  broken_ = true;
  if (connection_ != nullptr) stm_disconnect(connection_, STM_BROKEN);
}

// No result of DAT tells what the link knows of a way on which nothing arrives. An operation that
// neither side has cancelled by a call of DAT ends for that reason, too: the peer gave it up.
void Ep::explain(int status) {
  const bool is_silence = status == -ETIMEDOUT || (status == -ECANCELED && !broken_);
  const bool is_wanted = state_ == EpState::kConnected || state_ == EpState::kActivePending;
  if (!is_silence || !is_wanted || std::exchange(explained_, true)) return;
  stm_peer_info_t peer{};
  peer.size = sizeof peer;
  if (stm_peer_query(connection_, &peer) == 0 && peer.trouble[0] != '\0')
    tell("the connection to " + (host_.empty() ? std::string(peer.address) : host_), peer.trouble);
}

void Ep::on_event(const stm_event_t& event) {
  explain(event.status);
  switch (event.kind) {
    case STM_CONNECTED:
    case STM_REFUSED:
    case STM_FAILED:
    case STM_DISCONNECTED:
      if (event.connection == connection_) connection_event(event);
      break;
    case STM_RECEIVE:
      complete_receive(event);
      break;
    case STM_SEND:
    case STM_PUT:
    case STM_GET:
      complete_request(event);
      break;
    case STM_HIGH:
      passed_watermark(event.length);
      break;
    case STM_READ_REQUEST:
      stm_refuse_read(event.connection, event.request);
      break;
    default:
      break;
  }
}

void Ep::connection_event(const stm_event_t& event) {
  if (event.kind == STM_CONNECTED) {
    established();
    return;
  }
  const auto was = state_.state();
  const auto pending = was == EpState::kActivePending;
  if (event.kind == STM_REFUSED) {
    auto data = unpack(connection_);
    const auto by_peer = data.has_value();
    if (data) peer_data_ = std::move(*data);
    ended(by_peer ? EventNumber::kPeerRejected : EventNumber::kNonPeerRejected);
  } else if (was == EpState::kCompletionPending) {
    ended(EventNumber::kAcceptCompletionError);
  } else if (pending && event.status == -ETIMEDOUT) {
    ended(EventNumber::kTimedOut);
  } else if (pending) {
    ended(EventNumber::kNonPeerRejected);
  } else {
    ended(broken_ || event.kind == STM_FAILED ? EventNumber::kBroken : EventNumber::kDisconnected);
  }
}

void Ep::established() {
  const auto active = state_ == EpState::kActivePending;
  if (!enter(EpInput::kEstablish)) return;
  auto data = active ? unpack(connection_) : std::nullopt;
  if (data) peer_data_ = std::move(*data);
  watch_allocation();
  tell_connection(EventNumber::kEstablished);
}

// The flushed DTOs have been reported before.
void Ep::ended(EventNumber number) {
  enter(EpInput::kEnd);
  flush_receives();
  tell_connection(number);
}

void Ep::tell_connection(EventNumber number) {
  if (!parts_.connect || freed()) return;
  Event event;
  event.number = number;
  event.handle = handle();
  if (number == EventNumber::kEstablished || number == EventNumber::kPeerRejected) {
    event.private_data = peer_data_.bytes.data();
    event.private_size = peer_data_.bytes.size();
  }
  parts_.connect->push(std::move(event));
}

// --- what an EP moves: receives, then requests

// ---- receives: those posted to the EP, or those that it takes from its SRQ

Result Ep::post_recv(std::span<const LmrTriplet> segments, std::uint64_t cookie, Flags flags) {
  ia().mutex().is_held();
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
  auto& receive = receives_.add();
  receive.cookie = cookie;
  receive.flags = flags;
  if (const auto result = receive.iov.assign(ia(), pz(), segments, kLocalWrite);
      result != Result::kSuccess) {
    receives_.pop_back();
    return result;
  }
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
  ia().mutex().is_held();
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
  ia().mutex().is_held();
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

Ep::Request& Ep::add_request(Dto dto, std::uint64_t cookie, Flags flags) {
  auto& request = requests_.add();
  request.dto = dto;
  request.cookie = cookie;
  request.flags = flags;
  request.handle = nullptr;
  request.done = false;
  request.status = DtoStatus::kSuccess;
  return request;
}

Result Ep::post(Dto dto, std::span<const LmrTriplet> segments, std::uint64_t cookie,
                const RmrTriplet& remote, Flags flags) {
  if (const auto result = check_request(flags); result != Result::kSuccess) return result;
  auto& request = add_request(dto, cookie, flags);
  const bool is_read = dto == Dto::kRdmaRead;
  auto result = request.iov.assign(ia(), pz(), segments, is_read ? kLocalWrite : kLocalRead);
  const auto length = request.iov.length();
  // The maxima that the program requested for the EP are not enforced: programs exceed them.
  const bool is_too_long = length > kMaxMessage || (is_read && length < remote.length) ||
                           (dto == Dto::kRdmaWrite && length > remote.length);
  if (result == Result::kSuccess && is_too_long) result = Result::kLengthError;
  if (result == Result::kSuccess) {
    if (!is_read) request.iov.gather();
    return begin_last_request(remote);
  }
  requests_.pop_back();
  return result;
}

Result Ep::post_send(std::span<const LmrTriplet> segments, std::uint64_t cookie, Flags flags) {
  ia().mutex().is_held();
  if (segments.size() > static_cast<std::size_t>(attr_.max_request_iov))
    return Result::kInvalidParameter;
  return post(Dto::kSend, segments, cookie, {}, flags);
}

Result Ep::post_rdma_write(std::span<const LmrTriplet> segments, std::uint64_t cookie,
                           const RmrTriplet& remote, Flags flags) {
  ia().mutex().is_held();
  if (segments.size() > static_cast<std::size_t>(attr_.max_rdma_write_iov))
    return Result::kInvalidParameter;
  return post(Dto::kRdmaWrite, segments, cookie, remote, flags);
}

Result Ep::post_rdma_read(std::span<const LmrTriplet> segments, std::uint64_t cookie,
                          const RmrTriplet& remote, Flags flags) {
  ia().mutex().is_held();
  if (segments.size() > static_cast<std::size_t>(attr_.max_rdma_read_iov))
    return Result::kInvalidParameter;
  return post(Dto::kRdmaRead, segments, cookie, remote, flags);
}

Result Ep::begin_last_request(const RmrTriplet& remote) {
  auto& posted = requests_.back();
  if (state_ == EpState::kDisconnected) {
    posted.done = true;
    posted.status = DtoStatus::kFlushed;
    tell_requests();
    return Result::kSuccess;
  }
  const auto error = begin(posted, remote);
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
// take effect after it, and a barrier fence waits for earlier RDMA reads. Sends whose end is not
// told share acknowledgements while there are plenty of places for more.
unsigned Ep::managed_flags(const Request& request) const {
  const auto after_write = writes_ != 0 && request.dto != Dto::kRdmaWrite;
  const auto after_read = reads_ != 0 && (request.flags & kBarrierFence) != 0;
  const auto untold = request.dto == Dto::kSend && (request.flags & kSuppress) != 0;
  const auto plenty = 4 * requests_.size() < static_cast<std::size_t>(attr_.max_request_dtos);
  unsigned flags = after_write || after_read ? STM_FENCE : 0;
  if (untold && plenty) flags |= STM_LAZY;
  return flags;
}

int Ep::begin(const Request& request, const RmrTriplet& remote) {
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
  auto& request = add_request(Dto::kBind, cookie, flags);
  request.handle = rmr.handle();
  request.done = true;
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
