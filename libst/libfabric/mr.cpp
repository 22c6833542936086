// SPDX-License-Identifier: BSD-3-Clause
#include "libst/libfabric/mr.h"

#include <memory>
#include <mutex>
#include <utility>

#include "libst/libfabric/calls.h"
#include "libst/libfabric/cntr.h"
#include "libst/libfabric/domain.h"
#include "libst/libfabric/provider.h"

namespace stp::fi {
namespace {

constexpr std::uint64_t kAllAccess =
    FI_SEND | FI_RECV | FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE;
// Others are hints, and those that layers of libfabric have among themselves (ofi_rxm sets one).
constexpr std::uint64_t kRefusedFlags = FI_RMA_PMEM | FI_HMEM_DEVICE_ONLY;

Mr& mr_of(fid_t id) {
  return object_of<Mr, fid_mr>(id);
}

fi_ops mr_calls{
    .size = sizeof(fi_ops),
    .close = [](fid_t id) { return guarded([&] { return mr_of(id).close(); }); },
    .bind =
        [](fid_t id, fid_t other, std::uint64_t flags) {
          return guarded([&] { return mr_of(id).bind_cntr(other, flags); });
        },
    .control = refuse,
    .ops_open = refuse,
    .tostr = refuse,
    .ops_set = refuse,
};

// What peers may do. A FetchOp reads and writes.
unsigned remote_access(std::uint64_t access) {
  unsigned remote = 0;
  if ((access & FI_REMOTE_READ) != 0) remote |= STM_REMOTE_READ;
  if ((access & FI_REMOTE_WRITE) != 0) remote |= STM_REMOTE_WRITE;
  if (remote == (STM_REMOTE_READ | STM_REMOTE_WRITE)) remote |= STM_REMOTE_ATOMIC;
  return remote;
}

}  // namespace

Mr::Mr(Domain& domain, void* buffer, std::size_t length, std::uint64_t access, void* context)
    : fid_mr{.fid = {.fclass = FI_CLASS_MR, .context = context, .ops = &mr_calls},
             .mem_desc = this,
             .key = 0},
      domain_(domain),
      buffer_(buffer),
      length_(length),
      access_(access) {
  domain_.use();
}

int Mr::bind() {
  const auto remote = remote_access(access_);
  const auto written = (access_ & (FI_RECV | FI_READ)) != 0;
  const auto local = static_cast<unsigned>(written ? STM_LOCAL_WRITE : STM_LOCAL_READ);
  auto error =
      stm_memory_register(domain_.link().domain(), buffer_, length_, local | remote, &memory_);
  if (error != 0 || remote == 0) return error;
  stm_remote_t told{};
  error = stm_region_open(memory_, buffer_, length_, remote, nullptr,
                          reinterpret_cast<std::uintptr_t>(buffer_), &region_, &told);
  key = told.key;
  return error;
}

int Mr::open(Domain& domain, const void* buffer, std::size_t length, std::uint64_t access,
             std::uint64_t flags, void* context, fid_mr*& out) {
  if ((flags & kRefusedFlags) != 0) return -FI_EBADFLAGS;
  if ((access & ~kAllAccess) != 0) return -FI_EINVAL;
  if (buffer == nullptr && length != 0) return -FI_EINVAL;
  // Freed as a program would: what was made so far goes.
  struct Close {
    void operator()(Mr* mr) const { mr->close(); }
  };
  std::unique_ptr<Mr, Close> mr(new Mr(domain, const_cast<void*>(buffer), length, access, context));
  if (length != 0)
    if (const auto error = mr->bind(); error != 0)
      return explain(FI_LOG_MR, "memory of " + std::to_string(length) + " bytes", error);
  out = mr.release();
  return 0;
}

int Mr::bind_cntr(fid_t other, std::uint64_t flags) {
  constexpr std::uint64_t kKnown = FI_REMOTE_READ | FI_REMOTE_WRITE;
  if (other->fclass != FI_CLASS_CNTR) return -FI_ENOSYS;
  if ((flags & ~kKnown) != 0 || flags == 0) return -FI_EBADFLAGS;
  std::lock_guard const lock(domain_.link().mutex());
  const std::array wanted{(flags & FI_REMOTE_WRITE) != 0, (flags & FI_REMOTE_READ) != 0};
  for (std::size_t i = 0; i < wanted.size(); ++i)
    if (region_ == nullptr || (wanted[i] && counters_[i] != nullptr)) return -FI_EINVAL;
  auto& counter = object_of<Cntr, fid_cntr>(other);
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    if (!wanted[i]) continue;
    counters_[i] = &counter;
    counter.use();
  }
  domain_.watch(*this);
  return 0;
}

void Mr::count_access(bool reads) const {
  if ((access_ & (reads ? FI_REMOTE_READ : FI_REMOTE_WRITE)) == 0) return;
  if (auto* const counter = counters_[reads ? 1 : 0]; counter != nullptr) counter->count(false);
}

int Mr::close() {
  {
    std::lock_guard const lock(domain_.link().mutex());
    for (auto*& counter : counters_)
      if (counter != nullptr) {
        domain_.unwatch(*this);
        std::exchange(counter, nullptr)->unuse();
      }
  }
  if (region_ != nullptr) stm_region_close(region_);
  region_ = nullptr;
  if (memory_ != nullptr && stm_memory_release(memory_) == -EBUSY) return -FI_EBUSY;
  domain_.unuse();
  delete this;
  return 0;
}

}  // namespace stp::fi
