// SPDX-License-Identifier: BSD-3-Clause
// What this side asks the peer's user for: to read (RTR), and to open a region (RMR). Owns each
// request until it is answered, and repeats it. A read that is granted goes on as a Transfer, a
// region that is opened goes on among the Puts.
#pragma once

#include <cstdint>
#include <map>
#include <optional>

#include "stp/transfer/completions.h"
#include "stp/transfer/endings.h"
#include "stp/transfer/ids.h"
#include "stp/transfer/puts.h"
#include "stp/transfer/repeats.h"
#include "stp/transfer/sequencer.h"

namespace stp {

class AsksOut {
 public:
  AsksOut(const Clock& clock, Ids& ids, Outbox& outbox, Completions& completions, Repeats& repeats,
          Endings& endings, Puts& puts)
      : clock_(clock),
        ids_(ids),
        outbox_(outbox),
        completions_(completions),
        repeats_(repeats),
        endings_(endings),
        puts_(puts) {}

  int read(Context context, const Landing& landing);
  int request_region(Context context, std::uint64_t length, std::uint32_t window,
                     std::uint32_t name);
  // Takes the request of `context` back. False: there is none.
  bool cancel(Context context);

  // --- headers of the peer
  // RA: a read is seen or refused. False: it answers something else.
  bool on_answer(const wire::RequestAnswer& ra, bool refused);
  // An RTS of `length` bytes answers the read `i_id`: takes it out.
  struct Read {
    Context context = 0;
    Landing landing;
  };
  std::optional<Read> take_read(std::uint32_t i_id, std::uint64_t length);
  // MRA.
  void on_region(const ReceivedEntry& entry);

  void expire();
  // The connection has ended: all complete with `error`.
  void fail(int error);
  [[nodiscard]] std::size_t outstanding() const { return asked_.size(); }

 private:
  struct Asked {
    std::uint32_t i_id = 0;
    bool region = false;
    Context context = 0;
    Landing landing;  // read
    std::uint64_t length = 0;
    std::uint32_t window = 0;  // region
    std::uint32_t name = 0;    // region
    Time begun = 0;
    Awaited awaited{Alarm::kAsksOut};

    [[nodiscard]] Completion::Kind kind() const {
      return region ? Completion::Kind::kRegion : Completion::Kind::kRead;
    }
  };

  Asked& create(Context context, std::uint64_t length);
  void begin(Asked& what);
  void send(Asked& what);
  // Ends it at the peer; it completes with `status` when the peer has confirmed.
  void end(const Asked& what, int status);

  const Clock& clock_;
  Ids& ids_;
  Outbox& outbox_;
  Completions& completions_;
  Repeats& repeats_;
  Endings& endings_;
  Puts& puts_;
  std::map<std::uint32_t, Asked> asked_;  // by our I_id
};

}  // namespace stp
