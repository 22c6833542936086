// SPDX-License-Identifier: BSD-3-Clause
#include "libst/client/set_aside.h"

#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <functional>
#include <utility>

#include "libst/client/address_space.h"
#include "libst/ipc/shared_memory.h"
#include "libst/os/unique_fd.h"
#include "stp/base/assert.h"

// Older kernel headers lack these. They need Linux 5.11, 5.19 and 6.4.
#ifndef UFFD_USER_MODE_ONLY
#define UFFD_USER_MODE_ONLY 1
#endif
#ifndef UFFD_FEATURE_WP_HUGETLBFS_SHMEM
#define UFFD_FEATURE_WP_HUGETLBFS_SHMEM (1 << 12)
#endif
#ifndef UFFD_FEATURE_WP_UNPOPULATED
#define UFFD_FEATURE_WP_UNPOPULATED (1 << 13)
#endif

namespace stp::client {
namespace {

using os::UniqueFd;

// Handling page faults of the kernel takes a privilege. Without it, the descriptor handles faults
// of user code only.
UniqueFd open_one(std::uint64_t features) {
  constexpr int kFlags = O_CLOEXEC | O_NONBLOCK;
  UniqueFd fd(static_cast<int>(::syscall(SYS_userfaultfd, kFlags)));
  if (!fd) fd.reset(static_cast<int>(::syscall(SYS_userfaultfd, kFlags | UFFD_USER_MODE_ONLY)));
  uffdio_api api{};
  api.api = UFFD_API;
  api.features = features;
  if (fd && ::ioctl(fd.get(), UFFDIO_API, &api) != 0) fd.reset();
  return fd;
}

UniqueFd open_best() {
  constexpr std::uint64_t kWanted[] = {
      UFFD_FEATURE_PAGEFAULT_FLAG_WP | UFFD_FEATURE_WP_HUGETLBFS_SHMEM |
          UFFD_FEATURE_WP_UNPOPULATED,
      UFFD_FEATURE_PAGEFAULT_FLAG_WP | UFFD_FEATURE_WP_HUGETLBFS_SHMEM,
      UFFD_FEATURE_PAGEFAULT_FLAG_WP};
  for (const auto features : kWanted)
    if (auto fd = open_one(features)) return fd;
  return {};
}

// One descriptor for the process: each freeze registers its pages and unregisters them in the end.
int userfault() {
  static const auto* const fd = new UniqueFd(open_best());  // never closed, as HandleTable
  return fd->get();
}

uffdio_range range_of(MutableBytes pages) {
  return {reinterpret_cast<std::uintptr_t>(pages.data()), pages.size()};
}

bool protect(MutableBytes pages, std::uint64_t mode) {
  uffdio_writeprotect what{};
  what.range = range_of(pages);
  what.mode = mode;
  int result = 0;
  do {
    result = ::ioctl(userfault(), UFFDIO_WRITEPROTECT, &what);
  } while (result != 0 && errno == EAGAIN);
  return result == 0;
}

bool freeze(MutableBytes pages) {
  if (userfault() < 0) return false;
  uffdio_register what{};
  what.range = range_of(pages);
  what.mode = UFFDIO_REGISTER_MODE_WP;
  if (::ioctl(userfault(), UFFDIO_REGISTER, &what) != 0) return false;
  if (protect(pages, UFFDIO_WRITEPROTECT_MODE_WP)) return true;
  auto range = range_of(pages);
  ::ioctl(userfault(), UFFDIO_UNREGISTER, &range);
  return false;
}

// If the pages were replaced, their registration has gone with them; the threads that wait are
// woken in any case.
void thaw(MutableBytes pages) {
  auto range = range_of(pages);
  ::ioctl(userfault(), UFFDIO_UNREGISTER, &range);
  ::ioctl(userfault(), UFFDIO_WAKE, &range);
}

}  // namespace

WriteFreeze::WriteFreeze(MutableBytes pages) : pages_(pages) {
  sigset_t all;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &signals_);
  holds_ = freeze(pages);
}

WriteFreeze::~WriteFreeze() {
  if (holds_) thaw(pages_);
  ::pthread_sigmask(SIG_SETMASK, &signals_, nullptr);
}

bool holds_this_thread(MutableBytes pages) {
  const auto page = ipc::page_size();
  const auto begin = reinterpret_cast<std::uintptr_t>(pages.data());
  const auto end = begin + pages.size();
  const auto frame = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
  const auto last_error = reinterpret_cast<std::uintptr_t>(&errno);
  return (frame + page > begin && frame < end + page) || (last_error >= begin && last_error < end);
}

namespace {

std::byte* at(Span pages) {
  return reinterpret_cast<std::byte*>(pages.begin);
}

MutableBytes bytes(Span pages) {
  return {at(pages), pages.size()};
}

// Whether the area, which covers `address`, shows what `pages` show at `place`.
bool is_at(const AreaAt& area, std::uintptr_t address, Span pages, const SetAside::Place& place) {
  return area.shared && area.inode == place.inode &&
         area.offset + (address - area.begin) == place.offset + (address - pages.begin);
}

bool is_within(Span pages, const std::byte* copy) {
  const auto begin = reinterpret_cast<std::uintptr_t>(copy);
  return begin < pages.end && begin + pages.size() > pages.begin;
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

// The kernel copies, because it reports an error where a load would fault: another thread may unmap
// pages that are no longer lent. Where it may not, this copies.
bool copy_pages(std::byte* to, Span from) {
  for (std::size_t done = 0; done < from.size();) {
    const iovec into{to + done, from.size() - done};
    const iovec out_of{at(from) + done, from.size() - done};
    const auto copied = ::syscall(SYS_process_vm_readv, ::getpid(), &into, 1, &out_of, 1, 0);
    if (copied < 0 && (errno == ENOSYS || errno == EPERM)) {
      copy_words(to, at(from), from.size());
      return true;
    }
    if (copied <= 0) return false;
    done += static_cast<std::size_t>(copied);
  }
  return true;
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

// Runs `act` on another thread, whose stack is fresh memory, and waits for it. Signals stay blocked
// meanwhile, because a handler would run on the caller's stack. False: there is no such thread.
bool on_another_thread(const std::function<void()>& act) {
  constexpr std::size_t kStack = 1 << 20;
  auto* const stack = ::mmap(nullptr, kStack, PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (stack == MAP_FAILED) return false;
  sigset_t all, before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_attr_t attributes;
  ::pthread_attr_init(&attributes);
  ::pthread_attr_setstack(&attributes, stack, kStack);
  pthread_t thread{};
  const auto run = [](void* what) -> void* {
    (*static_cast<const std::function<void()>*>(what))();
    return nullptr;
  };
  const auto error = ::pthread_create(&thread, &attributes, run,
                                      const_cast<void*>(static_cast<const void*>(&act)));
  if (error == 0) ::pthread_join(thread, nullptr);
  ::pthread_attr_destroy(&attributes);
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  ::munmap(stack, kStack);
  return error == 0;
}

}  // namespace

void SetAside::Unmap::operator()(std::byte* at) const {
  ::munmap(at, size);
}

SetAside::Mapping SetAside::allocate(std::size_t size) {
  auto* const made = ::mmap(nullptr, size, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  return {made == MAP_FAILED ? nullptr : static_cast<std::byte*>(made), {size}};
}

SetAside::SetAside(Span pages, int protection, std::shared_ptr<const ipc::SharedMemory> memory,
                   Place place)
    : pages_(pages), protection_(protection), memory_(std::move(memory)), place_(place) {
  if (replace()) return;
  before_.reset();
  has_gone_ = !is_there();
  if (has_gone_) return;
  left_out_ = true;
  ::madvise(at(pages), pages.size(), MADV_DONTFORK);
}

// True as well: the kernel does not tell.
bool SetAside::is_there() const {
  AreaAt area;
  for (auto at = pages_.begin; at < pages_.end; at = area.end) {
    if (!area_at(at, area)) return errno != ENOENT;
    if (!is_at(area, at, pages_, place_)) return false;
  }
  return true;
}

std::vector<Span> SetAside::left_of(Span pages, const Place& place) {
  std::vector<Span> out;
  AreaAt area;
  for (auto at = pages.begin; at < pages.end; at = area.end) {
    if (!area_at(at, area)) {
      area.end = at + ipc::page_size();
    } else if (is_at(area, at, pages, place)) {
      out.push_back({at, std::min(area.end, pages.end)});
    }
  }
  return out;
}

// A thread writes to the pages that it runs on all the time, so another one replaces them.
bool SetAside::replace() {
  if (!holds_this_thread(bytes(pages_))) return copy_and_replace(false);
  bool done = false;
  return on_another_thread([&] { done = copy_and_replace(true); }) && done;
}

bool SetAside::copy_and_replace(bool wants_freeze) {
  auto own = allocate(pages_.size());
  if (memory_ != nullptr) before_ = allocate(pages_.size());
  if (own == nullptr || (memory_ != nullptr && before_ == nullptr)) return false;
  // Had they gone before, the copies might be at their address, and would be frozen.
  if (is_within(pages_, own.get()) || is_within(pages_, before_.get()) || !is_there()) return false;
  const Readable readable(pages_, protection_);
  if (!readable) return false;
  const WriteFreeze freeze(bytes(pages_));
  if (wants_freeze && !freeze.holds()) return false;
  if (!copy_pages(own.get(), pages_)) return false;
  if (before_) copy_words(before_.get(), own.get(), pages_.size());
  if (!is_there()) return false;
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
  if (!holds_this_thread(bytes(pages_))) return map_again();
  bool done = false;
  return on_another_thread([&] { done = map_again(); }) && done;
}

bool SetAside::map_again() const {
  const Readable readable(pages_, protection_);
  if (!readable) return false;
  STP_ASSERT(memory_ != nullptr, "pages that are put back are somebody's");
  const WriteFreeze freeze(bytes(pages_));
  store_changes(memory_->data() + place_.offset, at(pages_), before_.get(), pages_.size());
  return map_over(bytes(pages_), protection_, *memory_, place_.offset) == 0 ||
         map_over(bytes(pages_), protection_, *memory_, place_.offset) == 0;
}

int map_over(MutableBytes pages, int protection, const ipc::SharedMemory& memory,
             std::uint64_t offset) {
  const auto mapped = ::syscall(SYS_mremap, memory.data() + offset, 0, pages.size(),
                                MREMAP_MAYMOVE | MREMAP_FIXED, pages.data());
  if (mapped == -1) return errno;
  if (protection == (PROT_READ | PROT_WRITE)) return 0;
  return ::mprotect(pages.data(), pages.size(), protection) == 0 ? 0 : errno;
}

}  // namespace stp::client
