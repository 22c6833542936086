// SPDX-License-Identifier: BSD-3-Clause
#include "libst/udapl/core/srq.h"

#include <algorithm>
#include <utility>

#include "libst/udapl/core/ia.h"
#include "stp/base/assert.h"

namespace stp::udapl {

Result Srq::create(Ia& ia, const std::shared_ptr<Pz>& pz, const Attr& attr,
                   std::shared_ptr<Srq>& out) {
  if (attr.max_recv_dtos <= 0 || attr.max_recv_iov < 0 || attr.max_recv_iov > kMaxIov ||
      attr.low_watermark < 0 || attr.low_watermark > attr.max_recv_dtos)
    return Result::kInvalidParameter;
  if (attr.max_recv_dtos > kMaxReceives) return Result::kInsufficientResources;
  const Lock lock(ia.mutex());
  if (!pz->is_of(ia)) return Result::kInvalidHandle;
  auto srq = std::make_shared<Srq>(ia, pz, attr);
  const auto error =
      stm_pool_create(ia.domain(), static_cast<std::size_t>(attr.max_recv_dtos), &srq->pool_);
  if (error != 0) return result_of(error);
  srq->provide_slots(attr.max_recv_dtos);
  pz->use();
  out = ia.adopt(std::move(srq));
  return Result::kSuccess;
}

void Srq::provide_slots(int count) {
  const auto wanted = static_cast<std::size_t>(count);
  free_.reserve(std::max(wanted, slots_.size()));
  for (auto i = slots_.size(); i < wanted; ++i) free_.push_back(i);
  if (wanted > slots_.size()) slots_.resize(wanted);
}

Result Srq::free() {
  const Lock lock(ia().mutex());
  if (freed()) return Result::kInvalidHandle;
  if (used()) return Result::kInvalidState;
  if (const auto error = stm_pool_destroy(pool_, nullptr, nullptr); error != 0)
    return result_of(error);
  pz_->unuse();
  slots_.clear();
  free_.clear();
  ia().forget(*this);
  return Result::kSuccess;
}

Result Srq::post(std::span<const LmrTriplet> segments, std::uint64_t cookie) {
  ia().mutex().is_held();
  if (freed()) return Result::kInvalidHandle;
  const auto most = attr_.max_recv_iov == 0 ? kMaxIov : attr_.max_recv_iov;
  if (segments.size() > static_cast<std::size_t>(most)) return Result::kInvalidParameter;
  if (outstanding() >= attr_.max_recv_dtos) ia().progress().poll();
  if (outstanding() >= attr_.max_recv_dtos) return Result::kInsufficientResources;
  Receive receive{{}, cookie, 0};
  if (const auto result = receive.iov.assign(ia(), *pz_, segments, kLocalWrite);
      result != Result::kSuccess)
    return result;
  const auto& iov = receive.iov;
  STP_ASSERT(!free_.empty() && !slots_[free_.back()], "a buffer that may be posted has a place");
  const auto slot = free_.back();
  if (const auto error = stm_pool_post(pool_, slot, iov.memory(), iov.data(), iov.length());
      error != 0)
    return result_of(error);
  slots_[slot] = std::move(receive);
  free_.pop_back();
  return Result::kSuccess;
}

Result Srq::resize(int max_recv_dtos) {
  const Lock lock(ia().mutex());
  if (freed()) return Result::kInvalidHandle;
  if (max_recv_dtos <= 0) return Result::kInvalidParameter;
  if (max_recv_dtos > kMaxReceives) return Result::kInsufficientResources;
  ia().progress().poll();
  if (max_recv_dtos < outstanding() || max_recv_dtos < attr_.low_watermark)
    return Result::kInvalidState;
  const auto error = stm_pool_resize(pool_, static_cast<std::size_t>(max_recv_dtos));
  if (error != 0) return result_of(error);
  provide_slots(max_recv_dtos);
  attr_.max_recv_dtos = max_recv_dtos;
  return Result::kSuccess;
}

Result Srq::set_low_watermark(int low_watermark) {
  const Lock lock(ia().mutex());
  if (freed()) return Result::kInvalidHandle;
  if (low_watermark < 0 || low_watermark > attr_.max_recv_dtos) return Result::kInvalidParameter;
  ia().progress().poll();
  attr_.low_watermark = low_watermark;
  armed_ = low_watermark > 0;
  check_watermark();
  return Result::kSuccess;
}

Result Srq::query(Param& out) {
  const Lock lock(ia().mutex());
  if (freed()) return Result::kInvalidHandle;
  ia().progress().poll();
  out = {attr_, available(), outstanding()};
  return Result::kSuccess;
}

std::optional<Receive> Srq::completed(std::uint64_t context) {
  if (context >= slots_.size() || !slots_[context]) return std::nullopt;
  auto receive = std::exchange(slots_[context], std::nullopt);
  free_.push_back(context);
  ++unreaped_;
  STP_ASSERT(free_.size() <= slots_.size(), "a place is free once");
  return receive;
}

void Srq::check_watermark() {
  ia().mutex().is_held();
  if (!armed_ || available() >= attr_.low_watermark) return;
  armed_ = false;
  Event event;
  event.number = EventNumber::kProviderInternalError;
  event.handle = handle();
  event.reason = AsyncReason::kLowWatermark;
  ia().tell_async(std::move(event));
}

}  // namespace stp::udapl
