// SPDX-License-Identifier: BSD-3-Clause
#include "libst/service/shared_memory.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include <cerrno>
#include <limits>

namespace stp::service {

std::size_t page_size() {
  static const auto size = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  return size;
}

int check_shareable(int fd, std::uint64_t offset, std::uint64_t size) {
  constexpr std::uint64_t kMaxSize = std::numeric_limits<std::int64_t>::max();
  if (size == 0 || offset > kMaxSize || size > kMaxSize - offset || offset % page_size() != 0)
    return -EINVAL;
  struct stat status {};
  struct statfs filesystem {};
  const auto seals = ::fcntl(fd, F_GET_SEALS);
  if (seals < 0 || (seals & F_SEAL_SHRINK) == 0) return -EINVAL;
  if (::fstatfs(fd, &filesystem) != 0 || filesystem.f_type != TMPFS_MAGIC) return -EINVAL;
  if (::fstat(fd, &status) != 0 || !S_ISREG(status.st_mode)) return -EINVAL;
  return offset + size <= static_cast<std::uint64_t>(status.st_size) ? 0 : -EINVAL;
}

std::shared_ptr<SharedMemory> SharedMemory::create(const char* name, std::size_t size) {
  UniqueFd fd(::memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd || ::ftruncate(fd.get(), static_cast<off_t>(size)) != 0 ||
      ::fcntl(fd.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)
    return nullptr;
  return map(std::move(fd), 0, size);
}

std::shared_ptr<SharedMemory> SharedMemory::adopt(int fd, std::size_t offset, std::size_t size) {
  UniqueFd owned(fd);
  if (const auto error = check_shareable(fd, offset, size); error != 0) {
    errno = -error;
    return nullptr;
  }
  return map(std::move(owned), offset, size);
}

// Does not populate: most of a channel is room for bursts that may never come, so the kernel
// allocates its pages when they are first used.
std::shared_ptr<SharedMemory> SharedMemory::map(UniqueFd fd, std::size_t offset, std::size_t size) {
  auto* const at = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(),
                          static_cast<off_t>(offset));
  if (at == MAP_FAILED) return nullptr;
  return std::shared_ptr<SharedMemory>(
      new SharedMemory(std::move(fd), static_cast<std::byte*>(at), size));
}

SharedMemory::~SharedMemory() {
  ::munmap(data_, size_);
}

}  // namespace stp::service
