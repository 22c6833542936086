// SPDX-License-Identifier: BSD-3-Clause
// Transfers that this side receives, from the time that their memory is known: writes that have
// their receive, and answers to reads. Owns what is granted of each and what has arrived, and the
// estimate of loss from which Block sizes are chosen. Each Transfer completes once, and never while
// the peer may still write into its memory.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <set>

#include "stp/transfer/completions.h"
#include "stp/transfer/endings.h"
#include "stp/transfer/finished.h"
#include "stp/transfer/loss_estimate.h"
#include "stp/transfer/sequencer.h"
#include "stp/transfer/states.h"

namespace stp {

// An RTS of the peer.
struct OfferedWrite {
  std::uint32_t i_id = 0, r_id = 0;  // the peer's id, ours
  std::uint32_t msn = 0;             // 0: the peer does not number it
  std::uint64_t length = 0;
  unsigned max_block = 0;
  std::uint32_t cts_wanted = 0;
};

class WritesIn {
 public:
  WritesIn(const SequencerConfig& config, Clock& clock, Outbox& outbox, Completions& completions,
           Endings& endings, Finished& finished)
      : config_(config),
        clock_(clock),
        outbox_(outbox),
        completions_(completions),
        endings_(endings),
        finished_(finished) {}

  // Grants the first Blocks of a Transfer into `landing`, which is long enough.
  void begin(const OfferedWrite& offer, Completion::Kind kind, Context context,
             const Landing& landing);
  // CTS that the Node has repeated so far, and the exponent of the Block that suits the path from
  // the peer (0: any).
  void observe_loss(std::uint32_t cts_repeated, unsigned path_block) {
    cts_repeated_ = cts_repeated;
    path_block_ = path_block;
  }
  // The Blocks that are granted at once. Those that suit a path are short, so it is more of them,
  // and the Node holds back those for which the path has no room.
  // protocol: 13.13
  [[nodiscard]] std::uint32_t cts_window() const {
    constexpr std::uint32_t kManyBlocks = 64;
    return path_block_ == 0 ? config_.cts_window : std::max(config_.cts_window, kManyBlocks);
  }
  // Ends the Transfer of `context` at both sides. False: there is none.
  bool cancel(Context context);

  // --- headers of the peer
  // Tells the peer again that its RTS `i_id` is known. False: it is not.
  bool repeats(std::uint32_t i_id);
  // The header of a complete Block. False: it belongs to something else.
  bool on_block(const ReceivedEntry& entry);
  // Our id of what the peer calls `i_id`.
  [[nodiscard]] std::optional<std::uint32_t> find(std::uint32_t i_id) const;
  [[nodiscard]] bool knows(std::uint32_t r_id, std::uint32_t i_id) const;
  // False: it ends something else.
  bool on_end(const wire::End& end);

  void expire();
  // The connection has ended: all complete with `error`.
  void fail(int error);
  [[nodiscard]] std::size_t outstanding() const { return transfers_.size(); }

 private:
  struct Incoming {
    Machine<kInboundTransitions> state;
    Completion::Kind kind = Completion::Kind::kReceive;
    Context context = 0;
    Landing landing;
    std::uint64_t length = 0;
    std::uint32_t i_id = 0, r_id = 0;  // the peer's id, ours
    unsigned blocksize = 0;
    std::uint32_t window = 1;
    std::uint32_t next = 0;        // the next Block to grant
    std::set<std::uint32_t> open;  // granted, not complete
    std::uint32_t tag = 0;
    std::uint32_t msn = 0;
    Time progress = 0;

    [[nodiscard]] std::uint64_t block_count() const {
      return length == 0 ? 1 : (length + (std::uint64_t{1} << blocksize) - 1) >> blocksize;
    }
  };

  void grant(Incoming& in);
  void send_grant(const Incoming& in, std::uint32_t b_num);
  void finish(Incoming& in, int status);
  [[nodiscard]] Address place_of(const Incoming& in, std::uint32_t b_num) const;
  [[nodiscard]] unsigned choose_blocksize(std::uint64_t length, unsigned max_block) const;

  const SequencerConfig& config_;
  Clock& clock_;
  Outbox& outbox_;
  Completions& completions_;
  Endings& endings_;
  Finished& finished_;
  std::map<std::uint32_t, Incoming> transfers_;  // by our R_id
  LossEstimate loss_;
  std::uint32_t cts_repeated_ = 0;
  unsigned path_block_ = 0;
};

}  // namespace stp
