// SPDX-License-Identifier: BSD-3-Clause
// States and connections of an EP.
#include <string>

#include "libst/udapl/core/connection_info.h"
#include "libst/udapl/core/ep.h"
#include "libst/udapl/core/ia.h"
#include "libst/udapl/core/qualifier.h"

namespace stp::udapl {

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
