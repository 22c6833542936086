// SPDX-License-Identifier: BSD-3-Clause
#include "dpdk_port/memif/ring.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <utility>

#include "dpdk_port/link/past_caches.h"
#include "stp/base/assert.h"

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

void Ring::clear() {
  std::memset(at_, 0, ring_bytes(static_cast<unsigned>(std::countr_zero(size_))));
  __atomic_store_n(reinterpret_cast<std::uint32_t*>(at_ + kCookieAt), kCookie, __ATOMIC_RELEASE);
}

// ---- Sender

unsigned Sender::room() {
  // The client owns the buffers of its ring; to the server they are offered, up to the head.
  const unsigned room = buffers_.are_own()
                            ? ring_.size() - static_cast<std::uint16_t>(next_ - ring_.tail())
                            : static_cast<std::uint16_t>(ring_.head() - next_);
  if (room <= ring_.size()) return room;
  break_off();
  return 0;
}

bool Sender::put(std::span<const Bytes> parts) {
  std::uint16_t used = 0;
  for (std::size_t done = 0;;) {
    if (used == room_) {
      if (broken_ || (room_ = room()) <= used) return false;
    }
    const auto number = static_cast<std::uint16_t>(next_ + used);
    const auto place = static_cast<std::uint16_t>(number & (ring_.size() - 1U));
    Descriptor descriptor = buffers_.are_own() ? buffers_.offered(place) : ring_.descriptor(number);
    const std::span<std::byte> buffer = buffers_.find(place, descriptor);
    if (buffer.size() < kLeastBuffer) return break_off();
    std::size_t filled = 0;
    while (!parts.empty() && filled < buffer.size()) {
      const std::size_t length = std::min(parts[0].size() - done, buffer.size() - filled);
      if (length != 0) std::memcpy(buffer.data() + filled, parts[0].data() + done, length);
      filled += length;
      done += length;
      if (done < parts[0].size()) break;
      parts = parts.subspan(1);
      done = 0;
    }
    descriptor.length = static_cast<std::uint32_t>(filled);
    descriptor.flags = parts.empty() ? 0 : Descriptor::kMore;
    ring_.set_descriptor(number, descriptor);
    ++used;
    if (parts.empty()) break;
  }
  STP_ASSERT(used <= room_, "a frame takes no more places than are free");
  next_ = static_cast<std::uint16_t>(next_ + used);
  room_ -= used;
  return true;
}

bool Sender::put(Bytes frame) {
  if (room_ == 0 && (broken_ || (room_ = room()) == 0)) return false;
  const auto place = static_cast<std::uint16_t>(next_ & (ring_.size() - 1U));
  Descriptor descriptor = buffers_.are_own() ? buffers_.offered(place) : ring_.descriptor(next_);
  const std::span<std::byte> buffer = buffers_.find(place, descriptor);
  if (buffer.size() < std::max(frame.size(), kLeastBuffer)) return put(std::span(&frame, 1));
  write(buffer, frame);
  descriptor.length = static_cast<std::uint32_t>(frame.size());
  descriptor.flags = 0;
  ring_.set_descriptor(next_, descriptor);
  ++next_;
  --room_;
  return true;
}

// The rest of the line gets zeros: the peer sees nothing else of this side's memory.
void Sender::write(std::span<std::byte> buffer, Bytes frame) const {
  const bool on_a_line = reinterpret_cast<std::uintptr_t>(buffer.data()) % kCacheLine == 0;
  if (not_published() < kThroughCaches || frame.size() > kShort ||
      frame.size() < sizeof(std::uint64_t) || !on_a_line || buffer.size() < kShort)
    std::memcpy(buffer.data(), frame.data(), frame.size());
  else
    write_past_caches(buffer.data(), frame.data(), frame.size());
}

void Sender::publish() {
  if (published_ == next_) return;
  if (not_published() > kThroughCaches) finish_writes_past_caches();
  published_ = next_;
  if (buffers_.are_own())
    ring_.set_head(next_);
  else
    ring_.set_tail(next_);
  fetch_ahead();
}

// The peer has read these places, so its processor has them: a frame that is written there waits
// for as many cache lines as it touches, and short frames one after the other for nothing else. So
// the lines of the next frames come while those are built, but for those that are written past the
// caches. What the peer may still read stays with it.
void Sender::fetch_ahead() {
  const auto each = [this](std::uint16_t& from, std::uint16_t most, auto&& fetch) {
    if (static_cast<std::uint16_t>(from - next_) > most) from = next_;
    const auto end = static_cast<std::uint16_t>(next_ + std::min<unsigned>(most, room_));
    for (; static_cast<std::int16_t>(end - from) > 0; ++from) fetch(from);
  };
  each(described_, kDescriptorsAhead,
       [this](std::uint16_t number) { ring_.fetch_line_ahead(number); });
  each(fetched_, kThroughCaches, [this](std::uint16_t number) {
    const auto place = static_cast<std::uint16_t>(number & (ring_.size() - 1U));
    const auto descriptor = buffers_.are_own() ? buffers_.offered(place) : ring_.descriptor(number);
    const std::span<std::byte> buffer = buffers_.find(place, descriptor);
    if (!buffer.empty()) fetch_line_to_write(buffer.data());
  });
}

// ---- Receiver

void Receiver::begin() {
  for (unsigned place = 0; place < ring_.size(); ++place) {
    const auto number = static_cast<std::uint16_t>(place);
    ring_.set_descriptor(number, buffers_.offered(number));
  }
  ring_.set_head(ring_.size());
}

unsigned Receiver::arrived() {
  if (broken_) return 0;
  // No further than the places that were released to it.
  const std::uint16_t end = buffers_.are_own() ? ring_.tail() : ring_.head();
  const unsigned filled = static_cast<std::uint16_t>(end - released_);
  const unsigned taken = static_cast<std::uint16_t>(next_ - released_);
  if (filled <= ring_.size() && filled >= taken) return filled - taken;
  break_off();
  return 0;
}

void Receiver::fetch_ahead(unsigned count) const {
  for (unsigned i = 0; i < count; ++i) {
    const auto number = static_cast<std::uint16_t>(next_ + i);
    const auto place = static_cast<std::uint16_t>(number & (ring_.size() - 1U));
    const auto descriptor = buffers_.are_own() ? Descriptor{} : ring_.descriptor(number);
    fetch_line(buffers_.find(place, descriptor).data());
  }
}

// Copies a whole frame, or its head. Returns the number of bytes copied.
std::size_t Receiver::copy(Bytes frame, std::byte* to, Stays stays, Bytes& rest) {
  std::memcpy(to, frame.data(), kHead);
  if (stays(std::span<const std::byte, kHead>(to, kHead))) {
    rest = frame.subspan(kHead);
    return kHead;
  }
  std::memcpy(to + kHead, frame.data() + kHead, frame.size() - kHead);
  return frame.size();
}

Receiver::Took Receiver::take(std::span<std::byte> to, std::size_t& length) {
  Bytes rest;
  return take(to, length, nullptr, rest);
}

// A frame in one piece, as nearly all are, needs no loop.
Receiver::Took Receiver::take(std::span<std::byte> to, std::size_t& length, Stays stays,
                              Bytes& rest) {
  rest = {};
  length = 0;
  if (waiting() == 0) return Took::kNothing;
  const auto place = static_cast<std::uint16_t>(next_ & (ring_.size() - 1U));
  const Descriptor descriptor = ring_.descriptor(next_);
  const std::span<std::byte> buffer = buffers_.find(place, descriptor);
  if ((descriptor.flags & Descriptor::kMore) != 0 || descriptor.length > buffer.size() ||
      descriptor.length > to.size())
    return take_pieces(to, length);
  length = descriptor.length;
  if (stays != nullptr && length >= kLong)
    length = copy(buffer.first(length), to.data(), stays, rest);
  else if (length != 0)
    std::memcpy(to.data(), buffer.data(), length);
  ++next_;
  --left_;
  return Took::kFrame;
}

// Reads each descriptor anew: the peer may have changed the first one.
Receiver::Took Receiver::take_pieces(std::span<std::byte> to, std::size_t& length) {
  std::uint16_t used = 0;
  bool fits = true;
  for (;;) {
    // A frame is published whole.
    if (used == left_ && (left_ = arrived()) <= used) return break_off();
    const auto number = static_cast<std::uint16_t>(next_ + used);
    const auto place = static_cast<std::uint16_t>(number & (ring_.size() - 1U));
    const Descriptor descriptor = ring_.descriptor(number);
    const std::span<std::byte> buffer = buffers_.find(place, descriptor);
    const bool more = (descriptor.flags & Descriptor::kMore) != 0;
    if (descriptor.length > buffer.size() || (more && descriptor.length == 0) ||
        used == kMostPieces)
      return break_off();
    fits = fits && descriptor.length <= to.size() - length;
    if (fits && descriptor.length != 0) {
      std::memcpy(to.data() + length, buffer.data(), descriptor.length);
      length += descriptor.length;
    }
    ++used;
    if (!more) break;
    // DPDK's client sets this flag, and forgets it there.
    Descriptor cleared = descriptor;
    cleared.flags = 0;
    ring_.set_descriptor(number, cleared);
  }
  next_ = static_cast<std::uint16_t>(next_ + used);
  left_ -= used;
  return fits ? Took::kFrame : Took::kTooLong;
}

void Receiver::release() {
  if (released_ == next_) return;
  if (!buffers_.are_own()) {
    ring_.set_tail(released_ = next_);
    return;
  }
  for (; released_ != next_; ++released_) {
    const auto place = static_cast<std::uint16_t>(released_ & (ring_.size() - 1U));
    ring_.set_descriptor(released_, buffers_.offered(place));
  }
  ring_.set_head(static_cast<std::uint16_t>(next_ + ring_.size()));
}

}  // namespace stp::port::memif
