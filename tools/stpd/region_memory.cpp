// SPDX-License-Identifier: BSD-3-Clause
#include "tools/stpd/region_memory.h"

#include <fcntl.h>
#include <linux/io_uring.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <map>
#include <optional>
#include <thread>
#include <utility>

#include "libst/host/budgets.h"
#include "libst/ipc/shared_memory.h"
#include "libst/os/mapping_turn.h"
#include "stp/base/assert.h"
#include "tools/stpd/workers.h"

namespace stp::stpd {

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

  static std::shared_ptr<Ring> make(host::Reservation file) {
    io_uring_params parameters{};
    os::UniqueFd fd(static_cast<int>(::syscall(SYS_io_uring_setup, 1, &parameters)));
    BufferTable table{.count = kSlots, .flags = kSparse, .reserved = 0, .data = 0, .tags = 0};
    if (!fd || !change(fd.get(), kRegisterBuffers, table)) return nullptr;
    return std::make_shared<Ring>(std::move(file), std::move(fd));
  }
  Ring(host::Reservation file, os::UniqueFd fd) : file_(std::move(file)), fd_(std::move(fd)) {
    free_.reserve(kSlots);
  }

  std::optional<std::uint32_t> take_slot() {
    const Lock lock(mutex_);
    if (free_.empty()) return next_ < kSlots ? std::optional(next_++) : std::nullopt;
    const auto slot = free_.back();
    free_.pop_back();
    return slot;
  }
  void return_slot(std::uint32_t slot) {
    const Lock lock(mutex_);
    free_.push_back(slot);
  }
  [[nodiscard]] bool has_room() {
    const Lock lock(mutex_);
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
  const host::Reservation file_;
  const os::UniqueFd fd_;
  Mutex mutex_{LockRank::kRing};
  std::uint32_t next_ STP_GUARDED_BY(mutex_) = 0;  // slots from here on were never used
  std::vector<std::uint32_t> free_ STP_GUARDED_BY(mutex_);
};

bool PagePins::wanted() {
  constexpr int kCollapse = 25;  // MADV_COLLAPSE
  return ::madvise(nullptr, 0, kCollapse) == 0;
}

bool PagePins::possible() {
  static const bool can = Ring::make({}) != nullptr;
  return can;
}

// Each user has rings of its own, because a ring is locked while it pins.
int PagePins::ring_with_room(const host::Account& payer, std::shared_ptr<Ring>& out) {
  static Mutex mutex{LockRank::kRings};
  // Never destroyed: workers may outlive main().
  static auto* const rings = new std::multimap<uid_t, std::weak_ptr<Ring>>;
  const Lock lock(mutex);
  std::erase_if(*rings, [](const auto& entry) { return entry.second.expired(); });
  const auto [first, last] = rings->equal_range(payer.uid());
  for (auto at = first; at != last; ++at)
    if (out = at->second.lock(); out != nullptr && out->has_room()) return 0;
  host::Reservation file;
  if (!payer.reserve(host::Resource::kFiles, 1, file)) return -EDQUOT;
  out = Ring::make(std::move(file));
  if (out == nullptr) return -ENOTSUP;
  rings->emplace(payer.uid(), out);
  return 0;
}

// The first page of each piece: the kernel moves them in order, so it has moved none when it meets
// the one that is pinned.
int PagePins::pin(const host::Account& payer, MutableBytes mapped, std::uint64_t offset,
                  bool writable) {
  std::vector<std::byte*> pages;
  for (std::uint64_t at = 0; at < mapped.size(); at += kPiece - (offset + at) % kPiece)
    pages.push_back(mapped.data() + at);
  const auto error = writable ? pin_for_writing(payer, pages) : pin_for_reading(payer, pages);
  if (error == -EDQUOT) release();
  return error;
}

int PagePins::pin_for_writing(const host::Account& payer, std::span<std::byte* const> pages) {
  if (!possible()) return -ENOTSUP;
  slots_.reserve(slots_.size() + pages.size());
  for (auto* const page : pages)
    if (const auto error = pin_one(payer, page); error != 0) return error;
  return 0;
}

int PagePins::pin_one(const host::Account& payer, std::byte* page) {
  auto ring = slots_.empty() ? nullptr : slots_.back().ring;
  auto slot = ring == nullptr ? std::nullopt : ring->take_slot();
  if (!slot) {
    if (const auto error = ring_with_room(payer, ring); error != 0) return error;
    slot = ring->take_slot();
  }
  if (!slot) return -ENOTSUP;
  if (!ring->set(*slot, page, ipc::page_size())) {
    ring->return_slot(*slot);
    return -ENOTSUP;
  }
  slots_.push_back({std::move(ring), *slot});
  return 0;
}

// A pipe is as large as it needs to be, because all those of one user may have so many pages.
int PagePins::pin_for_reading(const host::Account& payer, std::span<std::byte* const> pages) {
  constexpr std::size_t kMostOfPipe = 256;
  while (!pages.empty()) {
    const auto count = std::min(pages.size(), kMostOfPipe);
    host::Reservation file;
    if (!payer.reserve(host::Resource::kFiles, 1, file)) return -EDQUOT;
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) return -ENOTSUP;
    os::UniqueFd reads(ends[0]);
    const os::UniqueFd writes(ends[1]);
    ::fcntl(writes.get(), F_SETPIPE_SZ, static_cast<int>(count * ipc::page_size()));
    std::vector<iovec> parts;
    for (auto* const page : pages.first(count)) parts.push_back({page, ipc::page_size()});
    const auto put = ::vmsplice(writes.get(), parts.data(), parts.size(), SPLICE_F_NONBLOCK);
    if (put < static_cast<ssize_t>(ipc::page_size())) return -ENOTSUP;
    pages = pages.subspan(static_cast<std::size_t>(put) / ipc::page_size());
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

namespace {

constexpr int kAgainstPunching = F_SEAL_WRITE | ipc::kSealFutureWrite;

// Returns 0, or -EINVAL: it cannot be sealed.
int seal(int fd) {
  if (!ipc::SharedMemory::can_keep_pages()) return 0;
  ::fcntl(fd, F_ADD_SEALS, ipc::kSealFutureWrite);
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
  const os::TimeOff off;
  const auto before = ThreadUse::now();
  ::lseek(fd, static_cast<off_t>(size - 1), SEEK_DATA);
  const auto after = ThreadUse::now();
  os::MappingTurn::time_off() += off.so_far();
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
  Mutex mutex;
  std::map<Key, std::weak_ptr<FileMapping>> files STP_GUARDED_BY(mutex);

  std::shared_ptr<FileMapping> find(const Key& key) {
    const Lock lock(mutex);
    const auto at = files.find(key);
    return at == files.end() ? nullptr : at->second.lock();
  }
  // Returns the one that is there already, or else `made`.
  std::shared_ptr<FileMapping> enter(const Key& key, const std::shared_ptr<FileMapping>& made) {
    const Lock lock(mutex);
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
  const os::MappingTurn turn;
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
  if (size > std::max(most, host::Quotas{}.mapped_bytes)) return -EINVAL;
  // The mapping may be there already, made for somebody who may write the file.
  const auto mode = ::fcntl(fd, F_GETFL);
  if (mode < 0 || (for_writing && (mode & O_ACCMODE) != O_RDWR)) return -EINVAL;
  const Registry::Key key{status.st_dev, status.st_ino};
  out = registry().find(key);
  const auto seals = ::fcntl(fd, F_GET_SEALS);
  if (seals < 0) return -errno;
  // Looked at before it is mapped: unmapping what is not sealed could take long.
  if ((seals & F_SEAL_SEAL) != 0 && (seals & kAgainstPunching) == 0 &&
      ipc::SharedMemory::can_keep_pages())
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
  const os::MappingTurn turn;
  if (for_writing)
    placed = ::mremap(mapped_.data() + offset, 0, length, MREMAP_MAYMOVE | MREMAP_FIXED, at);
  else
    placed = ::mmap(at, length, PROT_READ, MAP_SHARED | MAP_FIXED, fd, static_cast<off_t>(offset));
  return placed == MAP_FAILED ? -errno : 0;
}

// The kernel may scan the file to its end, so this is not done for each view of it.
int FileMapping::look(int fd, std::uint64_t offset, std::uint64_t length) {
  const Lock lock(mutex_);
  if (offset >= whole_from_ && offset + length <= whole_to_) return 0;
  const auto hole = ::lseek(fd, static_cast<off_t>(offset), SEEK_HOLE);
  if (hole < 0) return -errno;
  whole_from_ = offset;
  whole_to_ = static_cast<std::uint64_t>(hole);
  return offset + length <= whole_to_ ? 0 : -EFAULT;
}

FileMapping::~FileMapping() {
  os::unmap_in_turns(mapped_.data(), mapped_.size());
}

// Adds up the segments, and checks what can be checked without looking at the memory.
int RegionMemory::measure(const ask::Map& request, std::size_t fd_count, std::uint64_t most,
                          std::uint64_t& bytes) {
  if (request.segment_count == 0 || request.segment_count > ipc::kMaxSegments) return -EINVAL;
  bytes = 0;
  for (const auto& segment : std::span(request.segments).first(request.segment_count)) {
    if (segment.fd_index >= fd_count || segment.length == 0 ||
        segment.length % ipc::page_size() != 0)
      return -EINVAL;
    if (segment.length > most) return -EDQUOT;
    bytes += segment.length;
  }
  if (bytes > most) return -EDQUOT;
  if (request.piece_count == 0 || request.piece_count > ipc::kMaxPieces) return -EINVAL;
  for (const auto& piece : std::span(request.pieces).first(request.piece_count))
    if (piece.length == 0 || piece.at >= bytes || piece.length > bytes - piece.at) return -EINVAL;
  return 0;
}

int RegionMemory::map(const ask::Map& request, std::span<const os::UniqueFd> fds,
                      std::uint64_t most, host::Reservation held, std::shared_ptr<ipc::Torn> torn,
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
  memory->held_ = std::move(held);
  // First of all: what was mapped for a request that is refused could not be mapped once more.
  for (const auto& segment : segments)
    if (const auto error =
            ipc::check_shareable(fds[segment.fd_index].get(), segment.offset, segment.length);
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

int RegionMemory::place(std::byte* at, const ipc::Segment& segment, int fd, std::uint64_t most) {
  auto& file = files_[segment.fd_index];
  if (file == nullptr)
    if (const auto error = FileMapping::of(fd, most, !read_only_, file); error != 0) return error;
  if (const auto error = file->place(at, fd, segment.offset, segment.length, !read_only_);
      error != 0)
    return error;
  // On Linux before 5.1 pages can go at any time: the guard notices, if the system permits it.
  const auto& guard = ipc::MemoryGuard::instance();
  if (ipc::SharedMemory::can_keep_pages() || !guard.watches())
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

int RegionMemory::pin_pages(const host::Account& payer, const ask::Map& request) {
  for (const auto& segment : std::span(request.segments).first(request.segment_count)) {
    const auto& file = *files_[segment.fd_index];
    if (file.pin(payer, segment.offset, segment.length, pins_) == -EDQUOT) return -EDQUOT;
  }
  return 0;
}

RegionMemory::~RegionMemory() {
  guarded_.reset();
  os::unmap_in_turns(mapped_.data(), mapped_.size());
}

}  // namespace stp::stpd
