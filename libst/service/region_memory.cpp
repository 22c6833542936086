// SPDX-License-Identifier: BSD-3-Clause
#include "libst/service/region_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "libst/service/limits.h"
#include "libst/service/shared_memory.h"
#include "stp/base/assert.h"

namespace stp::service {
namespace {

// Looks for missing pages where the guard cannot report them later. SEEK_HOLE may scan the file
// from the segment to its end, so the length of files is limited: to the default quota of mapped
// memory, or to `most` if the operator permits more in one request.
int check_for_holes(int fd, const Segment& segment, std::uint64_t most) {
  struct stat status {};
  if (::fstat(fd, &status) != 0) return -errno;
  if (static_cast<std::uint64_t>(status.st_size) > std::max(most, limits::kMappedBytes))
    return -EINVAL;
  const auto hole = ::lseek(fd, static_cast<off_t>(segment.offset), SEEK_HOLE);
  if (hole < 0) return -errno;
  return static_cast<std::uint64_t>(hole) < segment.offset + segment.length ? -EFAULT : 0;
}

constexpr int kSealFutureWrite = 0x10;  // F_SEAL_FUTURE_WRITE, which older headers lack

// Memory that is sealed against writing gets no more holes, so one check is enough.
int guard_pages(std::byte* at, int fd, const Segment& segment, std::uint64_t most) {
  const auto& guard = MemoryGuard::instance();
  const auto seals = ::fcntl(fd, F_GET_SEALS);
  const bool sealed = seals >= 0 && (seals & (F_SEAL_WRITE | kSealFutureWrite)) != 0;
  if (sealed || !guard.watches()) return check_for_holes(fd, segment, most);
  const auto error = guard.watch({at, segment.length});
  return error == -EPERM ? -EINVAL : error;
}

int place(std::byte* at, int fd, const Segment& segment, int protection, std::uint64_t most) {
  if (const auto error = check_shareable(fd, segment.offset, segment.length); error != 0)
    return error;
  auto* const mapped = ::mmap(at, segment.length, protection, MAP_SHARED | MAP_FIXED, fd,
                              static_cast<off_t>(segment.offset));
  if (mapped == MAP_FAILED) return -errno;
  return guard_pages(at, fd, segment, most);
}

}  // namespace

// Adds up the segments, and checks what can be checked without looking at the memory.
int RegionMemory::measure(const Request& request, std::size_t fd_count, std::uint64_t most,
                          std::uint64_t& bytes) {
  if (request.segment_count == 0 || request.segment_count > kMaxSegments) return -EINVAL;
  bytes = 0;
  for (const auto& segment : std::span(request.segments).first(request.segment_count)) {
    if (segment.fd_index >= fd_count || segment.length == 0 || segment.length % page_size() != 0)
      return -EINVAL;
    if (segment.length > most) return -EDQUOT;
    bytes += segment.length;
  }
  if (bytes > most) return -EDQUOT;
  if (request.piece_count == 0 || request.piece_count > kMaxPieces) return -EINVAL;
  for (const auto& piece : std::span(request.pieces).first(request.piece_count))
    if (piece.length == 0 || piece.at >= bytes || piece.length > bytes - piece.at) return -EINVAL;
  return 0;
}

int RegionMemory::map(const Request& request, std::span<const UniqueFd> fds, std::uint64_t most,
                      Reservation bytes, Reservation mappings, std::shared_ptr<Torn> torn,
                      std::shared_ptr<RegionMemory>& out) {
  std::uint64_t total = 0;
  for (const auto& segment : std::span(request.segments).first(request.segment_count))
    total += segment.length;
  // The Node only reads memory that it sends, so that may be sealed against writing.
  const auto transmit = request.direction == static_cast<std::uint32_t>(Direction::kTransmit);
  const auto protection = transmit ? PROT_READ : PROT_READ | PROT_WRITE;
  auto* const reserved =
      ::mmap(nullptr, total, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (reserved == MAP_FAILED) return -errno;
  std::shared_ptr<RegionMemory> memory(
      new RegionMemory({static_cast<std::byte*>(reserved), total}, transmit));
  memory->bytes_ = std::move(bytes);
  memory->mappings_ = std::move(mappings);
  auto* at = memory->mapped_.data();
  for (const auto& segment : std::span(request.segments).first(request.segment_count)) {
    const auto error = place(at, fds[segment.fd_index].get(), segment, protection, most);
    if (error != 0) return error;
    at += segment.length;
  }
  if (const auto error = memory->guarded_.begin(memory->mapped_, std::move(torn)); error != 0)
    return error;
  for (const auto& piece : std::span(request.pieces).first(request.piece_count)) {
    STP_ASSERT(piece.at <= total && piece.length <= total - piece.at,
               "a piece that was measured lies within the memory");
    memory->pieces_.push_back(memory->mapped_.subspan(piece.at, piece.length));
  }
  out = std::move(memory);
  return 0;
}

int RegionMemory::populate(std::uint64_t bytes) {
  const auto part = mapped_.subspan(populated_, std::min(bytes, mapped_.size() - populated_));
  const auto how = read_only_ ? MADV_POPULATE_READ : MADV_POPULATE_WRITE;
  // Linux before 5.14 does not know the advice (EINVAL): there pages are mapped in when touched.
  if (!part.empty() && ::madvise(part.data(), part.size(), how) != 0) {
    if (errno == EINTR || errno == EAGAIN) return -EAGAIN;
    return errno == EINVAL ? 0 : -errno;
  }
  populated_ += part.size();
  STP_ASSERT(populated_ <= mapped_.size(), "no more pages are mapped in than there are");
  return populated_ == mapped_.size() ? 0 : -EAGAIN;
}

RegionMemory::~RegionMemory() {
  guarded_.reset();
  ::munmap(mapped_.data(), mapped_.size());
}

}  // namespace stp::service
