// SPDX-License-Identifier: BSD-3-Clause
#include "libst/service/page_pins.h"

#include <fcntl.h>
#include <linux/io_uring.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <mutex>
#include <optional>
#include <utility>

#include "libst/ipc/shared_memory.h"

namespace stp::service {
namespace {

// Of <linux/io_uring.h>, which lacks some of it in older versions.
constexpr unsigned kRegisterBuffers = 15, kUpdateBuffers = 16;
constexpr std::uint32_t kSparse = 1;
struct BufferTable {
  std::uint32_t count, flags;
  std::uint64_t reserved, data, tags;
};
struct BufferUpdate {
  std::uint32_t first, reserved;
  std::uint64_t data, tags;
  std::uint32_t count, reserved_too;
};

template <typename Argument>
bool change(int ring, unsigned what, Argument& argument) {
  return ::syscall(SYS_io_uring_register, ring, what, &argument, sizeof argument) >= 0;
}

}  // namespace

// An io_uring that is used for nothing but its table of buffers.
class PagePins::Ring {
 public:
  static constexpr std::uint32_t kSlots = 4'096;

  static std::shared_ptr<Ring> make(Reservation file) {
    io_uring_params parameters{};
    UniqueFd fd(static_cast<int>(::syscall(SYS_io_uring_setup, 1, &parameters)));
    BufferTable table{.count = kSlots, .flags = kSparse, .reserved = 0, .data = 0, .tags = 0};
    if (!fd || !change(fd.get(), kRegisterBuffers, table)) return nullptr;
    return std::make_shared<Ring>(std::move(file), std::move(fd));
  }
  Ring(Reservation file, UniqueFd fd) : file_(std::move(file)), fd_(std::move(fd)) {
    free_.reserve(kSlots);
  }

  std::optional<std::uint32_t> take_slot() {
    std::lock_guard const lock(mutex_);
    if (free_.empty()) return next_ < kSlots ? std::optional(next_++) : std::nullopt;
    const auto slot = free_.back();
    free_.pop_back();
    return slot;
  }
  void return_slot(std::uint32_t slot) {
    std::lock_guard const lock(mutex_);
    free_.push_back(slot);
  }
  [[nodiscard]] bool has_room() {
    std::lock_guard const lock(mutex_);
    return !free_.empty() || next_ < kSlots;
  }
  // `size` 0: nothing is pinned there any more.
  bool set(std::uint32_t slot, std::byte* page, std::size_t size) {
    iovec part{.iov_base = page, .iov_len = size};
    std::uint64_t tag = 0;
    BufferUpdate update{.first = slot,
                        .reserved = 0,
                        .data = reinterpret_cast<std::uintptr_t>(&part),
                        .tags = reinterpret_cast<std::uintptr_t>(&tag),
                        .count = 1,
                        .reserved_too = 0};
    return change(fd_.get(), kUpdateBuffers, update);
  }

 private:
  const Reservation file_;
  const UniqueFd fd_;
  std::mutex mutex_;
  std::uint32_t next_ = 0;  // slots from here on were never used
  std::vector<std::uint32_t> free_;
};

PagePins& PagePins::operator=(PagePins&& other) noexcept {
  release();
  slots_ = std::exchange(other.slots_, {});
  pipes_ = std::exchange(other.pipes_, {});
  return *this;
}

bool PagePins::wanted() {
  constexpr int kCollapse = 25;  // MADV_COLLAPSE
  return ::madvise(nullptr, 0, kCollapse) == 0;
}

bool PagePins::possible() {
  static const bool can = Ring::make({}) != nullptr;
  return can;
}

// Each user has rings of its own, because a ring is locked while it pins.
int PagePins::ring_with_room(const Account& payer, std::shared_ptr<Ring>& out) {
  static std::mutex mutex;
  // Never destroyed: workers may outlive main().
  static auto* const rings = new std::multimap<uid_t, std::weak_ptr<Ring>>;
  std::lock_guard const lock(mutex);
  std::erase_if(*rings, [](const auto& entry) { return entry.second.expired(); });
  const auto [first, last] = rings->equal_range(payer.uid());
  for (auto at = first; at != last; ++at)
    if (out = at->second.lock(); out != nullptr && out->has_room()) return 0;
  Reservation file;
  if (!payer.reserve(Resource::kFiles, 1, file)) return -EDQUOT;
  out = Ring::make(std::move(file));
  if (out == nullptr) return -ENOTSUP;
  rings->emplace(payer.uid(), out);
  return 0;
}

// The first page of each piece: the kernel moves them in order, so it has moved none when it meets
// the one that is pinned.
int PagePins::pin(const Account& payer, MutableBytes mapped, std::uint64_t offset, bool writable) {
  std::vector<std::byte*> pages;
  for (std::uint64_t at = 0; at < mapped.size(); at += kPiece - (offset + at) % kPiece)
    pages.push_back(mapped.data() + at);
  const auto error = writable ? pin_for_writing(payer, pages) : pin_for_reading(payer, pages);
  if (error == -EDQUOT) release();
  return error;
}

int PagePins::pin_for_writing(const Account& payer, std::span<std::byte* const> pages) {
  if (!possible()) return -ENOTSUP;
  slots_.reserve(slots_.size() + pages.size());
  for (auto* const page : pages)
    if (const auto error = pin_one(payer, page); error != 0) return error;
  return 0;
}

int PagePins::pin_one(const Account& payer, std::byte* page) {
  auto ring = slots_.empty() ? nullptr : slots_.back().ring;
  auto slot = ring == nullptr ? std::nullopt : ring->take_slot();
  if (!slot) {
    if (const auto error = ring_with_room(payer, ring); error != 0) return error;
    slot = ring->take_slot();
  }
  if (!slot) return -ENOTSUP;
  if (!ring->set(*slot, page, page_size())) {
    ring->return_slot(*slot);
    return -ENOTSUP;
  }
  slots_.push_back({std::move(ring), *slot});
  return 0;
}

// A pipe is as large as it needs to be, because all those of one user may have so many pages.
int PagePins::pin_for_reading(const Account& payer, std::span<std::byte* const> pages) {
  constexpr std::size_t kMostOfPipe = 256;
  while (!pages.empty()) {
    const auto count = std::min(pages.size(), kMostOfPipe);
    Reservation file;
    if (!payer.reserve(Resource::kFiles, 1, file)) return -EDQUOT;
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) return -ENOTSUP;
    UniqueFd reads(ends[0]);
    const UniqueFd writes(ends[1]);
    ::fcntl(writes.get(), F_SETPIPE_SZ, static_cast<int>(count * page_size()));
    std::vector<iovec> parts;
    for (auto* const page : pages.first(count)) parts.push_back({page, page_size()});
    const auto put = ::vmsplice(writes.get(), parts.data(), parts.size(), SPLICE_F_NONBLOCK);
    if (put < static_cast<ssize_t>(page_size())) return -ENOTSUP;
    pages = pages.subspan(static_cast<std::size_t>(put) / page_size());
    pipes_.push_back({std::move(file), std::move(reads)});
  }
  return 0;
}

void PagePins::release() {
  for (const auto& slot : slots_)
    if (slot.ring->set(slot.number, nullptr, 0)) slot.ring->return_slot(slot.number);
  slots_.clear();
  pipes_.clear();
}

}  // namespace stp::service
