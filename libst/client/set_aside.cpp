// SPDX-License-Identifier: BSD-3-Clause
#include "libst/client/set_aside.h"

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "libst/client/write_freeze.h"
#include "stp/base/assert.h"

namespace stp::client {
namespace {

std::byte* at(Span pages) {
  return reinterpret_cast<std::byte*>(pages.begin);
}

MutableBytes bytes(Span pages) {
  return {at(pages), pages.size()};
}

// Copies word by word and without the checks of sanitizers: the pages also hold bytes that are not
// the caller's, and bytes that other threads are writing.
using Word = std::uint64_t;

__attribute__((no_sanitize("address", "thread"))) void copy_words(std::byte* to,
                                                                  const std::byte* from,
                                                                  std::size_t size) {
  for (std::size_t i = 0; i < size; i += sizeof(Word))
    *reinterpret_cast<volatile Word*>(to + i) = *reinterpret_cast<const volatile Word*>(from + i);
}

// Stores the bytes that differ from `before`, one by one, because stpd may be writing to their
// neighbours.
__attribute__((no_sanitize("address", "thread"))) void store_changes(std::byte* to,
                                                                     const std::byte* now,
                                                                     const std::byte* before,
                                                                     std::size_t size) {
  for (std::size_t i = 0; i < size; i += sizeof(Word)) {
    const auto is = *reinterpret_cast<const volatile Word*>(now + i);
    const auto was = *reinterpret_cast<const Word*>(before + i);
    if (is == was) continue;
    for (std::size_t k = i; k < i + sizeof(Word); ++k) {
      const auto byte = *const_cast<const volatile std::byte*>(now + k);
      if (byte != before[k]) *const_cast<volatile std::byte*>(to + k) = byte;
    }
  }
}

// Makes pages readable while it exists, also those that the program has mapped without PROT_READ.
class Readable {
 public:
  Readable(Span pages, int protection) : pages_(pages), protection_(protection) {
    if (!set(protection | PROT_READ)) protection_ = kRefused;
  }
  ~Readable() {
    if (protection_ != kRefused) set(protection_);
  }
  Readable(const Readable&) = delete;
  Readable& operator=(const Readable&) = delete;
  explicit operator bool() const { return protection_ != kRefused; }

 private:
  static constexpr int kRefused = -1;
  bool set(int to) const {
    return (protection_ & PROT_READ) != 0 || ::mprotect(at(pages_), pages_.size(), to) == 0;
  }
  Span pages_;
  int protection_;
};

}  // namespace

void SetAside::Unmap::operator()(std::byte* at) const {
  ::munmap(at, size);
}

SetAside::Mapping SetAside::allocate(std::size_t size) {
  auto* const made = ::mmap(nullptr, size, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  return {made == MAP_FAILED ? nullptr : static_cast<std::byte*>(made), {size}};
}

SetAside::SetAside(Span pages, int protection, std::shared_ptr<const service::SharedMemory> memory,
                   std::uint64_t offset)
    : pages_(pages), protection_(protection), memory_(std::move(memory)), offset_(offset) {
  if (!holds_this_thread(bytes(pages)) && replace()) return;
  before_.reset();
  left_out_ = ::madvise(at(pages), pages.size(), MADV_DONTFORK) == 0;
}

bool SetAside::replace() {
  auto own = allocate(pages_.size());
  if (memory_ != nullptr) before_ = allocate(pages_.size());
  if (own == nullptr || (memory_ != nullptr && before_ == nullptr)) return false;
  const Readable readable(pages_, protection_);
  if (!readable) return false;
  const WriteFreeze freeze(bytes(pages_));
  copy_words(own.get(), at(pages_), pages_.size());
  if (before_) copy_words(before_.get(), own.get(), pages_.size());
  return make_private(std::move(own));  // changes no member: this object may lie on such a page
}

// mremap() replaces the pages in one step, so no thread finds a hole.
bool SetAside::make_private(Mapping made) {
  const auto size = pages_.size();
  if (::mprotect(made.get(), size, protection_) != 0) return false;
  if (::mremap(made.get(), size, size, MREMAP_MAYMOVE | MREMAP_FIXED, at(pages_)) == MAP_FAILED)
    return false;
  static_cast<void>(made.release());
  return true;
}

bool SetAside::put_back() const {
  if (left_out_) ::madvise(at(pages_), pages_.size(), MADV_DOFORK);
  if (!before_) return true;
  const Readable readable(pages_, protection_);
  if (!readable) return false;
  STP_ASSERT(memory_ != nullptr, "pages that are put back are somebody's");
  const WriteFreeze freeze(bytes(pages_));
  store_changes(memory_->data() + offset_, at(pages_), before_.get(), pages_.size());
  return map_over(bytes(pages_), protection_, *memory_, offset_) == 0 ||
         map_over(bytes(pages_), protection_, *memory_, offset_) == 0;
}

int map_over(MutableBytes pages, int protection, const service::SharedMemory& memory,
             std::uint64_t offset) {
  const auto mapped = ::syscall(SYS_mmap, pages.data(), pages.size(), protection,
                                MAP_SHARED | MAP_FIXED, memory.fd(), offset);
  return mapped == -1 ? errno : 0;
}

}  // namespace stp::client
