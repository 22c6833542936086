// SPDX-License-Identifier: BSD-3-Clause
#include "libst/udapl/core/ep.h"

#include <utility>

#include "libst/udapl/core/connection_info.h"
#include "libst/udapl/core/ia.h"

namespace stp::udapl {

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

}  // namespace stp::udapl
