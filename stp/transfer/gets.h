// SPDX-License-Identifier: BSD-3-Clause
// Gets and FetchOps of this side: owns their pieces until the answers have arrived, in order of
// their G_nums, a bounded number of them on their way. A get completes when all its pieces have,
// and never while an answer to it may still be written.
#pragma once

#include <cstdint>

#include "stp/base/ring_queue.h"
#include "stp/transfer/endings.h"
#include "stp/transfer/repeats.h"
#include "stp/transfer/sequencer.h"

namespace stp {

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
