// SPDX-License-Identifier: BSD-3-Clause
// A Block that is coming in: where it may land, and which of its STUs have (section 8).
#pragma once

#include <cstdint>

#include "stp/base/linked_list.h"
#include "stp/drop_reason.h"
#include "stp/node/inbound/held_ends.h"
#include "stp/node/inbound/stu_map.h"
#include "stp/types.h"
#include "stp/wire/operation.h"
#include "stp/wire/tiling.h"

namespace stp {

struct InboundTransfer;

// How the memory of this side is cut: exponents of a buffer and of an STU that comes here.
struct Tiles {
  unsigned bufsize = 14, stu_log2 = 10;

  [[nodiscard]] std::uint64_t linear(std::uint32_t bufx, std::uint32_t offset) const {
    return Address{bufx, offset}.linear(bufsize);
  }
};

struct InboundBlock {
  InboundTransfer* transfer = nullptr;  // nullptr: the answer to a Get or FetchOp
  std::uint32_t b_num = 0;
  // Linear destination addresses. A scheduled Block begins where its CTS says; a Put Block begins
  // where its STU 0 lands, and any of its STUs tells which tile that is in.
  std::uint64_t start = 0, end = 0;  // what it may touch: [start, end)
  std::uint64_t first_tile = 0;      // tile of STU 0
  bool tile_known = false;
  std::uint64_t first_address = 0;  // of STU 0, once known
  StuMap stus{};
  std::uint64_t received = 0;  // bytes placed
  std::uint32_t r_id = 0;
  bool exact = false;     // ends where `end` says, and nowhere before
  bool anywhere = false;  // begins where its STU 0 lands, wherever in [start, end) that is
  bool value = false;     // a FetchOp's old value: big-endian on the wire
  // Recovery: what to send again, and when there was progress last.
  wire::ClearToSend cts;
  Time progress = 0;
  unsigned repeats = 0;      // CTS sent again since then
  std::uint64_t serial = 0;  // order of grants
  bool asked_for = false;    // what comes now answers a CTS that was sent again
  bool overtaken = false;    // when that was sent, others had overtaken it
  std::uint32_t sync = 0;    // of the last STU placed: which sending of the Block it was of
  // The header to deliver on completion, once the Last STU has come.
  wire::Header last;
  std::uint8_t append[wire::kAppendSize] = {};
  bool has_append = false;
  HeldEnd held;  // of the Last STU, while others are missing; a region's are in HeldEnds

  // Whether an STU of `length` bytes fits the tiling of this Block; kNone: it may be placed.
  [[nodiscard]] DropReason check_stu(const wire::DataView& data, std::size_t length,
                                     const Tiles& tiles) const;
  // Its first byte that has not come, counted from its start: F_Offset of a repeated CTS.
  [[nodiscard]] std::uint32_t first_missing(const Tiles& tiles) const;
};

struct InOrderOfGrant;
// One that a CTS granted: among those of its connection in the order of their serial numbers.
struct GrantedBlock : InboundBlock, Link<InOrderOfGrant> {};

}  // namespace stp
