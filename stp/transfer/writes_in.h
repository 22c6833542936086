// SPDX-License-Identifier: BSD-3-Clause
// What this side receives: the peer's offers, their Transfers, and the estimate of loss.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "stp/base/assert.h"
#include "stp/base/ring_queue.h"
#include "stp/transfer/endings.h"
#include "stp/transfer/ids.h"
#include "stp/transfer/sequencer.h"
#include "stp/transfer/states.h"

namespace stp {

// Estimates the loss of a connection and the Block size that fits it: a lost STU costs the rest of
// its Block, on average half a Block (docs/protocol.md, section 10).
// protocol: 10.10
class LossEstimate {
 public:
  // `stus` more STUs have arrived. `repeats`: CTS repeated since the beginning.
  void observe(std::uint64_t stus, std::uint32_t repeats) {
    stus_ += stus;
    if (repeats == last_repeats_ && stus_ < kSample) return;
    const auto lost = static_cast<double>(repeats - last_repeats_);
    const auto seen = static_cast<double>(stus_) + lost;
    if (seen == 0) return;
    // A mean at first, then a moving mean; a small sample changes it in proportion.
    STP_ASSERT(lost >= 0 && lost <= seen, "no more is lost than was sent");
    total_ += seen;
    const auto weight = std::max(std::min(seen / kSample, 1.0) / 4, seen / total_);
    rate_ += weight * (lost / seen - rate_);
    stus_ = 0;
    last_repeats_ = repeats;
  }
  [[nodiscard]] double rate() const { return rate_; }

  // log2 of the STUs per Block for which its CTS and repeats cost least. Small while nothing is
  // known, because all Blocks of a Transfer are as long as its first. `alone`: what is missing is
  // repeated alone, so a Block may be so long that it lacks two STUs. `in_parts`: it is also
  // granted so.
  [[nodiscard]] unsigned block_stus_log2(unsigned stu_log2, bool alone = false,
                                         bool in_parts = false) const {
    const auto log2 = block_repeated_to_its_end(stu_log2);
    if (!alone || (total_ == 0 && !in_parts)) return log2;
    unsigned longer = 0;
    while (longer < kLargestAlone && rate_ * static_cast<double>(2U << longer) <= kMissing)
      ++longer;
    return std::max(log2, longer);
  }

 private:
  [[nodiscard]] unsigned block_repeated_to_its_end(unsigned stu_log2) const {
    if (total_ == 0)
      return std::max(kUnknownStus, kUnknownBytes - std::min(stu_log2, kUnknownBytes));
    // Twice as many STUs save half of the CTS, and cost as many more repeats as there were.
    const auto saves_more = [this](unsigned log2) {
      const auto stus = static_cast<double>(1U << log2);
      return kCostOfBlock / (2 * stus) > rate_ * stus / 2;
    };
    unsigned log2 = 0;
    while (log2 < kLargest && saves_more(log2)) ++log2;
    return log2;
  }

  static constexpr std::uint64_t kSample = 256;
  static constexpr double kCostOfBlock = 0.5;   // of its CTS and the work on it, in STUs
  static constexpr double kMissing = 2;         // STUs of a Block, on average
  static constexpr unsigned kLargestAlone = 8;  // what one CTS can tell of
  static constexpr unsigned kLargest = 15;
  static constexpr unsigned kUnknownStus = 3, kUnknownBytes = 16;  // exponents
  std::uint64_t stus_ = 0;
  std::uint32_t last_repeats_ = 0;
  double rate_ = 0, total_ = 0;
};

// An RTS of the peer.
struct OfferedWrite {
  std::uint32_t i_id = 0, r_id = 0;  // the peer's id, ours
  std::uint32_t msn = 0;             // 0: the peer does not number it
  std::uint64_t length = 0;
  unsigned max_block = 0;
  std::uint32_t cts_wanted = 0;
  bool repeats_missing = false;  // the peer repeats no more than is missing
  bool sends_parts = false;      // it sends a Block in the parts that are asked for
};

// Transfers that this side receives, from the time that their memory is known: writes that have
// their receive, and answers to reads. Owns what is granted of each and what has arrived, and the
// estimate of loss from which Block sizes are chosen. Each Transfer completes once, and never while
// the peer may still write into its memory.
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
  // CTS that the Node has repeated so far, the exponent of the Block that suits the path from the
  // peer (0: any), and the steps that Blocks which are granted in parts have made so far. Only on a
  // path are there any, and those that share one wait for each other.
  // protocol: 10.17
  void observe_path(std::uint32_t cts_repeated, unsigned path_block, std::uint32_t steps) {
    cts_repeated_ = cts_repeated;
    path_block_ = path_block;
    if (std::exchange(steps_, steps) != steps) progress_ = clock_.now();
  }
  // The Blocks that are granted at once. Those that suit a path are short, so it is more of them,
  // and the Node holds back those for which the path has no room.
  // protocol: 13.13
  [[nodiscard]] std::uint32_t cts_window() const {
    constexpr std::uint32_t kManyBlocks = 64, kManyLongBlocks = 128;
    constexpr unsigned kLong = 14;  // exponent; paths of long STUs are fast
    if (path_block_ == 0) return config_.cts_window;
    return std::max(config_.cts_window, path_block_ < kLong ? kManyBlocks : kManyLongBlocks);
  }
  // Ends the Transfer of `context` at both sides, unless the rest of it arrives before the END has
  // left. False: there is none.
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
  // The Node has taken all requests before that number, and on_block() has seen all that arrived
  // until then: completes the Transfers whose END has left.
  void ends_left(std::uint64_t before) {
    while (!ending_.empty() && ending_.front().number < before) end_has_left();
  }
  // The connection has ended: all complete with `error`.
  void fail(int error);
  [[nodiscard]] std::size_t outstanding() const { return transfers_.size(); }
  // Some wait until their END has left.
  [[nodiscard]] bool waits_for_node() const { return !ending_.empty(); }

 private:
  struct Incoming {
    Machine<kInboundTransitions> state;
    Completion::Kind kind = Completion::Kind::kReceive;
    Context context = 0;
    Landing landing;
    std::uint64_t length = 0;
    std::uint32_t i_id = 0, r_id = 0;  // the peer's id, ours
    unsigned blocksize = 0;
    bool in_parts = false;  // the Node may grant its Blocks so
    std::uint32_t window = 1;
    std::uint32_t next = 0;        // the next Block to grant
    std::set<std::uint32_t> open;  // granted, not complete
    std::uint32_t tag = 0;
    std::uint32_t msn = 0;
    Time progress = 0;
    int error = 0;  // why it is ending

    [[nodiscard]] std::uint64_t block_count() const {
      return length == 0 ? 1 : (length + (std::uint64_t{1} << blocksize) - 1) >> blocksize;
    }
  };

  // An END on its way to the Node.
  struct Ending {
    std::uint64_t number = 0;  // of the request
    std::uint32_t r_id = 0;
  };

  void grant(Incoming& in);
  void give_up(Incoming& in, int error);
  void end_has_left();
  void send_grant(const Incoming& in, std::uint32_t b_num);
  // `voided`: its grants are void already.
  void finish(Incoming& in, int status, bool voided = false);
  [[nodiscard]] Address place_of(const Incoming& in, std::uint32_t b_num) const;
  [[nodiscard]] unsigned choose_blocksize(const OfferedWrite& offer) const;
  // Whether Blocks come in parts: those that are so long that they would wait for themselves, and
  // those of a Transfer that is so long that the path may become known while it comes.
  // protocol: 13.19
  [[nodiscard]] bool in_parts(const OfferedWrite& offer) const {
    constexpr unsigned kLongLog2 = 17;
    constexpr std::uint64_t kManyBlocks = 16;  // two windows
    const bool able = path_block_ != 0 && offer.repeats_missing && offer.sends_parts;
    const bool waits = path_block_ >= kLongLog2 && offer.length >> path_block_ >= kManyBlocks;
    return able && (waits || is_very_long(offer));
  }
  // Blocks that suit the path now may be too short for it.
  [[nodiscard]] bool is_very_long(const OfferedWrite& offer) const {
    constexpr std::uint64_t kManyWindows = 4;
    return offer.length >> path_block_ >= kManyWindows * cts_window();
  }

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
  std::uint32_t steps_ = 0;
  Time progress_ = 0;         // the last of any Transfer
  RingQueue<Ending> ending_;  // in the order of their ENDs
};

// Writes of the peer that have no memory yet, and receives that have no write: owns both, and the
// order of the peer's messages. Writes take receives in the order of their messages, whatever the
// order of their RTS. The number of waiting writes is bounded; more are refused.
class Offers {
 public:
  Offers(Outbox& outbox, Completions& completions, Finished& finished, WritesIn& writes)
      : outbox_(outbox), completions_(completions), finished_(finished), writes_(writes) {}

  // --- receives
  void post(Context context, const Landing& landing);
  // Takes a posted receive back. False: there is none.
  bool cancel(Context context);

  // --- headers of the peer
  void add(const OfferedWrite& offer);
  // Tells the peer again that its RTS `i_id` waits. False: it does not.
  bool repeats(std::uint32_t i_id);
  // The peer takes its RTS back. False: none waits.
  bool take_back(std::uint32_t i_id);
  // The peer will not send message `msn`: no longer waits for its RTS.
  void skip(std::uint32_t msn);

  // --- the order of messages
  [[nodiscard]] std::uint32_t next_message() const { return order_.next(); }
  // The next message has come another way than as a write.
  void pass_message();
  // The next write in order, if no receive is posted for it.
  [[nodiscard]] std::optional<Offer> waiting();
  // Refuses the write of waiting().
  void refuse_waiting();
  // The first write after the next message that waits for a receive.
  [[nodiscard]] std::optional<Offer> waiting_ahead();
  // Starts the write of waiting_ahead(). Its message then needs no turn, so that the order of the
  // others does not change.
  void receive_ahead(Context context, const Landing& landing);

  [[nodiscard]] bool empty() const { return waiting_.empty(); }
  // The connection has ended: posted receives complete with `error`.
  void fail(int error);
  // The number of posted receives.
  [[nodiscard]] std::size_t outstanding() const { return receives_.size(); }

 private:
  struct Receive {
    Context context = 0;
    Landing landing;
  };

  void match();
  void drop_past();
  OfferedWrite take_first();
  [[nodiscard]] RingQueue<OfferedWrite>::iterator first_ahead();

  RingQueue<OfferedWrite> waiting_;  // by message; without a number, in order of arrival
  MessageOrder order_;
  RingQueue<Receive> receives_;  // in order of posting
  Outbox& outbox_;
  Completions& completions_;
  Finished& finished_;
  WritesIn& writes_;
};

// What the peer writes into memory that the user has posted.
struct Landings {
  Landings(const SequencerConfig& config, Clock& clock, Outbox& outbox, Completions& completions,
           Endings& endings)
      : writes(config, clock, outbox, completions, endings, endings.finished()),
        offers(outbox, completions, endings.finished(), writes) {}

  // Whether the RTS `i_id` came before. Then it is answered again.
  bool repeats(std::uint32_t i_id) { return writes.repeats(i_id) || offers.repeats(i_id); }
  // Takes memory back. False: it is not posted.
  bool cancel(Context context) { return writes.cancel(context) || offers.cancel(context); }
  // The connection has ended: all completes with `error`.
  void fail(int error) {
    writes.fail(error);
    offers.fail(error);
  }
  [[nodiscard]] std::size_t outstanding() const {
    return writes.outstanding() + offers.outstanding();
  }

  WritesIn writes;
  Offers offers;
};

}  // namespace stp
