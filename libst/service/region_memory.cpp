// SPDX-License-Identifier: BSD-3-Clause
#include "libst/service/region_memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>

#include "libst/service/limits.h"
#include "libst/service/mapping_turn.h"
#include "libst/service/shared_memory.h"
#include "stp/base/assert.h"

namespace stp::service {

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
  const auto segments = std::span(request.segments).first(request.segment_count);
  for (const auto& segment : segments) total += segment.length;
  // The Node only reads memory that it sends, so that may be sealed against writing.
  const auto transmit = request.direction == static_cast<std::uint32_t>(Direction::kTransmit);
  auto* const reserved =
      ::mmap(nullptr, total, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (reserved == MAP_FAILED) return -errno;
  std::shared_ptr<RegionMemory> memory(
      new RegionMemory({static_cast<std::byte*>(reserved), total}, transmit));
  memory->files_.resize(fds.size());
  memory->bytes_ = std::move(bytes);
  memory->mappings_ = std::move(mappings);
  // First of all: what was mapped for a request that is refused could not be mapped once more.
  for (const auto& segment : segments)
    if (const auto error =
            check_shareable(fds[segment.fd_index].get(), segment.offset, segment.length);
        error != 0)
      return error;
  auto* at = memory->mapped_.data();
  for (const auto& segment : segments) {
    if (const auto error = memory->place(at, segment, fds[segment.fd_index].get(), most);
        error != 0)
      return error;
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

int RegionMemory::place(std::byte* at, const Segment& segment, int fd, std::uint64_t most) {
  auto& file = files_[segment.fd_index];
  if (file == nullptr)
    if (const auto error = FileMapping::of(fd, most, !read_only_, file); error != 0) return error;
  if (const auto error = file->place(at, fd, segment.offset, segment.length, !read_only_);
      error != 0)
    return error;
  // On Linux before 5.1 pages can go at any time: the guard notices, if the system permits it.
  const auto& guard = MemoryGuard::instance();
  if (SharedMemory::can_keep_pages() || !guard.watches())
    return file->look(fd, segment.offset, segment.length);
  const auto error = guard.watch({at, segment.length});
  return error == -EPERM ? -EINVAL : error;
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

int RegionMemory::pin_pages(const Account& payer, const Request& request) {
  for (const auto& segment : std::span(request.segments).first(request.segment_count)) {
    const auto& file = *files_[segment.fd_index];
    if (file.pin(payer, segment.offset, segment.length, pins_) == -EDQUOT) return -EDQUOT;
  }
  return 0;
}

RegionMemory::~RegionMemory() {
  guarded_.reset();
  const MappingTurn turn;
  ::munmap(mapped_.data(), mapped_.size());
}

}  // namespace stp::service
