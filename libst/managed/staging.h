// SPDX-License-Identifier: BSD-3-Clause
// The library's own memory, registered with a domain. Its connections share it: each has a small
// block of its own, and takes the rest while it needs it. So one that sends or receives little
// costs little, also where a stpd drives the link: what that is lent is allocated at once.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "libst/managed/memory.h"
#include "stp/base/assert.h"

namespace stp::managed {

inline constexpr std::size_t kHelloSize = 2048;
inline constexpr std::size_t kEagerSlot = 4096;
inline constexpr std::uint32_t kEagerSlots = 16;
inline constexpr std::size_t kEagerRing = kEagerSlots * kEagerSlot;
// Where a short message of a slot is sent from: those of all slots are in one page.
inline constexpr std::size_t kEagerCell = 256;
// The ring of a connection whose peer has sent little.
inline constexpr std::uint32_t kSmallSlots = 2;
inline constexpr std::size_t kSmallRing = kSmallSlots * kEagerSlot;
inline constexpr std::size_t kStagingBlock = kEagerSlots * kEagerCell + kSmallRing;
static_assert(2 * kHelloSize == kEagerSlots * kEagerCell);

// Who keeps the pages of a ring. Where the link is in this process, a page is there once something
// has been written into it. Of connections that are to be frugal, the rings that are used first
// keep theirs, so that messages cost no system call. The others give back those of each message
// that is taken: so many peers cost little, however much they send.
class RingKeepers {
 public:
  static constexpr std::size_t kMost = 256;  // 16 MiB

  // False: there are as many as there may be.
  [[nodiscard]] bool add() {
    if (count_ == kMost) return false;
    ++count_;
    return true;
  }
  void remove() {
    STP_ASSERT(count_ > 0, "who no longer keeps its pages has kept them");
    --count_;
  }

 private:
  std::size_t count_ = 0;
};

// The pages that messages leave from which do not fit into a cell. A message has as many in a row
// as it has slots, from when it is put until it has arrived.
class SendPages {
 public:
  static constexpr std::uint32_t kBlock = 16;  // pages that lie behind each other
  // From this block on, pages go back to the system once their block is free.
  static constexpr std::size_t kKept = 256;  // 16 MiB
  // With fewer free pages, more are wanted.
  static constexpr std::size_t kLow = kBlock;

  // The pages of a message.
  struct Place {
    std::uint32_t block = 0;
    std::uint16_t first = 0, count = 0;  // 0: none
  };

  // Adds blocks that lie there. `go_back`: their pages may go back to the system.
  void add(std::byte* pages, Memory* memory, std::size_t blocks, bool go_back);
  // So many pages in a row are free.
  [[nodiscard]] bool has(std::uint32_t count) const { return find(count).count != 0; }
  Place take(std::uint32_t count);
  void give_back(const Place& place);
  [[nodiscard]] std::byte* at(const Place& place) const {
    return blocks_[place.block].base + place.first * kEagerSlot;
  }
  [[nodiscard]] Address address(const Place& place) const {
    return blocks_[place.block].memory->at(at(place));
  }
  [[nodiscard]] std::size_t blocks() const { return blocks_.size(); }
  void clear();

  // More are wanted. Who needs some waits until there are more, or the link has refused them.
  void want() { wanted_ = true; }
  [[nodiscard]] bool is_wanted() const { return wanted_; }
  void answer(bool refused) {
    wanted_ = false;
    refused_ = refused;
  }
  [[nodiscard]] bool is_refused() const { return refused_; }
  // Where memory was scarce, there may be some again.
  void ask_again() { refused_ = false; }

 private:
  struct Block {
    std::byte* base = nullptr;
    Memory* memory = nullptr;
    std::uint16_t used = 0;  // bit per page
    bool go_back = false;
  };
  static constexpr std::uint16_t kFull = 0xffff;
  // The lowest ones, so that the others stay free. None: count 0.
  [[nodiscard]] Place find(std::uint32_t count) const;

  std::vector<Block> blocks_;
  std::vector<std::uint64_t> open_;  // bit per block: it has free pages
  std::size_t free_ = 0;             // pages
  bool wanted_ = false, refused_ = false;
};

// One connection's block: for the handshake, then for short messages that it sends; and for its
// small ring. No message leaves before the peer has this side's part of the handshake.
struct Staging {
  std::byte* base = nullptr;
  Memory* memory = nullptr;
  SendPages* pages = nullptr;  // for longer ones

  [[nodiscard]] std::byte* hello_out() const { return base; }
  [[nodiscard]] std::byte* hello_in() const { return base + kHelloSize; }
  [[nodiscard]] std::byte* cell_out(std::uint32_t slot) const { return base + slot * kEagerCell; }
  [[nodiscard]] std::byte* small_ring() const { return base + kEagerSlots * kEagerCell; }
};

// The ring that a connection has opened to its peer.
struct RingMemory {
  std::byte* base = nullptr;
  Memory* memory = nullptr;
  RingKeepers* keepers = nullptr;  // nullptr: its pages are there for good

  // Nobody needs what is in these whole pages any more, and nobody writes there now.
  void give_back(std::byte* pages, std::size_t size) const;
  [[nodiscard]] std::byte* slot(std::uint32_t slot) const { return base + slot * kEagerSlot; }
};

// Owns that memory. What is free has no owner; what is taken is given back when the link has let go
// of it.
class StagingArea {
 public:
  // Registers what is wanted. The caller holds the domain's control mutex but not the domain's own.
  // Returns 0 or a negative errno.
  int grow(const std::shared_ptr<Domain>& domain);
  // The other functions need the domain's own mutex.
  [[nodiscard]] bool has_free() const { return !blocks_.free.empty(); }
  void want_block() { wants_block_ = true; }
  Staging take();
  void give_back(const Staging& block);
  // A ring, if there is one. Else one more is wanted.
  std::optional<RingMemory> take_ring();
  void give_back(const RingMemory& ring);
  // The link does not give memory for more of them.
  [[nodiscard]] bool refuses_rings() const { return rings_refused_; }
  // Connections with small rings get others while there are so few.
  [[nodiscard]] bool has_few_rings() const { return rings_.made - rings_.free.size() < kMostGrown; }
  [[nodiscard]] SendPages& pages() { return pages_; }
  // Somebody waits for more, or will soon: grow() it.
  [[nodiscard]] bool is_wanted() const { return wants_block_ || wants_ring_ || pages_.is_wanted(); }
  // Under the control mutex. None of it is in use.
  void unbind();

 private:
  struct Unmap {
    std::size_t size;
    void operator()(std::byte* memory) const;
  };
  struct Chunk {
    std::unique_ptr<std::byte, Unmap> bytes;
    std::shared_ptr<Memory> memory;
  };
  // What is added at a time: as many as there are already, within these bounds. Each chunk costs
  // the service several requests.
  struct Wanted {
    std::size_t blocks = 0, rings = 0, page_blocks = 0;
    [[nodiscard]] std::size_t bytes() const {
      return blocks * kStagingBlock + (rings + page_blocks) * kEagerRing;
    }
  };
  template <typename Part>
  struct Parts {
    std::size_t made = 0;
    std::vector<Part> free;
  };
  static constexpr std::size_t kMostGrown = 64;  // 4 MiB
  static constexpr std::size_t kFewest = 8, kMost = 256, kMostRings = 64, kFewestPages = 4;
  [[nodiscard]] Wanted wanted() const;
  void add(const Wanted& what, std::byte* base, Memory* memory);
  void answer(bool refused);

  std::vector<Chunk> chunks_;
  Parts<Staging> blocks_;
  Parts<RingMemory> rings_;
  RingKeepers keepers_;
  SendPages pages_;  // at its end
  bool wants_block_ = false, wants_ring_ = false, rings_refused_ = false;
  bool here_ = false;  // the link is in this process: pages go back to the system
};
static_assert(kEagerRing == SendPages::kBlock * kEagerSlot);

}  // namespace stp::managed
