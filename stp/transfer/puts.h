// SPDX-License-Identifier: BSD-3-Clause
// What this side does to the memory of its peer: the regions that are open for it and the Puts into
// them, its Gets and FetchOps.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>

#include "stp/base/fetch_ahead.h"
#include "stp/base/ring_queue.h"
#include "stp/transfer/endings.h"
#include "stp/transfer/repeats.h"
#include "stp/transfer/sequencer.h"

namespace stp {

inline constexpr std::uint32_t kMaxPutWindow = 1024;  // Blocks into one region

// The regions of the peer that are open for this side, and the Puts into them: owns the Blocks
// until the peer has confirmed them, at most the region's window of them on their way. A put whose
// memory may still be read, or whose Blocks may still arrive, is not complete. If one fails, its
// region ends.
class alignas(kCacheLine) Puts {
 public:
  Puts(const SequencerConfig& config, Clock& clock, Outbox& outbox, Completions& completions,
       Repeats& repeats, Endings& endings)
      : config_(config),
        clock_(clock),
        outbox_(outbox),
        completions_(completions),
        repeats_(repeats),
        endings_(endings) {}

  // The peer has opened `region` by its answer to the RMR `i_id`.
  void open(std::uint32_t i_id, const RemoteRegion& region);
  // Brings the region used last into the caches, then its first Block.
  void fetch_ahead() const {
    if (recent_ != nullptr) fetch_lines(recent_, &recent_->at);
  }
  void fetch_blocks_ahead() const {
    if (recent_ != nullptr) fetch_line(recent_->blocks.first_place());
  }
  [[nodiscard]] bool is_open(std::uint32_t r_id) const { return streams_.contains(r_id); }
  // Ends a region of the peer. -EACCES: it is not open.
  int close(std::uint32_t r_id);

  int put(Context context, const RemoteRegion& region, std::uint64_t offset, Address source,
          std::uint64_t length, const PutOptions& options);
  // The peer's user has told that all Blocks of the region before `b_seq` have arrived.
  void arrived(std::uint32_t r_id, std::uint32_t b_seq);
  // Asks about all Puts that nobody has asked about.
  void confirm();
  // What has been sent of the put of `context` stays; the rest is never sent. False: there is none.
  bool cancel(Context context);

  // --- headers of the peer
  // False: it is about something else.
  bool on_state(const wire::RequestStateResponse& rsr, bool refused);
  // The owner takes its region back. False: it ends something else.
  bool on_end(const wire::End& end);

  void expire();
  // The connection has ended: all complete with `error`.
  void fail(int error);
  // The number of Blocks that are queued or on their way.
  [[nodiscard]] std::size_t outstanding() const;

 private:
  struct Block {
    Context context = 0;
    std::uint64_t total = 0;  // bytes of the whole put; set in its last Block
    bool last = false;        // the last Block of its put, or the last one sent of it
    Address source;
    std::uint64_t offset = 0;  // in the region
    std::uint32_t length = 0;
    std::uint16_t flags = 0;
    bool cancelled = false;  // the rest of its put is not sent
    bool quiet = false;      // nobody waits for its completion
    bool told = false;       // the peer's user tells of its arrival
  };
  // The RS that waits for its RSR: the Block it asks about, and its Sync.
  struct Question {
    std::uint32_t b_num = 0, sync = 0;
  };
  // The Puts into one region. Each needs the first two cache lines.
  struct alignas(kCacheLine) Stream {
    std::uint32_t r_id = wire::kNoId;
    std::uint16_t mx = 0;
    bool waits = false;  // counted in waiting_: a Block is on its way
    bool asks = false;   // `question` is open
    std::uint64_t length = 0;
    std::uint64_t start = 0;  // of the region, a linear address
    std::uint32_t i_id = 0;   // of our RMR
    std::uint32_t b_seq = 0;
    std::uint32_t window = 0, sent = 0;
    RingQueue<Block> blocks;  // from B_seq on; the first `sent` of them have been sent
    Awaited awaited{Alarm::kPuts};
    Time stalled_since = 0;
    Asking::Unasked unasked;  // the last of `sent`, covered by no question

    Address at;  // the rest of the region
    std::uint64_t base = 0;
    std::uint32_t access = 0;
    Question question;
    Time confirm_at = kNever;  // when to ask about `unasked` at the latest

    [[nodiscard]] RemoteRegion region() const {
      return {.r_id = r_id,
              .mx = mx,
              .at = at,
              .length = length,
              .window = window,
              .base = base,
              .access = access};
    }
  };
  static_assert(sizeof(Stream) == 3 * kCacheLine && offsetof(Stream, at) == 2 * kCacheLine);

  [[nodiscard]] Stream* find(std::uint32_t r_id);
  void forget(Stream& stream);
  void send(Stream& stream);
  void send_last(Stream& stream, const Block& block);
  void send_next(Stream& stream, const Block& block);
  void has_sent(Stream& stream);
  void wait(Stream& stream);
  void stop_waiting(Stream& stream);
  bool must_ask(Stream& stream, const Block& block);
  void send_block(Stream& stream, const Block& block, std::uint32_t index, bool asks);
  void ask_about(Stream& stream);
  void confirm(Stream& stream);
  void on_progress(Stream& stream, const wire::RequestStateResponse& rsr);
  void complete(Stream& stream, std::uint32_t blocks);
  void abandon(Stream& stream, int status);
  void tell_of_first(const Stream& stream, std::uint32_t blocks);
  static PutDone done_of(const Block& block, int status);
  void tell(const Block& block, int status);

  const SequencerConfig& config_;  // each Put needs this and what follows, in one cache line
  Clock& clock_;
  Outbox& outbox_;
  Completions& completions_;
  Repeats& repeats_;
  Endings& endings_;
  Stream* recent_ = nullptr;                 // found last
  std::uint32_t waiting_ = 0;                // streams with a Block on its way
  std::map<std::uint32_t, Stream> streams_;  // by the peer's R_id
};

// Gets and FetchOps of this side: owns their pieces until the answers have arrived, in order of
// their G_nums, a bounded number of them on their way. A get completes when all its pieces have,
// and never while an answer to it may still be written.
class Gets {
 public:
  Gets(const SequencerConfig& config, const Clock& clock, Outbox& outbox, Completions& completions,
       Repeats& repeats)
      : config_(config),
        clock_(clock),
        outbox_(outbox),
        completions_(completions),
        repeats_(repeats) {}

  int get(Context context, const RemoteRegion& region, std::uint64_t offset,
          const Landing& landing);
  int fetch(Context context, const RemoteRegion& region, std::uint64_t offset,
            wire::Function function, std::uint64_t operand, std::uint64_t compare,
            const Landing& landing);
  // False: there is none.
  bool cancel(Context context);

  // --- headers of the peer
  // DATA. False: it does not answer a Get.
  bool on_answer(const wire::Data& data);
  void on_refused(const wire::Get& refused);

  void expire();
  // The connection has ended: all complete with `error`.
  void fail(int error);
  // The number of pieces that are queued or on their way.
  [[nodiscard]] std::size_t outstanding() const { return pieces_.size(); }

 private:
  struct Piece {
    Context context = 0;
    Completion::Kind kind = Completion::Kind::kGet;
    std::uint64_t total = 0;
    bool last = false;  // of its get
    SendEntry request;
    bool done = false;
    int status = 0;
    Awaited awaited{Alarm::kGets};
  };

  int add(Context context, Completion::Kind kind, const RemoteRegion& region, std::uint64_t offset,
          const Landing& landing, const SendEntry& pattern);
  void send();
  void release(const Piece& piece);
  void finish();

  const SequencerConfig& config_;
  const Clock& clock_;
  Outbox& outbox_;
  Completions& completions_;
  Repeats& repeats_;
  RingQueue<Piece> pieces_;  // by G_num, from first_g_num_ on
  std::uint32_t first_g_num_ = 1;
  std::size_t sent_ = 0;  // the number of pieces sent, from the first on
  Time answered_at_ = 0;  // the last answer came then, of the next G_num
  std::uint32_t newest_answered_ = 0;
  int status_ = 0;  // of the pieces of one get so far
};

}  // namespace stp
