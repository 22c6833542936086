// SPDX-License-Identifier: BSD-3-Clause
#include "libst/udapl/core/ep.h"

#include <string>
#include <utility>

#include "libst/udapl/core/ia.h"
#include "libst/udapl/core/iov.h"
#include "libst/udapl/core/private_data.h"

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
  if (pz->freed() || (srq && srq->freed())) return Result::kInvalidHandle;
  for (const auto& evd : {recv, request, connect})
    if (evd && evd->freed()) return Result::kInvalidHandle;
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
  broken_ = false;
  return Result::kSuccess;
}

Result Ep::query(Param& out) {
  const Lock lock(ia().mutex());
  if (freed()) return Result::kInvalidHandle;
  ia().progress().poll();
  out = {state_.state(), parts_, attr_, remote_ipv4_, info_of(connection_).local_port,
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

void Ep::on_event(const stm_event_t& event) {
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

}  // namespace stp::udapl
