// SPDX-License-Identifier: BSD-3-Clause
// Writes of the peer that have no memory yet, and receives that have no write: owns both, and the
// order of the peer's messages. Writes take receives in the order of their messages, whatever the
// order of their RTS. The number of waiting writes is bounded; more are refused.
#pragma once

#include <cstdint>
#include <optional>

#include "stp/base/ring_queue.h"
#include "stp/transfer/message_order.h"
#include "stp/transfer/writes_in.h"

namespace stp {

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

  Outbox& outbox_;
  Completions& completions_;
  Finished& finished_;
  WritesIn& writes_;
  RingQueue<Receive> receives_;      // in order of posting
  RingQueue<OfferedWrite> waiting_;  // by message; without a number, in order of arrival
  MessageOrder order_;
};

}  // namespace stp
