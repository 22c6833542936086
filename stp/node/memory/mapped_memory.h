// SPDX-License-Identifier: BSD-3-Clause
// The memory that users have mapped on their endpoints, by its names: Bufx, and the Mx that let
// peers name parts of it. Nobody reaches memory after unmap(); its user is told (kRegionGone) when
// no frame reads it any more (docs/protocol.md, section 7).
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "stp/base/assert.h"
#include "stp/base/id_table.h"
#include "stp/base/linked_list.h"
#include "stp/counters.h"
#include "stp/node/node.h"
#include "stp/types.h"
#include "stp/wire/header.h"

namespace stp {

struct Common;
struct Endpoint;
class PortTable;

// A range of Bufx values, [base, base + count), and the user memory bound to each (section 7).
// A two-level table. A page filled by one piece of memory names the piece once; any other page has
// entries from the first bound one to the last. So a mapping costs what it binds, wherever it is in
// the range. Lookups try the piece found last first.
// protocol: 7.1
class BufxRange {
 public:
  struct Entry {
    std::byte* memory = nullptr;  // nullptr: nothing bound
    RegionId region = 0;
  };

  BufxRange() = default;
  BufxRange(std::uint32_t base, std::uint32_t count, unsigned bufsize)
      : base_(base), count_(count), bufsize_(bufsize) {}

  [[nodiscard]] unsigned bufsize() const { return bufsize_; }

  // The number of entries from `base` on that can be bound.
  static constexpr std::size_t kMaxReach = std::size_t{1} << 24;
  // The most pieces of one mapping. Each may begin and end inside a page.
  static constexpr std::size_t kMaxPieces = 256;

  // Returns 0, -ERANGE (not in the range), -ENOMEM (beyond kMaxReach), -EBUSY (an entry is taken),
  // or -EINVAL (not whole buffers, or more than kMaxPieces). May throw std::bad_alloc; then nothing
  // is bound.
  int bind(std::uint32_t first, std::span<const MutableBytes> pieces, RegionId region);
  // Unbinds the pieces of `region` in these entries, and no others. Returns the number of entries.
  std::size_t unbind(std::uint32_t first, std::uint32_t count, RegionId region);

  // The memory bound to `bufx`; an empty Entry outside the range.
  [[nodiscard]] Entry find(std::uint32_t bufx) const {
    if (bufx - recent_->first >= recent_->count && !look_up(bufx)) return {};
    const auto within = std::size_t{bufx - recent_->first};
    return {recent_->memory + (within << bufsize_), recent_->region};
  }
  // The longest contiguous memory of one region that begins at the linear address `at`, at most
  // `length` bytes. Empty if nothing is bound there.
  [[nodiscard]] Bytes run(std::uint64_t at, std::uint64_t length, RegionId& region) const {
    const auto bufx = at >> bufsize_;
    if (bufx - recent_->first >= recent_->count && !look_up(bufx)) return {};
    const auto within = at - (std::uint64_t{recent_->first} << bufsize_);
    const auto bytes = std::uint64_t{recent_->count} << bufsize_;
    region = recent_->region;
    return {recent_->memory + within, static_cast<std::size_t>(std::min(length, bytes - within))};
  }

  // Whether `length` bytes from (bufx, offset) on are all bound. If `length` is 0, only the start
  // must be inside a bound buffer.
  [[nodiscard]] bool covers(std::uint32_t bufx, std::uint32_t offset, std::uint64_t length) const {
    if (offset >= std::uint64_t{1} << bufsize_) return false;
    const auto within = bufx - recent_->first;
    if (within < recent_->count)
      return offset + length <= std::uint64_t{recent_->count - within} << bufsize_ ||
             covers_on(bufx, offset + length);
    return look_up(bufx) && covers(bufx, offset, length);
  }

  // The number of bound entries.
  [[nodiscard]] std::uint64_t bound() const { return bound_; }
  // footprint: bytes of the table. growth: the most bytes that bind() would add.
  [[nodiscard]] std::size_t footprint() const {
    return page_bytes_ + places_.capacity() * sizeof(Place) + pieces_.size() * kPieceBytes;
  }
  [[nodiscard]] std::size_t growth(std::uint32_t first, std::span<const MutableBytes> pieces) const;

  static constexpr unsigned kPageBits = 10;
  static constexpr std::size_t kPageEntries = std::size_t{1} << kPageBits;

 private:
  struct Piece {
    std::uint32_t first = 0, count = 0;  // count 0: no piece
    std::byte* memory = nullptr;
    RegionId region = 0;
  };
  using Pieces = std::map<std::uint32_t, Piece>;  // by first Bufx; pieces never move
  static constexpr std::size_t kPieceBytes = sizeof(Pieces::value_type) + 4 * sizeof(void*);
  static const Piece kNone;

  // Finds the piece that holds `bufx` and makes it recent_. False: none.
  [[nodiscard]] bool look_up(std::uint64_t bufx) const;
  // Entries of a page, from number `first` on.
  struct Page {
    std::size_t first = 0, bound = 0;
    std::vector<const Piece*> entries;
    [[nodiscard]] const Piece* find(std::size_t number) const {
      return number - first < entries.size() ? entries[number - first] : nullptr;
    }
    [[nodiscard]] std::size_t bytes() const {
      return sizeof(Page) + entries.capacity() * sizeof(const Piece*);
    }
    // Extends it to entries [from, to).
    void reach(std::size_t from, std::size_t to);
  };
  struct Place {
    std::unique_ptr<Page> page;
    const Piece* piece = nullptr;  // without a page: the piece that fills it; nullptr: none
  };

  // Whether all bytes up to `end`, counted from the start of `bufx`, are bound.
  [[nodiscard]] bool covers_on(std::uint32_t bufx, std::uint64_t end) const;

  // The part of one page that entries [from, to) cover.
  struct Part {
    std::size_t place;     // from the first of the range on
    std::size_t from, to;  // in the page
    [[nodiscard]] bool whole() const { return to - from == kPageEntries; }
  };
  static Part part_of(std::size_t from, std::size_t to);
  [[nodiscard]] const Place* place_at(std::size_t number) const {
    const auto at = number - first_place_;
    return at < places_.size() ? &places_[at] : nullptr;
  }
  Place& made_place(std::size_t number) {
    STP_ASSERT(number - first_place_ < places_.size(), "what is bound has a place");
    return places_[number - first_place_];
  }
  int check(std::uint32_t first, std::span<const MutableBytes> pieces, std::size_t& wanted) const;
  [[nodiscard]] Pieces joined(std::uint32_t first, std::span<const MutableBytes> pieces,
                              RegionId region) const;
  template <typename Visit>
  void each_part(const Piece& piece, Visit&& visit) const;
  [[nodiscard]] bool is_free(const Part& part) const;
  void make_places(std::size_t from, std::size_t to);
  void make_page(const Part& part);
  void fill(const Part& part, const Piece& piece);
  void clear(const Part& part);

  std::uint32_t base_ = 0, count_ = 0;
  unsigned bufsize_ = 14;
  std::size_t first_place_ = 0;  // page number of places_[0]
  std::vector<Place> places_;    // from the first page with anything bound to the last
  Pieces pieces_;
  mutable const Piece* recent_ = &kNone;  // the piece found last
  std::size_t page_bytes_ = 0;
  std::uint64_t bound_ = 0;
};

// protocol: 7.3
struct MxEntry {
  RegionId region = 0;  // 0: not live
  std::uint32_t first = 0, count = 0;
  std::uint64_t endpoint = 0;  // the endpoint whose memory it is
  std::uint64_t vc = 0;        // its only connection; 0: all of the endpoint's
  std::uint8_t permissions = 0;

  [[nodiscard]] bool contains(std::uint32_t bufx) const { return bufx - first < count; }
};

// The Mx of one region and of one connection: they end with it.
struct MxOfRegion;
struct MxOfVc;
struct MxPlace : ListHook<MxOfRegion>, ListHook<MxOfVc> {
  std::uint16_t mx = 0;
};
using RegionMxs = LinkedList<MxPlace, MxOfRegion>;
using VcMxs = LinkedList<MxPlace, MxOfVc>;

// Mx: 16-bit names of sub-ranges of bound receive Bufx entries, with the operations each permits
// (section 7).
class MxTable {
 public:
  // The number of names; 0 is not one.
  static constexpr std::size_t kMost = 0xffff;

  // Returns the new Mx or -ENOSPC. Never returns 0, so a header of zeros names nothing. `of_vc`:
  // nullptr if it is for no particular connection.
  int allocate(const MxEntry& entry, RegionMxs& of_region, VcMxs* of_vc);
  void free(std::uint16_t mx);
  // The region or connection has ended. Its id never returns, so these Mx permit nothing any more.
  // tidy() frees their names.
  void abandon(RegionMxs& mxs) { of_ended_regions_.append(mxs); }
  void abandon(VcMxs& mxs) { of_ended_vcs_.append(mxs); }
  // Frees up to `most` abandoned names. Returns how many.
  std::size_t tidy(std::size_t most);
  [[nodiscard]] bool untidy() const { return !of_ended_regions_.empty() || !of_ended_vcs_.empty(); }
  // nullptr: not live. May return an abandoned Mx; the ids of its region and connection name
  // nothing.
  [[nodiscard]] const MxEntry* find(std::uint16_t mx) const {
    return mx < entries_.size() && entries_[mx].region != 0 ? &entries_[mx] : nullptr;
  }

 private:
  static constexpr std::size_t kResting = 1024;
  std::vector<MxEntry> entries_{1};
  std::deque<MxPlace> places_{1};  // of the entry with the same index
  std::deque<std::uint16_t> free_;
  RegionMxs of_ended_regions_;
  VcMxs of_ended_vcs_;
};

struct Region {
  RegionId id = kNoneId;
  Endpoint* endpoint = nullptr;
  Direction direction = Direction::kTransmit;
  std::uint32_t first = 0, count = 0;
  std::uint32_t attached = 0;  // frames that still read this memory
  bool unmapped = false;
  RegionMxs mxs;
};

class MappedMemory {
 public:
  // Both must outlive this.
  MappedMemory(Common& common, const PortTable& vcs);

  // As Node::map() and so on.
  int map(Endpoint& endpoint, Direction direction, std::uint32_t base,
          std::span<const MutableBytes> pieces, RegionId& out);
  int unmap(RegionId id);
  int alloc_mx(RegionId region, VcId vc, std::uint8_t permissions, std::uint16_t& out);
  int free_mx(EndpointId endpoint, std::uint16_t mx);

  // Whose memory the peer of a connection may name.
  struct Reach {
    EndpointId endpoint;
    VcId vc;
    const BufxRange& bound;  // what the endpoint has mapped for receiving
  };
  // The memory where a peer may access `length` bytes with one of the permissions `permission`, as
  // a header names it; or the reason why it may not.
  // protocol: 7.6
  [[nodiscard]] DropReason check(const Reach& reach, const wire::Header& header, std::size_t length,
                                 std::uint8_t permission, std::byte*& memory) const;
  // The sub-range that a checked `mx` names.
  [[nodiscard]] const MxEntry& named(std::uint16_t mx) const { return *mxs_.find(mx); }

  // As Node::is_read().
  [[nodiscard]] bool is_read(RegionId id) const {
    const auto* const region = regions_.find(id);
    return region != nullptr && region->attached != 0;
  }
  // So many frames read memory of this mapped region, until they have left.
  void attach(RegionId id, std::uint32_t frames = 1);
  // The same of so many frames. False: no such frames are known; they were given back twice.
  bool detach(RegionId id, std::uint32_t frames = 1);

  // The connection has ended. From now on these Mx permit nothing.
  void abandon(VcMxs& mxs) {
    mxs_.abandon(mxs);
    mxs_.tidy(kTidiedAtOnce);
  }
  // Frees up to `most` names of what has ended. Returns how many.
  std::size_t tidy(std::size_t most) { return mxs_.tidy(most); }
  [[nodiscard]] bool untidy() const { return mxs_.untidy(); }

 private:
  static constexpr std::size_t kTidiedAtOnce = 64;

  [[nodiscard]] bool is_live(const MxEntry& mx) const;
  void end(Region& region);

  Common& common_;
  const PortTable& vcs_;
  IdTable<Region> regions_;
  MxTable mxs_;
};

// In this header because it is part of the way of each STU.
inline DropReason MappedMemory::check(const Reach& reach, const wire::Header& h, std::size_t length,
                                      std::uint8_t permission, std::byte*& memory) const {
  const auto* const mx = mxs_.find(h.mx);
  if (mx == nullptr) return DropReason::kBadMx;
  if (mx->endpoint != reach.endpoint || (mx->vc != kNoneId && mx->vc != reach.vc))
    return is_live(*mx) ? DropReason::kMxNotOwned : DropReason::kBadMx;
  if (!mx->contains(h.bufx)) return is_live(*mx) ? DropReason::kBadBufx : DropReason::kBadMx;
  const auto& range = reach.bound;
  const auto entry = range.find(h.bufx);
  // An unmapped region has nothing bound, and no other region has its id.
  if (entry.region != mx->region) return is_live(*mx) ? DropReason::kBadBufx : DropReason::kBadMx;
  const auto size = std::uint64_t{1} << range.bufsize();
  if (h.offset >= size) return DropReason::kBadOffset;
  if (h.offset + length > size) return DropReason::kStuCrossesBuffer;
  if ((mx->permissions & permission) == 0) return DropReason::kNoPermission;
  memory = entry.memory + h.offset;
  return DropReason::kNone;
}

}  // namespace stp
