// SPDX-License-Identifier: BSD-3-Clause
// An incoming Block: where it may land, and which of its STUs have arrived (section 8).
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

// The tiling of this side's memory: log2 of the buffer size and of the size of incoming STUs.
struct Tiles {
  unsigned bufsize = 14, stu_log2 = 10;

  [[nodiscard]] std::uint64_t linear(std::uint32_t bufx, std::uint32_t offset) const {
    return Address{bufx, offset}.linear(bufsize);
  }
};

struct InboundBlock {
  InboundTransfer* transfer = nullptr;  // nullptr: an answer to a Get or FetchOp
  std::uint32_t b_num = 0;
  // Linear destination addresses. A scheduled Block begins where its CTS says. A Put Block begins
  // where its STU 0 lands; any of its STUs tells the tile of STU 0.
  std::uint64_t start = 0, end = 0;  // may write to [start, end)
  std::uint64_t first_tile = 0;      // tile of STU 0
  bool tile_known = false;
  std::uint64_t first_address = 0;  // address of STU 0, once known
  StuMap stus{};
  std::uint64_t received = 0;  // bytes placed
  std::uint32_t r_id = 0;
  bool exact = false;     // must end at `end`
  bool anywhere = false;  // may begin anywhere in [start, end)
  bool value = false;     // a FetchOp's old value: big-endian on the wire
  // Recovery: the CTS to repeat, and the time of the last progress.
  wire::ClearToSend cts;
  Time progress = 0;
  unsigned repeats = 0;      // repeats of the CTS since then
  std::uint64_t serial = 0;  // order of grants
  bool asked_for = false;    // the STUs arriving now answer a repeated CTS
  bool overtaken = false;    // later Blocks had overtaken it when the CTS was repeated
  // It may have been sent before its CTS was repeated: then it has passed no other Block.
  bool unsure = false;
  std::uint32_t sync = 0;  // of the last STU placed: identifies the sending
  // The header to deliver on completion; set by the Last STU.
  wire::Header last;
  std::uint8_t append[wire::kAppendSize] = {};
  bool has_append = false;
  HeldEnd held;  // end of the Last STU while others are missing; regions use HeldEnds

  // Checks that an STU of `length` bytes fits the tiling of this Block. kNone: it may be placed.
  [[nodiscard]] DropReason check_stu(const wire::DataView& data, std::size_t length,
                                     const Tiles& tiles) const;
  // The first byte that has not arrived, relative to the start: F_Offset of a repeated CTS.
  [[nodiscard]] std::uint32_t first_missing(const Tiles& tiles) const;
};

struct InOrderOfGrant;
// A Block granted by a CTS. Its connection lists them by serial number.
struct GrantedBlock : InboundBlock, Link<InOrderOfGrant> {};

}  // namespace stp
