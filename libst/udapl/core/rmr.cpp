// SPDX-License-Identifier: BSD-3-Clause
#include "libst/udapl/core/rmr.h"

#include "libst/udapl/core/ia.h"

namespace stp::udapl {

Result Rmr::create(Ia& ia, const std::shared_ptr<Pz>& pz, std::shared_ptr<Rmr>& out) {
  const Lock lock(ia.mutex());
  if (pz->freed()) return Result::kInvalidHandle;
  pz->use();
  out = ia.adopt(std::make_shared<Rmr>(ia, pz));
  return Result::kSuccess;
}

Result Rmr::free() {
  const Lock lock(ia().mutex());
  if (freed()) return Result::kInvalidHandle;
  unbind();
  pz_->unuse();
  ia().forget(*this);
  return Result::kSuccess;
}

void Rmr::abandon() {
  lmr_.reset();
}

void Rmr::unbind() {
  if (region_ != nullptr) stm_region_close(region_);
  region_ = nullptr;
  if (lmr_) lmr_->unuse();
  lmr_.reset();
  triplet_ = {};
  privileges_ = 0;
  context_ = 0;
}

Result Rmr::open(const LmrTriplet& triplet, unsigned privileges, bool zero_based, const Ep& ep) {
  auto* const lmr = ia().find_lmr(triplet.context);
  if (lmr == nullptr) return Result::kInvalidParameter;
  if (&lmr->pz() != pz_.get()) return Result::kProtectionViolation;
  const auto granted = lmr->attr().privileges;
  if ((privileges & ~granted) != 0) return Result::kPrivilegesViolation;
  auto* const data = lmr->part(triplet);
  if (data == nullptr) return Result::kInvalidParameter;
  stm_remote_t remote{};
  stm_region_t region = nullptr;
  const auto access = access_of(privileges) & (STM_REMOTE_READ | STM_REMOTE_WRITE);
  const auto error = stm_region_open(lmr->memory(), data, triplet.length, access, ep.connection(),
                                     zero_based ? 0 : triplet.address, &region, &remote);
  if (error != 0) return result_of(error);
  unbind();
  region_ = region;
  lmr_ = std::static_pointer_cast<Lmr>(lmr->shared_from_this());
  lmr_->use();
  triplet_ = triplet;
  privileges_ = privileges;
  context_ = remote.key;
  return Result::kSuccess;
}

Result Rmr::bind(const LmrTriplet& triplet, unsigned privileges, bool zero_based, Ep& ep,
                 std::uint64_t cookie, Flags flags, std::uint32_t& context) {
  const Lock lock(ia().mutex());
  if (freed() || ep.freed()) return Result::kInvalidHandle;
  if (&ep.pz() != pz_.get()) return Result::kProtectionViolation;
  if (const auto result = ep.check_request(flags); result != Result::kSuccess) return result;
  if (ep.state() != EpState::kConnected) return Result::kInvalidState;
  if (triplet.length == 0) {
    unbind();
  } else if (const auto result = open(triplet, privileges, zero_based, ep);
             result != Result::kSuccess) {
    return result;
  }
  context = context_;
  return ep.post_bind(*this, cookie, flags);
}

Result Rmr::query(Param& out) {
  const Lock lock(ia().mutex());
  if (freed()) return Result::kInvalidHandle;
  out = {pz_, triplet_, privileges_, context_};
  return Result::kSuccess;
}

}  // namespace stp::udapl
