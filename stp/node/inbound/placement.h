// SPDX-License-Identifier: BSD-3-Clause
// Places STUs: makes all checks, then one copy into the user's memory, then the bookkeeping of the
// Block. Nothing is written where the peer has no grant (docs/protocol.md, sections 7 and 8).
#pragma once

#include "stp/node/connection/recovery.h"
#include "stp/node/memory/mapped_memory.h"

namespace stp {

class Placement {
 public:
  // They must outlive this.
  struct Uses {
    Common& common;
    MappedMemory& memory;
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
