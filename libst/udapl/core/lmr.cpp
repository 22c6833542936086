// SPDX-License-Identifier: BSD-3-Clause
#include "libst/udapl/core/lmr.h"

#include "libst/udapl/core/ia.h"

namespace stp::udapl {

unsigned access_of(unsigned privileges) {
  unsigned access = 0;
  if ((privileges & kLocalRead) != 0) access |= STM_LOCAL_READ;
  if ((privileges & kLocalWrite) != 0) access |= STM_LOCAL_WRITE;
  if ((privileges & kRemoteRead) != 0) access |= STM_REMOTE_READ;
  if ((privileges & kRemoteWrite) != 0) access |= STM_REMOTE_WRITE;
  return access;
}

Result Lmr::create(Ia& ia, const std::shared_ptr<Pz>& pz, const Attr& attr,
                   std::shared_ptr<Lmr>& out) {
  if (attr.length == 0) return Result::kLengthError;
  if (attr.start == nullptr || (attr.privileges & ~kAllPrivileges) != 0)
    return Result::kInvalidParameter;
  const Lock lock(ia.mutex());
  if (pz->freed()) return Result::kInvalidHandle;
  auto lmr = std::make_shared<Lmr>(ia, pz, attr);
  if (const auto error = lmr->open(); error != 0) return result_of(error);
  lmr->context_ = ia.add_lmr(*lmr);
  pz->use();
  out = ia.adopt(std::move(lmr));
  return Result::kSuccess;
}

int Lmr::open() {
  const auto access = access_of(attr_.privileges);
  auto error = stm_memory_register(ia().domain(), attr_.start, attr_.length, access, &memory_);
  if (error != 0) return error;
  const auto remote = access & (STM_REMOTE_READ | STM_REMOTE_WRITE);
  if (remote == 0) return 0;
  error = stm_region_open_group(memory_, attr_.start, attr_.length, remote, pz_->group(), base(),
                                &region_, &remote_);
  if (error != 0) stm_memory_release(memory_);
  return error;
}

int Lmr::close() {
  if (region_ != nullptr) stm_region_close(region_);
  region_ = nullptr;
  return stm_memory_withdraw(memory_);
}

Result Lmr::free() {
  const Lock lock(ia().mutex());
  if (freed()) return Result::kInvalidHandle;
  ia().progress().poll();
  if (used()) return Result::kInvalidState;
  if (const auto error = close(); error != 0) return result_of(error);
  pz_->unuse();
  ia().remove_lmr(context_);
  ia().forget(*this);
  return Result::kSuccess;
}

// Closing the domain closes the memory.
void Lmr::abandon() {
  ia().remove_lmr(context_);
}

std::byte* Lmr::part(const LmrTriplet& triplet) const {
  const auto offset = triplet.address - base();
  if (triplet.address < base() || offset > attr_.length || triplet.length > attr_.length - offset)
    return nullptr;
  return static_cast<std::byte*>(attr_.start) + offset;
}

}  // namespace stp::udapl
