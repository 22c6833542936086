// SPDX-License-Identifier: BSD-3-Clause
// Builds bursts to send: the Node's own answers first, then users' requests, connection by
// connection. Owners take turns, and one call does a bounded amount of work.
#pragma once

#include "stp/node/connection/recovery.h"
#include "stp/node/connection/vc_endings.h"
#include "stp/node/memory/mapped_memory.h"
#include "stp/node/peer_gets.h"
#include "stp/node/send_bounds.h"

namespace stp {

// Checks users' requests as if they came from a stranger: through stpd they do. A request that
// passes may be sent, and what it grants the peer is recorded.
class RequestChecks {
 public:
  // They must outlive this.
  struct Uses {
    MappedMemory& memory;
    Recovery& recovery;
    Pacing& pacing;
    Tidying& tidying;
  };
  explicit RequestChecks(const Uses& uses) : use_(uses) {}

  // 0: may be sent; otherwise a negative errno. Records grants and the number of a Block's first
  // STU. `part`: of a CTS, as in Inbound::grant().
  int check(Vc& vc, const SendEntry& entry, Time now, std::uint32_t part = 0);
  // The cost of a request beside its frames, in units of one short request.
  [[nodiscard]] static std::size_t work_of(const Vc& vc, const SendEntry& entry);

 private:
  static int address(Vc& vc, const SendEntry& entry);
  int check_control(Vc& vc, const SendEntry& entry, Time now, std::uint32_t part);
  int check_get(Vc& vc, const wire::Header& header);
  static int check_data(Vc& vc, const SendEntry& entry);
  [[nodiscard]] static std::uint32_t first_stu(const Vc& vc, const wire::Header& header);
  [[nodiscard]] int check_grant(const Vc& vc, const wire::Header& header) const;

  Uses use_;
};

class FrameSender {
 public:
  // They must outlive this.
  struct Uses {
    Common& common;
    PortTable& vcs;
    Turns& turns;
    WakeUps& wake_ups;
    NodeDepartures& departures;
    Pacing& pacing;
    SendBounds& bounds;
    PortRates& rates;
    MappedMemory& memory;
    StateExchange& states;
    RequestChecks& checks;
    PeerGets& gets;
    VcEndings& endings;
  };
  explicit FrameSender(const Uses& uses) : use_(uses) {}

  // As Node::transmit() and Node::transmitted().
  std::size_t transmit(std::span<TxFrame> frames, Time now) {
    use_.common.seen = now;
    use_.departures.start_clocks(use_.vcs, now);
    if (!use_.common.answers.empty() || !use_.turns.empty() || !use_.pacing.empty() ||
        use_.pacing.may_go())
      return send(frames, now);
    use_.common.unfinished = false;
    use_.departures.have_left();
    return 0;
  }
  void transmitted(const TxToken& token);
  void transmitted(const TxToken& token, std::uint32_t frames);

 private:
  void let_go(const TxToken& token, std::uint32_t frames);
  std::size_t send(std::span<TxFrame> frames, Time now);
  std::size_t send_answers(std::span<TxFrame> frames);
  std::size_t send_held(std::span<TxFrame> frames, Time now);
  bool send_held(const Pacing::Grant& grant, TxFrame& frame, Time now);
  static void name_part(SendEntry& entry, const InboundBlock& block, std::uint64_t first,
                        const Tiles& tiles);
  std::size_t send_next(std::span<TxFrame> frames, std::size_t& work, Time now);
  std::size_t send_from(Vc& vc, std::span<TxFrame> frames, std::size_t& work, Time now);
  void tell_presence(std::span<TxFrame> frames, Presence presence, bool to_anybody, Time now) const;
  std::size_t send_to_doubtful(Vc& vc, std::span<TxFrame> frames, std::size_t& work, Time now);
  std::size_t send_requests(Vc& vc, std::span<TxFrame> frames, std::size_t& work, Time now);
  std::size_t send_along(Vc& vc, Path& path, std::span<TxFrame> frames, std::size_t& work,
                         Time now);
  std::size_t send_from_port(Vc& vc, std::span<TxFrame> frames, std::size_t& work, Time now);
  bool take_request(Vc& vc, std::size_t& work, Time now);
  void count_refused(Vc& vc, int error);
  void reject_region(Vc& vc);
  void no_request(Vc& vc, Time now);
  bool refuse_request(Vc& vc, int error, Time now);
  void build_control(Vc& vc, TxFrame& frame);
  void emit_control(Vc& vc, const SendEntry& entry, const wire::Header& h, TxFrame& frame);
  void attach(Vc& vc, TxFrame& frame, RegionId region_id);
  void build_stu(Vc& vc, TxFrame& frame);
  std::size_t build_alike(Vc& vc, const TxFrame& first, std::span<TxFrame> frames);
  static wire::Header stu_header(Vc& vc, std::uint64_t at, bool last);
  static bool gather(const BufxRange& source, std::uint64_t from, std::size_t length,
                     std::byte* to);
  void finish_request(Vc& vc);
  void tell_room(Vc& vc);
  void pad(TxFrame& frame, std::size_t length);
  void emit(TxFrame& frame, const MacAddr& dst, const wire::Header& header, bool checksum,
            Bytes payload, Bytes append, bool attach);
  // frame_sender.cpp
  bool send_whole_block(Vc& vc, TxFrame& frame, Time now);

  Uses use_;
};

}  // namespace stp
