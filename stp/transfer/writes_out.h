// SPDX-License-Identifier: BSD-3-Clause
// Transfers that this side sends: writes, and answers to reads of the peer. Owns their states, and
// the numbers of this side's messages. Each Transfer completes once: when the peer has confirmed
// all of it, has refused or ended it, or has shown no progress for too long.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>

#include "stp/transfer/clock.h"
#include "stp/transfer/endings.h"
#include "stp/transfer/ids.h"
#include "stp/transfer/repeats.h"
#include "stp/transfer/sequencer.h"
#include "stp/transfer/states.h"
#include "stp/wire/missing_stus.h"

namespace stp {

class WritesOut {
 public:
  WritesOut(const SequencerConfig& config, const Clock& clock, Ids& ids, Outbox& outbox,
            Completions& completions, Repeats& repeats, Endings& endings)
      : config_(config),
        clock_(clock),
        ids_(ids),
        outbox_(outbox),
        completions_(completions),
        repeats_(repeats),
        endings_(endings),
        cts_wanted_(config.cts_window) {}

  void write(Context context, Address source, std::uint64_t length, const WriteOptions& options);
  // Answers the read that the peer calls `i_id`.
  void serve(std::uint32_t i_id, Context context, Address source, std::uint64_t length);
  // From now on: how many CTS are asked for at once, and whether the receiver is to tell of each
  // Block.
  void want(std::uint32_t cts, bool told_of_all) {
    cts_wanted_ = cts;
    told_of_all_ = told_of_all;
  }
  // Takes the number of the next message.
  std::uint32_t take_message() { return next_msn_++; }
  // Ends the Transfer of `context` at both sides. False: there is none.
  bool cancel(Context context);

  // --- headers of the peer
  void on_answer(const wire::RequestAnswer& ra, bool refused);
  // `missing`: what a repeated CTS says is missing of its Block; nullptr: all from F_Offset on.
  void on_grant(const wire::ClearToSend& cts, const wire::MissingStus* missing = nullptr);
  // RSR. False: it is about something else.
  bool on_state(const wire::RequestStateResponse& rsr, bool refused);
  // Whether the peer calls the Transfer `i_id` of this side `r_id`.
  [[nodiscard]] bool knows(std::uint32_t i_id, std::uint32_t r_id) const;
  // False: it ends something else.
  bool on_end(const wire::End& end);

  void expire();
  // The connection has ended: all complete with `error`.
  void fail(int error);
  [[nodiscard]] std::size_t outstanding() const { return transfers_.size(); }

 private:
  struct Outbound {
    Machine<kOutboundTransitions> state;
    Completion::Kind kind = Completion::Kind::kWrite;
    Context context = 0;
    Address source;
    std::uint64_t length = 0;
    WriteOptions options;
    std::uint32_t i_id = 0, answers = wire::kNoId;  // our id; the RTR that this answers
    std::uint32_t msn = 0;  // Message Sequence Number: writes take receives in this order
    std::uint32_t r_id = wire::kNoId;
    unsigned blocksize = 0;
    std::uint32_t b_seq = 0;
    std::uint32_t granted = 0;   // one past the highest Block granted so far
    std::uint64_t part_end = 0;  // what has been granted of that Block ends here
    std::uint64_t repeated = 0;  // the number of the last request that sends something again
    Awaited awaited{Alarm::kWritesOut};  // RTS, later RS
    Time begun = 0;
    Time stalled_since = 0;

    [[nodiscard]] std::uint64_t block_count() const {
      return length == 0 ? 1 : (length + (std::uint64_t{1} << blocksize) - 1) >> blocksize;
    }
    // Whether a CTS that names STUs asks for more of the Block granted last.
    // protocol: 13.19
    [[nodiscard]] bool is_next_part(const wire::ClearToSend& cts) const {
      const auto at = (std::uint64_t{cts.b_num} << blocksize) + cts.f_offset;
      return cts.b_num + 1 == granted && cts.f_offset >= part_end && at < length;
    }
    // Whether the receiver is to tell when the Block has arrived, though it was sent once only. The
    // next CTS tells of those before.
    // protocol: 9.42
    [[nodiscard]] bool asks_about(std::uint32_t b_num) const {
      constexpr std::uint32_t kLastBlocks = 4;
      return b_num + std::uint64_t{kLastBlocks} >= block_count();
    }
  };

  // A Block that a CTS permits, at linear address `to` of the peer.
  struct BlockToSend {
    const wire::ClearToSend& cts;
    std::uint64_t to = 0, length = 0;
    std::uint32_t sync = 0;  // of this sending
    bool repeated = false;
    bool asks = false;  // its Last asks for the state
  };

  // For the RTS and for the state of the data sent.
  [[nodiscard]] Time patience(const Outbound& out) const {
    return std::max(clock_.user_patience(), out.options.patience);
  }
  // `together`: the progress of any of them, if they wait for each other.
  // protocol: 10.17
  [[nodiscard]] bool is_over(const Outbound& out, Time together) const {
    const auto now = clock_.now();
    return out.state == OutboundState::kSending
               ? now - std::max(out.stalled_since, together) >= clock_.progress_patience()
               : now - out.begun >= kSeenPatience;
  }
  [[nodiscard]] bool may_add(const Outbound& out, bool repeated) const;
  void begin(Outbound& out);
  void send_offer(Outbound& out);
  void send_block(Outbound& out, const wire::ClearToSend& cts, bool repeated,
                  const wire::MissingStus* missing);
  std::uint64_t send_missing(Outbound& out, const BlockToSend& block, std::uint64_t begin,
                             const wire::MissingStus& missing);
  bool send_part(Outbound& out, const BlockToSend& block, std::uint64_t begin, std::uint64_t end);
  void complete(const Outbound& out, int status);
  // Ends it at the peer; it completes with `status` when the peer has confirmed.
  void end(const Outbound& out, int status);
  Outbound& create(Completion::Kind kind, Context context, Address source, std::uint64_t length);

  const SequencerConfig& config_;
  const Clock& clock_;
  Ids& ids_;
  Outbox& outbox_;
  Completions& completions_;
  Repeats& repeats_;
  Endings& endings_;
  std::map<std::uint32_t, Outbound> transfers_;  // by our I_id
  std::uint32_t next_msn_ = 1;
  std::uint32_t cts_wanted_;
  bool told_of_all_ = false;
  Time progress_ = 0;  // the last of any of them
};

}  // namespace stp
