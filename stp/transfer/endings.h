// SPDX-License-Identifier: BSD-3-Clause
// The ENDs of this side: owns each one until the peer has confirmed it, repeats it, and gives it up
// after a while. The completion of what was ended follows the confirmation.
#pragma once

#include <cstdint>
#include <map>
#include <optional>

#include "stp/transfer/completions.h"
#include "stp/transfer/repeats.h"

namespace stp {

class Endings {
 public:
  Endings(Outbox& outbox, Completions& completions, Repeats& repeats)
      : outbox_(outbox), completions_(completions), repeats_(repeats) {}

  // Ends the Transfer or region that the peer calls `r_id` (kNoId: not known) and this side calls
  // `i_id`. `completion` follows the peer's answer. `msn`: the message that is taken back; 0: none.
  void end(std::uint32_t r_id, std::uint32_t i_id, const std::optional<Completion>& completion,
           std::uint32_t msn = 0);
  void on_end_ack(const wire::EndAck& ea);
  void expire();
  // The connection has ended: gives all completions.
  void fail();
  [[nodiscard]] bool empty() const { return endings_.empty(); }
  // The number of completions that are still to come.
  [[nodiscard]] std::size_t outstanding() const;

 private:
  struct Ending {
    std::optional<Completion> completion;
    SendEntry request;
    Awaited awaited{Alarm::kEndings};
  };

  Outbox& outbox_;
  Completions& completions_;
  Repeats& repeats_;
  std::map<std::uint32_t, Ending> endings_;  // by our id
};

}  // namespace stp
