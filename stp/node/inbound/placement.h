// SPDX-License-Identifier: BSD-3-Clause
// Places STUs: makes all checks, then one copy into the user's memory, then the bookkeeping of the
// Block. Nothing is written where the peer has no grant (docs/protocol.md, sections 7 and 8).
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "stp/node/connection/recovery.h"
#include "stp/node/memory/mapped_memory.h"

namespace stp {

// Copies into memory that another thread may poll.

// Stores each byte once and in ascending order: a reader that sees one of the last 8 bytes with an
// acquire load sees all bytes stored before it. Stores aligned words whole, the last ones with
// release. In the middle of long copies, lines of 64 bytes keep the order on x86-64 only. If `to`
// lies inside [from, from + length) this is only a memmove.
// protocol: 8.14
void copy_any_in_order(std::byte* to, const std::byte* from, std::size_t length);

inline void copy_in_order(std::byte* to, const std::byte* from, std::size_t length) {
  using Word [[gnu::may_alias]] = std::uint64_t;
  const bool word =
      length == sizeof(Word) && reinterpret_cast<std::uintptr_t>(to) % sizeof(Word) == 0;
  if (!word) return copy_any_in_order(to, from, length);
  std::uint64_t value;
  std::memcpy(&value, from, sizeof value);
  __atomic_store_n(reinterpret_cast<Word*>(to), value, __ATOMIC_RELEASE);
}

class Placement {
 public:
  // They must outlive this.
  struct Uses {
    Common& common;
    MappedMemory& memory;
    Pacing& pacing;
    StateExchange& states;
    Recovery& recovery;
    WakeUps& wake_ups;
  };
  explicit Placement(const Uses& uses) : use_(uses) {}

  // DATA of the peer of `vc`, which is open.
  void on_data(Vc& vc, const wire::Frame& frame, Time now);
  // DATA for the Port of a connectionless endpoint.
  void on_unscheduled(Vc& vc, const wire::Frame& frame, Time now);

 private:
  static DropReason find_block(Vc& vc, const wire::Header& header, std::size_t length,
                               InboundBlock*& out);
  void place_whole(Vc& vc, const wire::Frame& frame, InboundTransfer& region, std::byte* memory);
  void place_part(Vc& vc, const wire::Frame& frame, DropReason why, std::byte* memory, Time now);
  static bool is_granted(const InboundBlock& block);
  void heed_mark(Vc& vc, Time now);
  static void count_part(Vc& vc, const InboundBlock& block);
  void ask_for_rest(Vc& vc, InboundBlock& block, Time now);
  bool place(Vc& vc, const wire::Frame& frame, InboundBlock& block, std::byte* memory);
  void count_stu(Vc& vc, std::size_t length);
  void write_end(const Vc& vc, std::uint16_t mx, const HeldEnd& end);
  void place_end(const Vc& vc, InboundBlock& block);
  void place_held(const Vc& vc, InboundTransfer& region, std::uint32_t first);
  static bool has_room_for_end(const Vc& vc, InboundTransfer& region, const wire::Header& header,
                               std::size_t length, bool holds);
  static std::size_t hold_end(const Vc& vc, InboundTransfer& region, const wire::Frame& frame,
                              bool holds);
  void deliver_block(Vc& vc, const MacAddr& from, const InboundBlock& block);

  Uses use_;
};

}  // namespace stp
