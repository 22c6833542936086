// SPDX-License-Identifier: BSD-3-Clause
// Executes the Gets and FetchOps of peers without their users: each FetchOp once, and only where
// the peer has the permission. Refuses the others, so that no requester waits for long
// (docs/protocol.md, section 9).
#pragma once

#include "stp/node/connection/state_exchange.h"
#include "stp/node/memory/mapped_memory.h"

namespace stp {

class PeerGets {
 public:
  // They must outlive this.
  struct Uses {
    Common& common;
    MappedMemory& memory;
    StateExchange& states;
    Turns& turns;
  };
  explicit PeerGets(const Uses& uses) : use_(uses) {}

  // GET of the peer.
  void on_get(Vc& vc, const wire::Frame& frame);
  // Whether an answer of `vc`, which has `one_sided`, waits to be sent. Drops the oldest ones whose
  // memory the peer may no longer read.
  [[nodiscard]] bool has_answer(Vc& vc);
  // Starts sending the oldest answer of `vc`, which has one. False: no credit for it.
  bool send_next(Vc& vc, Time now);
  // Whether the answer that `vc` sends from a region may go on: the peer may still read there.
  [[nodiscard]] bool may_go_on(const Vc& vc) const;

 private:
  [[nodiscard]] DropReason check(const Vc& vc, std::uint32_t r_id, Address from,
                                 std::uint64_t length, std::uint8_t permission,
                                 std::byte*& memory) const;
  // Whether the Initiator has a buffer that long.
  static bool may_land(const Vc& vc, const wire::Get& get);
  [[nodiscard]] std::byte* operand(const Vc& vc, const wire::Get& get) const;
  [[nodiscard]] bool may_read(const Vc& vc, const SendEntry& answer, std::uint64_t done) const;
  void refuse(const Vc& vc, const wire::Header& header);
  void reply(Vc& vc, const wire::Header& header, Sending::Source source, std::uint64_t value);
  void on_fetch(Vc& vc, const wire::Frame& frame);

  Uses use_;
};

}  // namespace stp
