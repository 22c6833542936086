// SPDX-License-Identifier: BSD-3-Clause
#include "libst/service/region_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <map>
#include <mutex>
#include <thread>
#include <utility>

#include "libst/ipc/shared_memory.h"
#include "libst/os/mapping_turn.h"
#include "libst/service/allowances.h"
#include "libst/service/user_workers.h"
#include "stp/base/assert.h"

namespace stp::service {
namespace {

constexpr int kAgainstPunching = F_SEAL_WRITE | kSealFutureWrite;

// Returns 0, or -EINVAL: it cannot be sealed.
int seal(int fd) {
  if (!SharedMemory::can_keep_pages()) return 0;
  ::fcntl(fd, F_ADD_SEALS, kSealFutureWrite);
  const auto seals = ::fcntl(fd, F_GET_SEALS);
  return seals >= 0 && (seals & kAgainstPunching) != 0 ? 0 : -EINVAL;
}

// The processor time of this thread, and how often it has slept. Who only loses its processor to
// others does not sleep.
struct ThreadUse {
  std::chrono::microseconds time{0};
  long sleeps = 0;

  static ThreadUse now() {
    rusage use{};
    ::getrusage(RUSAGE_THREAD, &use);
    return {std::chrono::seconds(use.ru_utime.tv_sec + use.ru_stime.tv_sec) +
                std::chrono::microseconds(use.ru_utime.tv_usec + use.ru_stime.tv_usec),
            use.ru_nvcsw};
  }
};

// Whether somebody works on the file at present. The kernel takes pages out of it under the lock
// that lseek() takes, and waits for that lock asleep, or turns on the processor. Nothing else lets
// lseek() sleep.
bool is_worked_on(int fd, std::uint64_t size) {
  constexpr std::chrono::milliseconds kTurning{1};
  const TimeOff off;
  const auto before = ThreadUse::now();
  ::lseek(fd, static_cast<off_t>(size - 1), SEEK_DATA);
  const auto after = ThreadUse::now();
  MappingTurn::time_off() += off.so_far();
  return after.sleeps != before.sleeps || after.time - before.time >= kTurning;
}

}  // namespace

bool becomes_quiet(const std::function<bool()>& is_worked_on) {
  constexpr int kTries = 12, kWanted = 3;
  constexpr std::chrono::milliseconds kPause{1};
  if (!is_worked_on()) return true;
  int quiet = 0;
  for (int i = 0; i < kTries && quiet < kWanted; ++i) {
    std::this_thread::sleep_for(kPause);
    quiet = is_worked_on() ? 0 : quiet + 1;
  }
  return quiet == kWanted;
}

// The files that are mapped at present. Held only to look one up: mapping takes long if somebody
// else works on the file.
struct FileMapping::Registry {
  using Key = std::pair<dev_t, ino_t>;
  std::mutex mutex;
  std::map<Key, std::weak_ptr<FileMapping>> files;

  std::shared_ptr<FileMapping> find(const Key& key) {
    std::lock_guard const lock(mutex);
    const auto at = files.find(key);
    return at == files.end() ? nullptr : at->second.lock();
  }
  // Returns the one that is there already, or else `made`.
  std::shared_ptr<FileMapping> enter(const Key& key, const std::shared_ptr<FileMapping>& made) {
    std::lock_guard const lock(mutex);
    std::erase_if(files, [](const auto& entry) { return entry.second.expired(); });
    auto& entry = files[key];
    if (auto earlier = entry.lock()) return earlier;
    entry = made;
    return made;
  }
};

FileMapping::Registry& FileMapping::registry() {
  static auto* const all = new Registry;  // never destroyed: workers may outlive main()
  return *all;
}

int FileMapping::map(int fd, std::uint64_t size, int seals, bool for_writing,
                     std::shared_ptr<FileMapping>& out) {
  const auto writable = (seals & kAgainstPunching) == 0;
  if (for_writing && !writable) return -EPERM;
  // This process maps nothing while it waits to map a file that somebody works on, but may wait
  // here.
  if (writable && !becomes_quiet([&] { return is_worked_on(fd, size); })) return -EBUSY;
  const MappingTurn turn;
  auto* const at =
      ::mmap(nullptr, size, writable ? PROT_READ | PROT_WRITE : PROT_READ, MAP_SHARED, fd, 0);
  // EACCES: it was opened for reading only, so it cannot be sealed either.
  if (at == MAP_FAILED) return errno == EACCES ? -EINVAL : -errno;
  out.reset(new FileMapping({static_cast<std::byte*>(at), size}, writable));
  return 0;
}

int FileMapping::of(int fd, std::uint64_t most, bool for_writing,
                    std::shared_ptr<FileMapping>& out) {
  struct stat status {};
  if (::fstat(fd, &status) != 0) return -errno;
  const auto size = static_cast<std::uint64_t>(status.st_size);
  if (size > std::max(most, limits::kMappedBytes)) return -EINVAL;
  // The mapping may be there already, made for somebody who may write the file.
  const auto mode = ::fcntl(fd, F_GETFL);
  if (mode < 0 || (for_writing && (mode & O_ACCMODE) != O_RDWR)) return -EINVAL;
  const Registry::Key key{status.st_dev, status.st_ino};
  out = registry().find(key);
  const auto seals = ::fcntl(fd, F_GET_SEALS);
  if (seals < 0) return -errno;
  // Looked at before it is mapped: unmapping what is not sealed could take long.
  if ((seals & F_SEAL_SEAL) != 0 && (seals & kAgainstPunching) == 0 &&
      SharedMemory::can_keep_pages())
    return -EINVAL;
  if (out == nullptr) {
    std::shared_ptr<FileMapping> made;
    if (const auto error = map(fd, size, seals, for_writing, made); error != 0) {
      // Another worker may have mapped and sealed it meanwhile.
      out = registry().find(key);
      if (out == nullptr) return error;
    } else {
      out = registry().enter(key, made);
    }
  }
  if (for_writing && !out->writable_) return -EPERM;
  if (size > out->mapped_.size()) return -EINVAL;  // it has grown since
  if ((seals & kAgainstPunching) == 0)
    if (const auto error = seal(fd); error != 0) return error;
  return 0;
}

// A view of a mapping is made by mremap(): the kernel maps no sealed file for writing. Views for
// reading are new mappings, which the daemon itself cannot write through either.
int FileMapping::place(std::byte* at, int fd, std::uint64_t offset, std::uint64_t length,
                       bool for_writing) const {
  if (offset > mapped_.size() || length > mapped_.size() - offset) return -EINVAL;
  void* placed = MAP_FAILED;
  const MappingTurn turn;
  if (for_writing)
    placed = ::mremap(mapped_.data() + offset, 0, length, MREMAP_MAYMOVE | MREMAP_FIXED, at);
  else
    placed = ::mmap(at, length, PROT_READ, MAP_SHARED | MAP_FIXED, fd, static_cast<off_t>(offset));
  return placed == MAP_FAILED ? -errno : 0;
}

// The kernel may scan the file to its end, so this is not done for each view of it.
int FileMapping::look(int fd, std::uint64_t offset, std::uint64_t length) {
  std::lock_guard const lock(mutex_);
  if (offset >= whole_from_ && offset + length <= whole_to_) return 0;
  const auto hole = ::lseek(fd, static_cast<off_t>(offset), SEEK_HOLE);
  if (hole < 0) return -errno;
  whole_from_ = offset;
  whole_to_ = static_cast<std::uint64_t>(hole);
  return offset + length <= whole_to_ ? 0 : -EFAULT;
}

FileMapping::~FileMapping() {
  const MappingTurn turn;
  ::munmap(mapped_.data(), mapped_.size());
}

// Adds up the segments, and checks what can be checked without looking at the memory.
int RegionMemory::measure(const ask::Map& request, std::size_t fd_count, std::uint64_t most,
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

int RegionMemory::map(const ask::Map& request, std::span<const UniqueFd> fds, std::uint64_t most,
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

int RegionMemory::pin_pages(const Account& payer, const ask::Map& request) {
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
