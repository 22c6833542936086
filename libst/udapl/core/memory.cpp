// SPDX-License-Identifier: BSD-3-Clause
#include "libst/udapl/core/memory.h"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "libst/udapl/core/ep.h"
#include "libst/udapl/core/ia.h"
#include "stp/base/assert.h"

namespace stp::udapl {

Result Pz::create(Ia& ia, std::shared_ptr<Pz>& out) {
  const Lock lock(ia.mutex());
  out = ia.adopt(std::make_shared<Pz>(ia));
  return Result::kSuccess;
}

Result Pz::free() {
  const Lock lock(ia().mutex());
  if (freed()) return Result::kInvalidHandle;
  if (used()) return Result::kInvalidState;
  ia().forget(*this);
  return Result::kSuccess;
}

// ---- lmr

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
  if (!pz->is_of(ia)) return Result::kInvalidHandle;
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
  ia().mutex().is_held();
  ia().remove_lmr(context_);
}

std::byte* Lmr::part(const LmrTriplet& triplet) const {
  const auto offset = triplet.address - base();
  if (triplet.address < base() || offset > attr_.length || triplet.length > attr_.length - offset)
    return nullptr;
  return static_cast<std::byte*>(attr_.start) + offset;
}

// ---- rmr

Result Rmr::create(Ia& ia, const std::shared_ptr<Pz>& pz, std::shared_ptr<Rmr>& out) {
  const Lock lock(ia.mutex());
  if (!pz->is_of(ia)) return Result::kInvalidHandle;
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
  ia().mutex().is_held();
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
  if (freed() || !ep.is_of(ia())) return Result::kInvalidHandle;
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

namespace {

constexpr std::size_t kPage = 4096;

}  // namespace

Staging& Staging::operator=(Staging&& other) noexcept {
  std::swap(pool_, other.pool_);
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  std::swap(memory_, other.memory_);
  return *this;
}

void Staging::reset() {
  STP_ASSERT(data_ == nullptr || pool_ != nullptr, "a buffer has a pool");
  if (data_ != nullptr) pool_->free_.emplace(size_, StagingPool::Free{data_, memory_});
  data_ = nullptr;
}

// The domain has been closed, so nothing is registered any more.
StagingPool::~StagingPool() {
  for (const auto& [size, buffer] : free_) std::free(buffer.data);
}

int StagingPool::take(std::size_t size, Staging& out) {
  size = std::bit_ceil(std::max(size, kPage));
  if (const auto found = free_.find(size); found != free_.end()) {
    out = Staging(*this, found->second.data, size, found->second.memory);
    free_.erase(found);
    return 0;
  }
  auto* const data = static_cast<std::byte*>(std::aligned_alloc(kPage, size));
  if (data == nullptr) return -ENOMEM;
  stm_memory_t memory = nullptr;
  const auto error = stm_memory_register(domain_, data, size, STM_LOCAL_WRITE, &memory);
  if (error != 0) {
    std::free(data);
    return error;
  }
  out = Staging(*this, data, size, memory);
  return 0;
}

Result Iov::assign(Ia& ia, const Pz& pz, std::span<const LmrTriplet> segments, unsigned privilege) {
  ia.mutex().is_held();
  if (segments.size() > static_cast<std::size_t>(kMaxIov)) return Result::kInvalidParameter;
  Lmr* first = nullptr;
  for (const auto& segment : segments) {
    if (segment.length == 0) continue;
    auto* const lmr = ia.find_lmr(segment.context);
    if (lmr == nullptr) return Result::kPrivilegesViolation;
    if (&lmr->pz() != &pz) return Result::kProtectionViolation;
    if (!lmr->allows(privilege)) return Result::kPrivilegesViolation;
    auto* const data = lmr->part(segment);
    if (data == nullptr) return Result::kInvalidParameter;
    if (length_ != 0 && segments_.empty())
      segments_.push_back({data_, length_, first->shared_from_this()});
    if (length_ != 0) segments_.push_back({data, segment.length, lmr->shared_from_this()});
    if (length_ == 0) first = lmr;
    memory_ = lmr->memory();
    data_ = data;
    length_ += segment.length;
  }
  if (segments_.empty()) return Result::kSuccess;
  if (const auto error = ia.staging().take(length_, staging_); error != 0) return result_of(error);
  memory_ = staging_.memory();
  data_ = staging_.data();
  return Result::kSuccess;
}

void Iov::gather() const {
  auto* to = data_;
  for (const auto& segment : segments_) {
    std::memcpy(to, segment.data, segment.length);
    to += segment.length;
  }
}

bool Iov::scatter(std::size_t length) const {
  if (std::ranges::any_of(segments_, [](const auto& segment) { return segment.lmr->freed(); }))
    return false;
  const auto* from = data_;
  for (const auto& segment : segments_) {
    const auto part = std::min(length, segment.length);
    if (part == 0) break;
    std::memcpy(segment.data, from, part);
    from += part;
    length -= part;
  }
  return true;
}

}  // namespace stp::udapl
