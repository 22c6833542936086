// SPDX-License-Identifier: BSD-3-Clause
#include "libst/udapl/core/service_point.h"

#include "libst/udapl/core/cr.h"
#include "libst/udapl/core/ep.h"
#include "libst/udapl/core/ia.h"

namespace stp::udapl {
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
  if (evd->freed()) return Result::kInvalidHandle;
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
  if (evd->freed() || ep->freed()) return Result::kInvalidHandle;
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
  ia().listeners().remove(*this);
  evd_->detach_other();
  ep_.reset();
}

// An RSP that has had its request releases its qualifier, EVD and EP. Its handle stays valid until
// the consumer frees it: programs do so when they find it in the event.
void ServicePoint::spend() {
  spent_ = true;
  retire();
  ia().release(*this);
}

void ServicePoint::abandon() {
  ep_.reset();
}

void ServicePoint::arrived(stm_connection_t connection) {
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
