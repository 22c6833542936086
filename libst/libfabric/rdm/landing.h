// SPDX-License-Identifier: BSD-3-Clause
// Where what peers send lands: memory of an endpoint of FI_EP_RDM. It is bounded, so many peers
// that send little do not cost what few cost that send much.
//
// - A place is what each connection has: there is a bounded number, and none is one host's alone.
// - Buffers are for messages, of which each connection has some.
// - A lane is for the bytes of one peer's messages, who puts them there. It is used in turn, by
//   whole pages, and a message does not wrap around its end. The receiver says how many pages are
//   free again.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "libst/libfabric/link.h"
#include "libst/libfabric/memory.h"
#include "libst/libfabric/receives.h"
#include "libst/libfabric/wire.h"

namespace stp::fi::rdm {

// ---- places ----

// Connections that an endpoint makes, and those of one host to it.
inline constexpr std::size_t kMostConnections = 1024;
// More that may be made to it, by hosts that have few.
inline constexpr std::size_t kForOthers = 128;

// The places of those who send to an endpoint. Each connection has one. What peers have left whose
// connections have ended counts as connections that keep as much as they may: so peers that connect
// and go, again and again, do not leave more than those that stay. The last places are for hosts
// that have few, so that one host cannot keep all others out.
class Places {
 public:
  static constexpr std::size_t kMost = kMostConnections + kForOthers;
  // A host that has so many of them gets none of the last kForOthers.
  static constexpr std::size_t kFew = 16;
  // The messages of one host that wait may take as much as those of so many connections, and that
  // at least.
  static constexpr std::size_t kMostFull = 64, kLeastOfHost = std::size_t{1} << 20;

  // `most_kept`: bytes of messages that a connection keeps.
  explicit Places(std::size_t most_kept) : most_kept_(most_kept != 0 ? most_kept : 1) {}

  // What the peers of that host have here.
  std::shared_ptr<OfHost> of(const std::string& host) {
    if (hosts_.size() >= swept_at_) {
      std::erase_if(hosts_, [](const auto& each) { return each.second.expired(); });
      swept_at_ = 2 * hosts_.size() + kMostConnections;
    }
    auto& known = hosts_[host];
    auto has = known.lock();
    if (!has) known = has = std::make_shared<OfHost>();
    return has;
  }
  // Whether one more connection of that host may be made. `all`: what all hosts have.
  [[nodiscard]] bool is_free(const OfHost& has, const OfHost& all) const {
    if (has.left >= most_of_host()) return false;
    const auto left = kMost - std::min(taken(all), kMost);
    return left > kForOthers || (left != 0 && taken(has) < kFew);
  }

  // Whether further messages of that host may wait in copies.
  [[nodiscard]] bool may_keep(const OfHost& has) const {
    return has.kept + has.left < most_of_host();
  }

 private:
  [[nodiscard]] std::size_t most_of_host() const {
    return std::max(kMostFull * most_kept_, kLeastOfHost);
  }
  [[nodiscard]] std::size_t taken(const OfHost& has) const {
    return has.connections + has.left / most_kept_;
  }

  const std::size_t most_kept_;
  std::unordered_map<std::string, std::weak_ptr<OfHost>> hosts_;
  std::size_t swept_at_ = kMostConnections;
};

// ---- lanes ----

constexpr std::uint32_t lane_pages(std::size_t length) {
  return static_cast<std::uint32_t>((length + kLanePage - 1) / kLanePage);
}
// The first peers get a long lane, for 16 of the longest messages; later ones a short one, for 4.
inline constexpr std::uint32_t kLongLane = 16 * lane_pages(kPartsMost);
inline constexpr std::uint32_t kShortLane = 4 * lane_pages(kPartsMost);
// The peer hears of so many pages that are free again.
inline constexpr std::uint32_t kTold = kShortLane / 2;
// What a sender takes for the length of a lane: whole pages, for one message at least.
constexpr bool is_lane(std::uint64_t bytes) {
  return bytes % kLanePage == 0 && bytes >= lane_pages(kPartsMost) * kLanePage &&
         bytes <= std::uint64_t{1} << 32;
}

// The pages in use. Positions count all pages so far, with those that were left out.
class LanePages {
 public:
  explicit LanePages(std::uint32_t count = 0) : count_(count) {}
  [[nodiscard]] std::uint32_t count() const { return count_; }
  // Where the next message begins; nothing: there is no room for it.
  [[nodiscard]] std::optional<std::uint64_t> place(std::uint32_t pages) const {
    const auto left = count_ - used_ % count_;
    const auto begin = pages <= left ? used_ : used_ + left;
    if (begin + pages - freed_ > count_) return std::nullopt;
    return begin;
  }
  void use(std::uint64_t place, std::uint32_t pages) { used_ = place + pages; }
  // All before `position` are free. False: that cannot be.
  bool free(std::uint64_t position) {
    if (position < freed_ || position > used_) return false;
    freed_ = position;
    return true;
  }
  [[nodiscard]] std::uint64_t freed() const { return freed_; }
  [[nodiscard]] std::uint32_t page_of(std::uint64_t position) const {
    return static_cast<std::uint32_t>(position % count_);
  }

 private:
  std::uint32_t count_;
  std::uint64_t used_ = 0, freed_ = 0;
};

// The last 8 bytes that are put for the message at `place`: the receiver knows by them that all
// that is put is there. The lane's own `base` makes it unlike what a program sends.
constexpr std::uint64_t lane_mark(std::uint64_t base, std::uint64_t place) {
  auto mixed = base + (place + 1) * 0x9e3779b97f4a7c15;
  mixed = (mixed ^ mixed >> 30) * 0xbf58476d1ce4e5b9;
  mixed = (mixed ^ mixed >> 27) * 0x94d049bb133111eb;
  return mixed ^ mixed >> 31;
}

// The memory of a lane.
struct LaneMemory {
  std::unique_ptr<std::byte, FreeBlock> bytes;
  std::uint32_t pages = 0;
  stm_memory_t memory = nullptr;

  LaneMemory() = default;
  LaneMemory(const LaneMemory&) = delete;
  LaneMemory& operator=(const LaneMemory&) = delete;
  ~LaneMemory();
};

// Owns the memory of the lanes of an endpoint: of a bounded number. The last ones are for hosts
// that have few, so that one host cannot keep all others out.
class Lanes {
 public:
  static constexpr std::size_t kMost = 32;
  static constexpr std::size_t kLong = 4;  // of them
  static constexpr std::size_t kForOthers = 8;
  // A host that has so many of them gets none of the last kForOthers.
  static constexpr std::size_t kFew = 2;
  static constexpr std::size_t kBytes =
      (kLong * kLongLane + (kMost - kLong) * kShortLane) * kLanePage;

  explicit Lanes(stm_domain_t domain) : domain_(domain) {}
  // For a peer of that host. 0 or a status: -ENOBUFS, all that it may have are taken.
  int take(OfHost& host, std::unique_ptr<LaneMemory>& out);
  // No peer has access to it any more.
  void give_back(OfHost& host, std::unique_ptr<LaneMemory> lane);
  void clear() { free_.clear(); }

 private:
  // One that is free, or a new one. 0 or a status.
  int find(std::unique_ptr<LaneMemory>& out);

  const stm_domain_t domain_;
  std::size_t taken_ = 0;
  std::size_t long_ = 0;                         // long ones that exist
  std::list<std::unique_ptr<LaneMemory>> free_;  // the long ones first
};

// The receiving side of a lane.
class LaneIn {
 public:
  // Of a peer of that host, which stays as long as this.
  LaneIn(Lanes& lanes, OfHost& host);
  ~LaneIn();
  LaneIn(const LaneIn&) = delete;
  LaneIn& operator=(const LaneIn&) = delete;

  // Lets the peer put into it. 0 or a status.
  int open(stm_connection_t connection);
  // What the peer has to know of it: the header of kLane.
  [[nodiscard]] Head told() const;

  // Where a message of that length lies, if it comes now. nullopt: it has no room.
  [[nodiscard]] std::optional<std::uint64_t> place(std::size_t length) const {
    return pages_.place(lane_pages(length));
  }
  // What its header calls that place.
  [[nodiscard]] std::uint32_t page_of(std::uint64_t place) const { return pages_.page_of(place); }
  // Whether the bytes that are put there, so many, have come.
  [[nodiscard]] bool has(std::uint64_t place, std::size_t put) const;
  // The bytes of a message of that length. The last ones of those that are put come from `tail`,
  // and what follows them from behind that.
  std::byte* take(std::uint64_t place, std::size_t length, std::size_t put, const std::byte* tail);
  // The bytes at that place are not needed any more. True: the peer should hear of it.
  bool done(std::uint64_t place);
  // Up to where all is free. The peer hears of that now.
  std::uint64_t tell() { return told_ = pages_.freed(); }

 private:
  struct Piece {
    std::uint64_t begin, end;
    bool done;
  };
  [[nodiscard]] std::byte* at(std::uint64_t place) const {
    return memory_->bytes.get() + page_of(place) * kLanePage;
  }

  Lanes& lanes_;
  OfHost& host_;
  std::unique_ptr<LaneMemory> memory_;
  stm_region_t region_ = nullptr;
  std::uint32_t key_ = 0;
  std::uint64_t base_ = 0;
  LanePages pages_;
  std::uint64_t told_ = 0;
  std::deque<Piece> pieces_;  // in their order
};

// The sending side.
class LaneOut {
 public:
  // False: such a lane does not exist.
  bool open(const Head& told);
  void close() { open_ = false; }
  [[nodiscard]] bool is_open() const { return open_; }
  [[nodiscard]] bool has_room(std::size_t length) const {
    return open_ && pages_.place(lane_pages(length)).has_value();
  }
  // Where the next message of that length begins; there is room.
  [[nodiscard]] std::uint64_t place(std::size_t length) const {
    return *pages_.place(lane_pages(length));
  }
  void use(std::uint64_t place, std::size_t length) { pages_.use(place, lane_pages(length)); }
  // The peer says what is free. False: that cannot be.
  bool freed(const Head& told) { return open_ && pages_.free(told.length); }
  [[nodiscard]] std::uint32_t page_of(std::uint64_t place) const { return pages_.page_of(place); }
  [[nodiscard]] std::uint32_t key() const { return key_; }
  // How many bytes of a message come with its header.
  [[nodiscard]] std::size_t rest(std::size_t length) const {
    return takes_rests_ ? rest_of(length) : 0;
  }
  [[nodiscard]] std::uint64_t mark(std::uint64_t place) const { return lane_mark(base_, place); }

 private:
  bool open_ = false, takes_rests_ = false;
  std::uint32_t key_ = 0;
  std::uint64_t base_ = 0;
  LanePages pages_;
};

// ---- buffers ----

// So many headers may come on a connection that an endpoint has made, before it takes them.
inline constexpr std::size_t kWords = 32;

// Owns the buffers of an endpoint that are of one size. Those for messages have kBuffer bytes.
// Their memory is bounded: kFirst for each connection, and kShared for those that have more. The
// last of these are for hosts that have few.
class Buffers {
 public:
  static constexpr std::size_t kFirst = 1;
  static constexpr std::size_t kMost = 16;  // of a connection
  static constexpr std::size_t kEach = 4;   // messages, for each of them
  static constexpr std::size_t kShared = 1024;
  static constexpr std::size_t kForOthers = 128;
  // A host that has so many of them gets none of the last kForOthers.
  static constexpr std::size_t kFew = 16;
  static constexpr std::size_t kOfBlock = 16;  // registered together

  Buffers(stm_domain_t domain, std::size_t size, std::size_t of_block)
      : domain_(domain), size_(size), of_block_(of_block) {}

  // One of the first of its connection. 0 or a status.
  int take(RxBuffer*& out);
  // A further one, of a peer of that host. -ENOBUFS: all that it may have are taken.
  int take_further(OfHost& host, RxBuffer*& out);
  // No link writes into it any more.
  void give_back(RxBuffer& buffer);
  void give_back_further(OfHost& host, RxBuffer& buffer);
  void clear() { blocks_.clear(); }

 private:
  int add_block();

  const stm_domain_t domain_;
  const std::size_t size_, of_block_;
  std::list<RxBlock> blocks_;
  std::size_t shared_ = 0;  // taken
};

static_assert((Places::kMost * Buffers::kFirst + Buffers::kShared + Buffers::kOfBlock) * kBuffer +
                      Lanes::kBytes <
                  (std::size_t{52} << 20),
              "all who send to an endpoint cost below 52 MiB");

}  // namespace stp::fi::rdm
