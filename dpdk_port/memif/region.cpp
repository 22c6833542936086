// SPDX-License-Identifier: BSD-3-Clause
#include "dpdk_port/memif/region.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace stp::port::memif {
namespace {

// Where the kernel insists on it, memory that nobody may execute; older kernels do not know the
// flag.
int make_memory_file() {
  constexpr unsigned kNoExecute = 8;  // MFD_NOEXEC_SEAL
  constexpr unsigned kFlags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
  const int fd = ::memfd_create("stp-memif", kFlags | kNoExecute);
  return fd >= 0 || errno != EINVAL ? fd : ::memfd_create("stp-memif", kFlags);
}

// Older headers lack F_SEAL_FUTURE_WRITE.
constexpr int kSealFutureWrites = 0x10;
constexpr int kAgainstTaking = F_SEAL_WRITE | kSealFutureWrites;

// Waits until nobody takes pages out of the file, which happens under the lock that lseek() takes.
// Who maps it at such a time makes the whole process wait, who waits here only this thread.
void await_rest(int fd, std::uint64_t size) {
  ::lseek(fd, static_cast<off_t>(size - 1), SEEK_DATA);
}

std::span<std::byte> map_bytes(int fd, std::size_t size, std::string& error) {
  void* const at = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (at == MAP_FAILED) {
    error = "cannot map " + std::to_string(size) + " bytes: " + std::strerror(errno);
    return {};
  }
  ::madvise(at, size, MADV_DONTDUMP);
  return {static_cast<std::byte*>(at), size};
}

}  // namespace

Region Region::make(std::size_t size, const std::shared_ptr<Closer>& closer, SharedDescriptor& file,
                    std::string& error) {
  file = SharedDescriptor(FileDescriptor(make_memory_file()), closer);
  if (!file || ::ftruncate(file.get(), static_cast<off_t>(size)) != 0 ||
      ::fcntl(file.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) != 0) {
    error = "no shared memory of " + std::to_string(size) + " bytes: " + std::strerror(errno);
    return {};
  }
  return Region(map_bytes(file.get(), size, error), closer);
}

Region Region::map(const SharedDescriptor& file, std::uint64_t size, std::string& error) {
  struct stat status {};
  struct statfs system {};
  const int seals = ::fcntl(file.get(), F_GET_SEALS);
  // A huge page that is punched out and cannot be had again would end who touches it.
  if (seals < 0 || (seals & F_SEAL_SHRINK) == 0 || ::fstatfs(file.get(), &system) != 0 ||
      system.f_type != TMPFS_MAGIC) {
    error = "its memory is no memfd, without huge pages, that is sealed against shrinking";
    return {};
  }
  if (size == 0 || size > kGreatest || ::fstat(file.get(), &status) != 0 ||
      static_cast<std::uint64_t>(status.st_size) < size) {
    error = "its memory is to have " + std::to_string(size) + " bytes, and has " +
            std::to_string(status.st_size) + "; at most " + std::to_string(kGreatest) +
            " are mapped";
    return {};
  }
  if ((seals & F_SEAL_SEAL) != 0 && (seals & kAgainstTaking) == 0) {
    error = "its memory is sealed against the seal that keeps its pages";
    return {};
  }
  await_rest(file.get(), size);
  Region mapped(map_bytes(file.get(), size, error), file.closer());
  if (mapped && !keep_pages(file)) {
    error = "its memory cannot be sealed, so that it keeps its pages";
    return {};
  }
  return mapped;
}

bool keep_pages(const SharedDescriptor& file) {
  if (::fcntl(file.get(), F_ADD_SEALS, kSealFutureWrites) == 0 || errno == EINVAL) return true;
  const int seals = ::fcntl(file.get(), F_GET_SEALS);
  return seals >= 0 && (seals & kAgainstTaking) != 0;
}

Region::Region(Region&& other) noexcept
    : bytes_(std::exchange(other.bytes_, {})), closer_(std::move(other.closer_)) {}

Region& Region::operator=(Region&& other) noexcept {
  std::swap(bytes_, other.bytes_);
  std::swap(closer_, other.closer_);
  return *this;
}

Region::~Region() {
  if (!bytes_.empty()) closer_->unmap(bytes_);
}

}  // namespace stp::port::memif
