// SPDX-License-Identifier: BSD-3-Clause
#include "libst/libfabric/op.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "libst/libfabric/provider.h"
#include "libst/libfabric/queues.h"

namespace stp::fi {

int read_segments(const iovec* iov, void** desc, std::size_t count, Segments& out) {
  if (count > kSegments) return -FI_EINVAL;
  out.count = count;
  for (std::size_t i = 0; i < count; ++i) {
    out.iov[i] = iov[i];
    out.desc[i] = desc != nullptr ? desc[i] : nullptr;
    out.length += iov[i].iov_len;
  }
  return 0;
}

Segments one_segment(const void* buffer, std::size_t length, void* desc) {
  Segments one;
  one.count = 1;
  one.iov[0] = {const_cast<void*>(buffer), length};
  one.desc[0] = desc;
  one.length = length;
  return one;
}

Segments shortened(const Segments& segments, std::size_t length) {
  auto result = segments;
  result.length = std::min(length, segments.length);
  auto left = result.length;
  for (std::size_t i = 0; i < result.count; ++i) {
    result.iov[i].iov_len = std::min(result.iov[i].iov_len, left);
    left -= result.iov[i].iov_len;
  }
  return result;
}

Segments without(const Segments& segments, std::size_t length) {
  auto result = segments;
  result.length -= std::min(length, result.length);
  for (std::size_t i = 0; i < result.count; ++i) {
    auto& part = result.iov[i];
    const auto left_out = std::min(length, part.iov_len);
    if (left_out != 0) part.iov_base = static_cast<std::byte*>(part.iov_base) + left_out;
    part.iov_len -= left_out;
    length -= left_out;
  }
  return result;
}

void gather(const Segments& from, std::byte* to) {
  for (std::size_t i = 0; i < from.count; ++i) {
    if (from.iov[i].iov_len != 0) std::memcpy(to, from.iov[i].iov_base, from.iov[i].iov_len);
    to += from.iov[i].iov_len;
  }
}

[[gnu::noinline]] void scatter(const std::byte* from, const Segments& to, std::size_t length) {
  for (std::size_t i = 0; i < to.count && length != 0; ++i) {
    const auto part = std::min(length, to.iov[i].iov_len);
    if (part == 0) continue;
    std::memcpy(to.iov[i].iov_base, from, part);
    from += part;
    length -= part;
  }
}

int Reports::bind_cq(fid_t other, std::uint64_t flags) {
  constexpr std::uint64_t kKnown = FI_TRANSMIT | FI_RECV | FI_SELECTIVE_COMPLETION;
  if ((flags & ~kKnown) != 0) return -FI_EBADFLAGS;
  auto& cq = object_of<Cq, fid_cq>(other);
  const auto selective = (flags & FI_SELECTIVE_COMPLETION) != 0;
  if (((flags & FI_TRANSMIT) != 0 && tx_cq_ != nullptr) ||
      ((flags & FI_RECV) != 0 && rx_cq_ != nullptr))
    return -FI_EINVAL;
  if ((flags & FI_TRANSMIT) != 0) {
    tx_cq_ = &cq;
    tx_selective_ = selective;
    cq.use();
  }
  if ((flags & FI_RECV) != 0) {
    rx_cq_ = &cq;
    rx_selective_ = selective;
    cq.use();
  }
  return 0;
}

int Reports::bind_cntr(fid_t other, std::uint64_t flags, bool accesses) {
  constexpr std::array<std::uint64_t, 6> kFlags{FI_SEND,  FI_RECV,        FI_READ,
                                                FI_WRITE, FI_REMOTE_READ, FI_REMOTE_WRITE};
  constexpr std::uint64_t kAccesses = FI_REMOTE_READ | FI_REMOTE_WRITE;
  if ((flags & ~(FI_SEND | FI_RECV | FI_READ | FI_WRITE | kAccesses)) != 0) return -FI_EBADFLAGS;
  if ((flags & kAccesses) != 0 && !accesses) {
    inform(FI_LOG_EP_CTRL,
           "counters count accesses of peers (FI_REMOTE_READ, _WRITE) of FI_EP_RDM with "
           "FI_RMA_EVENT alone");
    return -FI_ENOSYS;
  }
  auto& counter = object_of<Cntr, fid_cntr>(other);
  for (std::size_t i = 0; i < kFlags.size(); ++i) {
    if ((flags & kFlags[i]) == 0) continue;
    if (counters_[i] != nullptr) return -FI_EINVAL;
    counters_[i] = &counter;
    counter.use();
  }
  return 0;
}

void Reports::count_access(bool reads) {
  if (auto* const counter = counters_[reads ? 4 : 5]; counter != nullptr) counter->count(false);
}

bool Reports::has_counter() const {
  return std::ranges::any_of(counters_, [](const Cntr* counter) { return counter != nullptr; });
}

void Reports::release() {
  if (tx_cq_ != nullptr) tx_cq_->unuse();
  if (rx_cq_ != nullptr) rx_cq_->unuse();
  for (auto* const counter : counters_)
    if (counter != nullptr) counter->unuse();
  *this = {};
}

bool Reports::tells(Direction direction, std::uint64_t flags) const {
  const auto selective = direction == Direction::kReceive ? rx_selective_ : tx_selective_;
  return (!selective || (flags & FI_COMPLETION) != 0) && (flags & kUntold) == 0;
}

bool Reports::are_full() const {
  return rx_cq_ != nullptr && rx_cq_->is_full();
}

void Reports::tell_written(std::uint64_t length, std::uint64_t data, fi_addr_t source) {
  if (rx_cq_ == nullptr) return;
  auto& told = rx_cq_->add();
  told = {};
  told.entry.flags = FI_RMA | FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA;
  told.entry.len = static_cast<std::size_t>(length);
  told.entry.data = data;
  told.source = source;
  rx_cq_->wake();
}

void Reports::sent(void* context, std::uint64_t kind, std::uint64_t flags) {
  if (auto* const counter = counters_[static_cast<std::size_t>(Direction::kSend)];
      counter != nullptr)
    counter->count(false);
  if (tx_cq_ == nullptr || !tells(Direction::kSend, flags)) return;
  tx_cq_->add().succeed(
      {.op_context = context, .flags = kind, .len = 0, .buf = nullptr, .data = 0, .tag = 0},
      FI_ADDR_NOTAVAIL);
  tx_cq_->wake();
}

Completion* Reports::received(std::uint64_t flags) {
  if (auto* const counter = counters_[static_cast<std::size_t>(Direction::kReceive)];
      counter != nullptr)
    counter->count(false);
  if (rx_cq_ == nullptr || !tells(Direction::kReceive, flags)) return nullptr;
  auto& told = rx_cq_->add();
  rx_cq_->wake();  // whoever wakes up waits for the link's lock, which the caller holds
  return &told;
}

void Reports::complete(const Outcome& op) {
  const auto error = op.status != 0 || op.overflow != 0;
  if (auto* const counter = counters_[static_cast<std::size_t>(op.direction)]; counter != nullptr)
    counter->count(error);
  if (op.injected && error) inform(FI_LOG_EP_DATA, "what was injected has not arrived");
  tell(op);
}

void Reports::tell(const Outcome& op) {
  const auto receives = op.direction == Direction::kReceive;
  const auto error = op.status != 0 ? error_of(op.status) : (op.overflow != 0 ? FI_ETRUNC : 0);
  auto* const cq = receives ? rx_cq_ : tx_cq_;
  if (cq == nullptr || op.injected || (error == 0 && !op.told)) return;
  auto& told = cq->add();
  told.entry = {.op_context = op.context,
                .flags = op.flags,
                .len = receives ? op.length : 0,
                .buf = op.buffer,
                .data = receives ? op.data : 0,
                .tag = op.tag};
  told.source = op.source;
  told.error = error;
  told.status = op.status != 0 ? op.status : -error;
  told.overflow = op.overflow;
  cq->wake();
}

}  // namespace stp::fi
