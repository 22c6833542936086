// SPDX-License-Identifier: BSD-3-Clause
// A range of Bufx values, [base, base + count), and the user memory bound to each (section 7).
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "stp/types.h"

namespace stp {

using RegionId = std::uint64_t;

// Looked up by index, in two levels: where one piece of memory fills a page of entries it is
// described once for all of them, elsewhere a page has entries from the first bound one to the
// last. So a mapping costs what it binds, wherever in the range that is.
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

  [[nodiscard]] std::uint32_t base() const { return base_; }
  [[nodiscard]] std::uint32_t count() const { return count_; }
  [[nodiscard]] unsigned bufsize() const { return bufsize_; }

  // Entries from `base` on that can be bound.
  static constexpr std::size_t kMaxReach = std::size_t{1} << 24;
  // Pieces of one mapping: each may begin and end inside a page.
  static constexpr std::size_t kMaxPieces = 256;

  // 0, or -ERANGE (not in the range), -ENOMEM (beyond kMaxReach), -EBUSY (an entry is taken),
  // -EINVAL (not whole buffers, or more than kMaxPieces). Throws std::bad_alloc, and binds nothing.
  int bind(std::uint32_t first, std::span<const MutableBytes> pieces, RegionId region);
  // Of entries that were bound to `region`, and no others. Their number.
  std::size_t unbind(std::uint32_t first, std::uint32_t count, RegionId region);

  // What is bound to `bufx`: nothing where it is outside the range.
  [[nodiscard]] Entry find(std::uint32_t bufx) const {
    auto const in_main = bufx - main_.first;
    if (in_main < main_.count)
      return {main_.memory + (std::size_t{in_main} << bufsize_), main_.region};
    return look_up(bufx);
  }
  // The longest run of memory, at most `length` bytes, that begins `at` (a linear address) and is
  // contiguous and of one region. Empty where nothing is bound.
  [[nodiscard]] Bytes run(std::uint64_t at, std::uint64_t length, RegionId& region) const {
    auto const in_main = at - (std::uint64_t{main_.first} << bufsize_);
    auto const bytes = std::uint64_t{main_.count} << bufsize_;
    if (in_main >= bytes) return look_up_run(at, length, region);
    region = main_.region;
    return {main_.memory + in_main, static_cast<std::size_t>(std::min(length, bytes - in_main))};
  }

  // Whether `length` bytes from (bufx, offset) on are all bound; an empty run needs only its start
  // to be inside a bound buffer.
  [[nodiscard]] bool covers(std::uint32_t bufx, std::uint32_t offset, std::uint64_t length) const {
    if (offset >= std::uint64_t{1} << bufsize_) return false;
    auto const in_main = bufx - main_.first;
    if (in_main < main_.count && offset + length <= std::uint64_t{main_.count - in_main}
                                                        << bufsize_)
      return true;
    return look_up_all(bufx, offset, length);
  }

  // Entries that are bound.
  [[nodiscard]] std::uint64_t bound() const { return bound_; }
  // Bytes that the table takes; and, at most, those that bind() would add.
  [[nodiscard]] std::size_t footprint() const {
    return page_bytes_ + places_.capacity() * sizeof(Place);
  }
  [[nodiscard]] std::size_t growth(std::uint32_t first, std::span<const MutableBytes> pieces) const;

  static constexpr unsigned kPageBits = 10;
  static constexpr std::size_t kPageEntries = std::size_t{1} << kPageBits;

 private:
  // The same of what is not in `main_`.
  [[nodiscard]] Bytes look_up_run(std::uint64_t at, std::uint64_t length, RegionId& region) const;
  [[nodiscard]] bool look_up_all(std::uint32_t bufx, std::uint32_t offset,
                                 std::uint64_t length) const;
  [[nodiscard]] Entry look_up(std::uint32_t bufx) const {
    std::size_t const index = bufx - base_;
    auto const at = (index >> kPageBits) - first_place_;
    if (at >= places_.size()) return {};
    auto const& place = places_[at];
    auto const within = index % kPageEntries;
    if (place.page != nullptr) return place.page->find(within);
    if (place.memory == nullptr) return {};
    return {place.memory + (within << bufsize_), place.region};
  }
  // The entries of a page from number `first` on.
  struct Page {
    std::size_t first = 0, bound = 0;
    std::vector<Entry> entries;
    [[nodiscard]] Entry find(std::size_t number) const {
      return number - first < entries.size() ? entries[number - first] : Entry{};
    }
    [[nodiscard]] std::size_t bytes() const {
      return sizeof(Page) + entries.capacity() * sizeof(Entry);
    }
    // Makes it have entries [from, to).
    void reach(std::size_t from, std::size_t to);
  };
  struct Place {
    std::unique_ptr<Page> page;
    std::byte* memory = nullptr;  // without a page: of its first entry; nullptr: none is bound
    RegionId region = 0;
  };

  [[nodiscard]] std::uint64_t offset_of(std::uint64_t at) const {
    return at & ((std::uint64_t{1} << bufsize_) - 1);
  }
  // Beyond the buffer that holds `at`: whole buffers of the same run, until `length` bytes are
  // reached; whether those up to `end`, counted from the beginning of `bufx`, are all bound.
  [[nodiscard]] std::uint64_t run_on(std::uint64_t at, std::uint64_t length,
                                     const Entry& first) const;
  [[nodiscard]] bool covers_on(std::uint32_t bufx, std::uint64_t end) const;

  // What one page has to do with entries [from, to).
  struct Part {
    std::size_t place;     // from the first of the range on
    std::size_t from, to;  // in the page
    [[nodiscard]] bool whole() const { return to - from == kPageEntries; }
  };
  static Part part_of(std::size_t from, std::size_t to);
  [[nodiscard]] const Place* place_at(std::size_t number) const {
    auto const at = number - first_place_;
    return at < places_.size() ? &places_[at] : nullptr;
  }
  Place& made_place(std::size_t number) { return places_[number - first_place_]; }
  int check(std::uint32_t first, std::span<const MutableBytes> pieces, std::size_t& wanted) const;
  [[nodiscard]] bool is_free(const Part& part) const;
  void make_places(std::size_t from, std::size_t to);
  void make_page(const Part& part);
  void fill(const Part& part, std::byte* memory, RegionId region);
  std::size_t clear(const Part& part, RegionId region);

  std::uint32_t base_ = 0, count_ = 0;
  unsigned bufsize_ = 14;
  std::size_t first_place_ = 0;  // number of the page that places_[0] is of
  std::vector<Place> places_;    // from the first page with anything bound to the last
  // One region of one piece, which most ranges have and no more: it stands in the table as well.
  struct Main {
    std::uint32_t first = 0, count = 0;
    std::byte* memory = nullptr;
    RegionId region = 0;
  } main_;
  std::size_t page_bytes_ = 0;
  std::uint64_t bound_ = 0;
};

}  // namespace stp
