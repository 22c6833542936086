// SPDX-License-Identifier: BSD-3-Clause
#include "libst/udapl/core/cr.h"

#include "libst/udapl/core/connection_info.h"
#include "libst/udapl/core/ep.h"
#include "libst/udapl/core/ia.h"
#include "libst/udapl/core/service_point.h"

namespace stp::udapl {

Cr::Cr(Ia& ia, stm_connection_t connection, PrivateData data, std::shared_ptr<Ep> reserved)
    : Object(Kind::kCr, ia),
      connection_(connection),
      data_(std::move(data)),
      remote_port_(info_of(connection).peer_port),
      reserved_(std::move(reserved)) {}

Cr::~Cr() = default;

Result Cr::accept(std::shared_ptr<Ep> ep, std::span<const std::byte> private_data) {
  const Lock lock(ia().mutex());
  if (freed() || (ep && ep->freed())) return Result::kInvalidHandle;
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

}  // namespace stp::udapl
