// SPDX-License-Identifier: BSD-3-Clause
// One side's view of a ring: it either fills it or empties it. What the peer writes into a ring is
// read once and checked before it is followed. A peer that breaks the rules is told by broken():
// its ring is to be used no more. A ring is used by one thread, and each on cache lines of its own;
// any thread may ask whether it is broken.
#pragma once

#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "dpdk_port/link/engine.h"
#include "dpdk_port/memif/closer.h"
#include "dpdk_port/memif/protocol.h"
#include "stp/base/fetch_ahead.h"
#include "stp/types.h"

namespace stp::port::memif {

// Memory that both sides of a memif have mapped. The client makes it. What the peer writes there
// may change at any time, and is looked at once.
class Region {
 public:
  Region() = default;
  // Zeros. Empty: `error` says why.
  static Region make(std::size_t size, const std::shared_ptr<Closer>& closer,
                     SharedDescriptor& file, std::string& error);
  // Of the peer. Only memory that cannot shrink while it is mapped: else an access would kill this
  // process. Seals it, so that it also keeps its pages. May wait for whoever works on the file.
  static Region map(const SharedDescriptor& file, std::uint64_t size, std::string& error);
  Region(Region&& other) noexcept;
  Region& operator=(Region&& other) noexcept;
  ~Region();

  [[nodiscard]] explicit operator bool() const { return !bytes_.empty(); }
  [[nodiscard]] std::size_t size() const { return bytes_.size(); }
  // Empty: it does not lie in the region.
  [[nodiscard]] std::span<std::byte> part(std::uint64_t offset, std::uint64_t length) const {
    if (offset > bytes_.size() || length > bytes_.size() - offset) return {};
    return bytes_.subspan(offset, length);
  }

  // What a connection may have mapped, in all of its regions.
  static constexpr std::uint64_t kGreatest = std::uint64_t{1} << 30;

 private:
  Region(std::span<std::byte> bytes, std::shared_ptr<Closer> closer)
      : bytes_(bytes), closer_(std::move(closer)) {}
  std::span<std::byte> bytes_;
  std::shared_ptr<Closer> closer_;  // unmaps them
};

// Seals a file that both sides have mapped: from now on nobody can take pages of it away, nor map
// it for writing once more. False: it can never be sealed so. Kernels before 5.1 do not know that
// seal: there it returns true. May wait for whoever works on the file.
bool keep_pages(const SharedDescriptor& file);

using Regions = std::vector<Region>;

class Ring {
 public:
  Ring() = default;
  // `memory`: ring_bytes(log2_size) of a region, aligned as kRingAlignment says.
  Ring(std::span<std::byte> memory, unsigned log2_size)
      : at_(memory.data()), size_(static_cast<std::uint16_t>(1U << log2_size)) {}

  [[nodiscard]] std::uint16_t size() const { return size_; }
  void clear();
  [[nodiscard]] bool has_cookie() const {
    return __atomic_load_n(reinterpret_cast<const std::uint32_t*>(at_ + kCookieAt),
                           __ATOMIC_RELAXED) == kCookie;
  }
  void poll() { __atomic_store_n(word(kFlagsAt), kNoInterrupts, __ATOMIC_RELAXED); }

  [[nodiscard]] std::uint16_t head() const {
    return __atomic_load_n(word(kHeadAt), __ATOMIC_ACQUIRE);
  }
  [[nodiscard]] std::uint16_t tail() const {
    return __atomic_load_n(word(kTailAt), __ATOMIC_ACQUIRE);
  }
  void set_head(std::uint16_t to) { __atomic_store_n(word(kHeadAt), to, __ATOMIC_RELEASE); }
  void set_tail(std::uint16_t to) { __atomic_store_n(word(kTailAt), to, __ATOMIC_RELEASE); }
  // Where the client, or the server, says whether it sleeps.
  [[nodiscard]] std::uint16_t* sleeps_of(bool client) const {
    return word(client ? kClientSleepsAt : kServerSleepsAt);
  }

  // A copy: the peer cannot change it any more.
  [[nodiscard]] Descriptor descriptor(std::uint16_t number) const {
    std::uint64_t halves[2];
    const auto* const from = descriptor_at(number);
    halves[0] = __atomic_load_n(from, __ATOMIC_RELAXED);
    halves[1] = __atomic_load_n(from + 1, __ATOMIC_RELAXED);
    Descriptor out;
    std::memcpy(&out, halves, sizeof out);
    return out;
  }
  void set_descriptor(std::uint16_t number, const Descriptor& descriptor) {
    std::uint64_t halves[2];
    std::memcpy(halves, &descriptor, sizeof halves);
    auto* const to = descriptor_at(number);
    __atomic_store_n(to, halves[0], __ATOMIC_RELAXED);
    __atomic_store_n(to + 1, halves[1], __ATOMIC_RELAXED);
  }
  // Brings the cache line that begins with that descriptor, to write it; nothing if none does.
  void fetch_line_ahead(std::uint16_t number) const {
    auto* const at = descriptor_at(number);
    if (reinterpret_cast<std::uintptr_t>(at) % kCacheLine == 0) fetch_line_to_write(at);
  }

 private:
  [[nodiscard]] std::uint16_t* word(std::size_t offset) const {
    return reinterpret_cast<std::uint16_t*>(at_ + offset);
  }
  [[nodiscard]] std::uint64_t* descriptor_at(std::uint16_t number) const {
    const std::size_t place = number & (size_ - 1U);
    return reinterpret_cast<std::uint64_t*>(at_ + kDescriptorsAt + place * sizeof(Descriptor));
  }

  std::byte* at_ = nullptr;
  std::uint16_t size_ = 0;
};

// Where the buffers of a ring are. The client's own stand one behind the other, whatever the ring
// says; the server has to take them from the ring.
class Buffers {
 public:
  Buffers() = default;
  static Buffers own(const Region& region, std::uint32_t offset, std::uint32_t size) {
    Buffers out;
    out.region_ = &region;
    out.offset_ = offset;
    out.size_ = size;
    return out;
  }
  static Buffers of_peer(const Regions& regions) {
    Buffers out;
    out.regions_ = &regions;
    return out;
  }

  [[nodiscard]] bool are_own() const { return region_ != nullptr; }
  // As the client offers the one of that place.
  [[nodiscard]] Descriptor offered(std::uint16_t place) const {
    return {.length = size_, .offset = offset_ + place * size_};
  }
  // The memory that `said` speaks of. Empty: there is none.
  [[nodiscard]] std::span<std::byte> find(std::uint16_t place, const Descriptor& said) const {
    if (region_ != nullptr) return region_->part(offset_ + std::uint64_t{place} * size_, size_);
    if (said.region >= regions_->size()) return {};
    return (*regions_)[said.region].part(said.offset, said.length);
  }

 private:
  const Region* region_ = nullptr;
  const Regions* regions_ = nullptr;
  std::uint32_t offset_ = 0, size_ = 0;
};

// Fills a ring.
class alignas(kCacheLine) Sender {
 public:
  // Smaller buffers of a peer are none: filling them is work.
  static constexpr std::size_t kLeastBuffer = 64;

  Sender() = default;
  Sender(Ring ring, Buffers buffers) : ring_(ring), buffers_(buffers) {}

  // A frame that stands in several pieces. False: there is no room for it.
  bool put(std::span<const Bytes> parts);
  // The same in one piece; nearly all also fit one buffer.
  bool put(Bytes frame);
  // The peer sees what was put since.
  void publish();
  [[nodiscard]] bool broken() const { return __atomic_load_n(&broken_, __ATOMIC_RELAXED); }

 private:
  // So many frames that are published together are written through the caches, into lines brought
  // there before. Further short ones are written past the caches.
  static constexpr std::uint16_t kThroughCaches = 8;
  static constexpr std::size_t kShort = 2 * kCacheLine;
  // Places whose descriptors are brought into the caches before: those of a burst, and some more,
  // which are read to find the frames' lines.
  static constexpr std::uint16_t kDescriptorsAhead = 48;

  void write(std::span<std::byte> buffer, Bytes frame) const;
  void fetch_ahead();
  [[nodiscard]] std::uint16_t not_published() const {
    return static_cast<std::uint16_t>(next_ - published_);
  }
  [[nodiscard]] unsigned room();
  bool break_off() {
    room_ = 0;
    __atomic_store_n(&broken_, true, __ATOMIC_RELAXED);
    return false;
  }

  Ring ring_;
  Buffers buffers_;
  std::uint16_t next_ = 0, published_ = 0;
  // The first places whose descriptors, and whose frames, have not been brought into the caches.
  std::uint16_t described_ = 0, fetched_ = 0;
  unsigned room_ = 0;  // places that are known to be free
  bool broken_ = false;
};

// Empties a ring.
class alignas(kCacheLine) Receiver {
 public:
  enum class Took { kNothing, kFrame, kTooLong };
  static constexpr std::uint16_t kMostPieces = 256;  // of a frame
  static constexpr std::size_t kHead = 54, kLong = 1024;

  Receiver() = default;
  Receiver(Ring ring, Buffers buffers) : ring_(ring), buffers_(buffers) {}

  // The client's: offers all its buffers.
  void begin();
  // Brings that many filled places into the caches: else each frame waits for its lines from the
  // peer's, one after the other.
  void fetch_ahead(unsigned count) const;
  // Filled places: frames may take several.
  [[nodiscard]] unsigned waiting() { return left_ > 0 ? left_ : left_ = arrived(); }
  // Copies the next frame. kTooLong: it does not fit, and has been left out.
  Took take(std::span<std::byte> to, std::size_t& length);
  // The same, but of a frame of kLong bytes or more in one piece whose head `stays` accepts, only
  // that head is copied. `rest` is what follows it, and stays in the ring until release(); the peer
  // may change it at any time. Else `rest` is empty. `stays` gets the copy.
  using Stays = bool (*)(std::span<const std::byte, kHead> head);
  Took take(std::span<std::byte> to, std::size_t& length, Stays stays, Bytes& rest);
  // The peer may use the places of what was taken again.
  void release();
  [[nodiscard]] bool broken() const { return __atomic_load_n(&broken_, __ATOMIC_RELAXED); }

 private:
  [[nodiscard]] unsigned arrived();
  static std::size_t copy(Bytes frame, std::byte* to, Stays stays, Bytes& rest);
  Took take_pieces(std::span<std::byte> to, std::size_t& length);
  Took break_off() {
    left_ = 0;
    __atomic_store_n(&broken_, true, __ATOMIC_RELAXED);
    return Took::kNothing;
  }

  Ring ring_;
  Buffers buffers_;
  std::uint16_t next_ = 0, released_ = 0;
  unsigned left_ = 0;  // places that are known to be filled
  bool broken_ = false;
};

}  // namespace stp::port::memif
