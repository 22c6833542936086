// SPDX-License-Identifier: BSD-3-Clause
#include "libst/udapl/core/service_point.h"

#include <cerrno>
#include <string>

#include "libst/udapl/core/ep.h"
#include "libst/udapl/core/ia.h"
#include "libst/udapl/core/private_data.h"

namespace stp::udapl {

int Listeners::add(stm_domain_t domain, stm_queue_t queue,
                   const std::shared_ptr<ServicePoint>& point) {
  const auto number = port_of(point->conn_qual());
  const auto known = by_port_.find(number);
  if (known != by_port_.end())
    return known->second.points.emplace(point->conn_qual(), point).second ? 0 : -EADDRINUSE;
  Listener made{nullptr, ++listened_ << 32 | number, {{point->conn_qual(), point}}};
  const auto port = ":" + std::to_string(number);
  const auto error = stm_listen(domain, port.c_str(), queue, made.context, 0, &made.handle);
  if (error == 0) by_port_.emplace(number, std::move(made));
  return error;
}

void Listeners::remove(const ServicePoint& point) {
  const auto at = by_port_.find(port_of(point.conn_qual()));
  if (at == by_port_.end()) return;
  at->second.points.erase(point.conn_qual());
  if (!at->second.points.empty()) return;
  stm_listener_close(at->second.handle);
  by_port_.erase(at);
}

void Listeners::forget() {
  by_port_.clear();
}

std::shared_ptr<ServicePoint> Listeners::find(std::uint64_t conn_qual) const {
  const auto at = by_port_.find(port_of(conn_qual));
  if (at == by_port_.end()) return nullptr;
  const auto& points = at->second.points;
  const auto point = points.find(conn_qual);
  return point == points.end() ? nullptr : point->second;
}

std::shared_ptr<ServicePoint> Listeners::asked(std::uint64_t context,
                                               std::optional<std::uint64_t> conn_qual) const {
  const auto at = by_port_.find(static_cast<std::uint32_t>(context));
  if (at == by_port_.end() || at->second.context != context) return nullptr;
  const auto& points = at->second.points;
  const auto point = points.find(conn_qual.value_or(at->first));
  return point == points.end() ? nullptr : point->second;
}

// ---- connection requests

Cr::Cr(Ia& ia, stm_connection_t connection, PrivateData data, std::shared_ptr<Ep> reserved)
    : Object(Kind::kCr, ia),
      connection_(connection),
      data_(std::move(data)),
      remote_port_(info_of(connection).peer_port),
      reserved_(std::move(reserved)) {}

Cr::~Cr() = default;

Result Cr::accept(std::shared_ptr<Ep> ep, std::span<const std::byte> private_data) {
  const Lock lock(ia().mutex());
  if (freed() || (ep && !ep->is_of(ia()))) return Result::kInvalidHandle;
  if (reserved_ && ep && ep != reserved_) return Result::kInvalidParameter;
  if (!ep) ep = reserved_;
  if (!ep) return Result::kInvalidParameter;
  const auto keep = shared_from_this();
  if (const auto result = ep->accept(connection_, private_data); result != Result::kSuccess)
    return result;
  ia().forget(*this);
  return Result::kSuccess;
}

Result Cr::reject(std::span<const std::byte> private_data) {
  const Lock lock(ia().mutex());
  if (freed()) return Result::kInvalidHandle;
  if (private_data.size() > kMaxPrivateData) return Result::kInvalidParameter;
  const auto keep = shared_from_this();
  const auto packed = pack(ia().info().ipv4, private_data);
  stm_reject(connection_, packed.data(), packed.size());
  if (reserved_) reserved_->enter(EpInput::kUnreserve);
  ia().forget(*this);
  return Result::kSuccess;
}

Result Cr::handoff(std::uint64_t conn_qual) {
  const Lock lock(ia().mutex());
  if (freed()) return Result::kInvalidHandle;
  const auto point = ia().listeners().find(conn_qual);
  if (!point) return Result::kInvalidParameter;
  const auto keep = shared_from_this();
  if (reserved_) reserved_->enter(EpInput::kUnreserve);
  ia().forget(*this);
  point->arrived(connection_);
  return Result::kSuccess;
}

void Cr::abandon() {
  reserved_.reset();
}

namespace {

// IANA's dynamic ports.
constexpr std::uint64_t kFirstDynamic = 49152, kLastDynamic = 65535;

ServicePoint::MakeHandle make_handle = nullptr;

}  // namespace

void ServicePoint::set_make_handle(MakeHandle make) {
  make_handle = make;
}

ServicePoint::ServicePoint(Ia& ia, std::uint64_t conn_qual, std::shared_ptr<Evd> evd,
                           std::shared_ptr<Ep> ep)
    : Object(ep ? Kind::kRsp : Kind::kPsp, ia),
      conn_qual_(conn_qual),
      evd_(std::move(evd)),
      ep_(std::move(ep)) {}

ServicePoint::~ServicePoint() = default;

Result ServicePoint::listen() {
  ia().mutex().is_held();
  const auto error =
      ia().listeners().add(ia().domain(), ia().progress().queue(), self<ServicePoint>());
  if (error != 0) return result_of(error);
  const auto result = evd_->attach_other();
  if (result != Result::kSuccess) ia().listeners().remove(*this);
  return result;
}

Result ServicePoint::create_psp(Ia& ia, std::uint64_t conn_qual, const std::shared_ptr<Evd>& evd,
                                std::shared_ptr<ServicePoint>& out) {
  const Lock lock(ia.mutex());
  if (!evd->is_of(ia)) return Result::kInvalidHandle;
  if ((evd->streams() & kStreamCr) == 0) return Result::kInvalidParameter;
  auto point = std::make_shared<ServicePoint>(ia, conn_qual, evd, nullptr);
  if (const auto result = point->listen(); result != Result::kSuccess) return result;
  out = ia.adopt(std::move(point));
  return Result::kSuccess;
}

Result ServicePoint::create_psp_any(Ia& ia, const std::shared_ptr<Evd>& evd,
                                    std::shared_ptr<ServicePoint>& out) {
  for (auto qual = kFirstDynamic; qual <= kLastDynamic; ++qual) {
    const auto result = create_psp(ia, qual, evd, out);
    if (result != Result::kConnQualInUse) return result;
  }
  return Result::kConnQualUnavailable;
}

Result ServicePoint::create_rsp(Ia& ia, std::uint64_t conn_qual, const std::shared_ptr<Evd>& evd,
                                const std::shared_ptr<Ep>& ep, std::shared_ptr<ServicePoint>& out) {
  const Lock lock(ia.mutex());
  if (!evd->is_of(ia) || !ep->is_of(ia)) return Result::kInvalidHandle;
  if ((evd->streams() & kStreamCr) == 0) return Result::kInvalidParameter;
  if (!ep->enter(EpInput::kReserve)) return Result::kInvalidState;
  auto point = std::make_shared<ServicePoint>(ia, conn_qual, evd, ep);
  if (const auto result = point->listen(); result != Result::kSuccess) {
    ep->enter(EpInput::kUnreserve);
    return result;
  }
  out = ia.adopt(std::move(point));
  return Result::kSuccess;
}

Result ServicePoint::free() {
  const Lock lock(ia().mutex());
  if (freed()) return Result::kInvalidHandle;
  const auto keep = shared_from_this();
  if (ep_) ep_->enter(EpInput::kUnreserve);
  if (!spent_) retire();
  ia().forget(*this);
  return ia().freed() ? Result::kInvalidHandle : Result::kSuccess;
}

void ServicePoint::retire() {
  ia().mutex().is_held();
  ia().listeners().remove(*this);
  evd_->detach_other();
  ep_.reset();
}

// An RSP that has had its request releases its qualifier, EVD and EP. Its handle stays valid until
// the consumer frees it: programs do so when they find it in the event.
void ServicePoint::spend() {
  ia().mutex().is_held();
  spent_ = true;
  retire();
  ia().release(*this);
}

void ServicePoint::abandon() {
  ep_.reset();
}

void ServicePoint::arrived(stm_connection_t connection) {
  ia().mutex().is_held();
  auto data = unpack(connection);
  // Not a DAT peer, or the consumer's EVD is full: rejected by the provider.
  if (!data || !evd_->has_place()) {
    stm_reject(connection, nullptr, 0);
    return;
  }
  const auto keep = shared_from_this();
  if (ep_) ep_->enter(EpInput::kRequest);
  const auto cr = ia().adopt(std::make_shared<Cr>(ia(), connection, std::move(*data), ep_));
  if (make_handle != nullptr) cr->set_handle(make_handle(cr));
  Event event;
  event.number = EventNumber::kConnectionRequest;
  event.handle = handle();
  event.cr = cr->handle() != nullptr ? cr->handle() : cr.get();
  event.conn_qual = conn_qual_;
  if (ep_) spend();
  evd_->push(std::move(event));
}

}  // namespace stp::udapl
