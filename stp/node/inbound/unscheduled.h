// SPDX-License-Identifier: BSD-3-Clause
// Blocks that nobody granted: those that arrive at a connectionless endpoint. Their state is kept
// by name in tables of fixed size, so that no number of senders makes a Node keep more, nor
// allocate for a frame (docs/protocol.md, section 11).
#pragma once

#include <vector>

#include "stp/node/inbound/inbound.h"

namespace stp {

struct BlockName {
  std::uint64_t source = 0;  // MAC address and S_Port
  std::uint64_t block = 0;   // D_id and B_num

  static BlockName of(const MacAddr& from, const wire::DataView& data) {
    return {from.to_u64() << 16 | data.s_port(), std::uint64_t{data.r_id()} << 32 | data.b_num()};
  }
  friend bool operator==(const BlockName&, const BlockName&) = default;
};

// protocol: 11.3
class UnscheduledBlocks {
 public:
  static constexpr std::size_t kMaxOpen = 512, kMaxRemembered = 4096;
  // Without an STU for this long, a Block gives its place to another that needs it.
  static constexpr Time kPatience = kSecond;
  // As long as a duplicate is expected to live: from then on a name may mean another Block.
  static constexpr Time kMemory = 4 * kSecond;

  // `purse` pays for the maps of large Blocks.
  UnscheduledBlocks(unsigned bufsize, unsigned stu_log2, std::shared_ptr<WindowPurse> purse = {});

  // The memory that a Block may lie in, in Bufx entries: its Mx's.
  struct Bounds {
    std::uint32_t first, count;
  };
  // The Block that an STU belongs to, begun if it is new; or why the STU must be dropped. What
  // `out` refers to lives until it is complete, or until the next call.
  DropReason find(const BlockName& name, const wire::DataView& data, std::size_t length,
                  const Bounds& bounds, Time now, InboundBlock*& out);
  // An STU of `block` has been placed.
  static void progress(InboundBlock& block, Time now) { block.progress = now; }
  void complete(const BlockName& name, Time now);
  // Bytes of the tables, without what the Blocks of large Mx need beyond.
  static std::size_t footprint() {
    return kMaxOpen * sizeof(Open) + kMaxRemembered * sizeof(Remembered);
  }
  // Blocks that were given up so far.
  [[nodiscard]] std::uint64_t abandoned() const { return abandoned_; }

 private:
  // Each name has a few places where it can stand; a table is a row of such sets.
  static constexpr std::size_t kOpenWays = 8, kRememberedWays = 4;
  struct Open {
    BlockName name;
    bool used = false;
    InboundBlock block;
  };
  struct Remembered {
    BlockName name;
    Time until = 0;
  };
  template <typename Place>
  static std::span<Place> places(std::vector<Place>& table, std::size_t ways,
                                 const BlockName& name);
  Open* find_open(const BlockName& name);
  Open* make_room(const BlockName& name, Time now);
  [[nodiscard]] bool is_complete(const BlockName& name, Time now);
  bool begin(Open& place, const BlockName& name, const wire::DataView& data, const Bounds& bounds,
             Time now);

  std::shared_ptr<WindowPurse> purse_;
  WindowBytes memory_;
  const Tiles tiles_;
  std::vector<Open> open_;
  std::vector<Remembered> remembered_;
  std::uint64_t abandoned_ = 0;
};

}  // namespace stp
