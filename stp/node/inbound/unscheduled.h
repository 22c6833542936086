// SPDX-License-Identifier: BSD-3-Clause
// The Blocks that arrive at a connectionless endpoint without a grant. Their state is kept by name
// in tables of fixed size: no number of senders makes a Node keep more, or allocate for a frame
// (docs/protocol.md, section 11).
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
  // A Block without an STU for this long gives its place to another that needs it.
  static constexpr Time kPatience = kSecond;
  // The expected lifetime of duplicates. After that a name may mean another Block.
  static constexpr Time kMemory = 4 * kSecond;

  // `purse` pays for the maps of large Blocks.
  UnscheduledBlocks(unsigned bufsize, unsigned stu_log2, std::shared_ptr<WindowPurse> purse = {});

  // The memory where a Block may land, in Bufx entries: its Mx.
  struct Bounds {
    std::uint32_t first, count;
  };
  // Finds the Block of an STU, or begins a new one, or returns the reason to drop the STU. `out`
  // stays valid until the Block is complete or find() is called again.
  DropReason find(const BlockName& name, const wire::DataView& data, std::size_t length,
                  const Bounds& bounds, Time now, InboundBlock*& out);
  // An STU of `block` has been placed.
  static void progress(InboundBlock& block, Time now) { block.progress = now; }
  void complete(const BlockName& name, Time now);
  // Bytes of the tables, without the extra maps of large Blocks.
  static std::size_t footprint() {
    return kMaxOpen * sizeof(Open) + kMaxRemembered * sizeof(Remembered);
  }
  // The number of Blocks given up.
  [[nodiscard]] std::uint64_t abandoned() const { return abandoned_; }

 private:
  // Each table is a row of sets; a name can stand in a few places of one set.
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
