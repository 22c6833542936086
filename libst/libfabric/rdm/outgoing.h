// SPDX-License-Identifier: BSD-3-Clause
// A connection that an endpoint has made to a peer: its messages, writes and reads go there.
#pragma once

#include <deque>
#include <memory>
#include <unordered_map>
#include <vector>

#include "libst/libfabric/link.h"
#include "libst/libfabric/rdm/av.h"
#include "libst/libfabric/rdm/wire.h"

namespace stp::fi::rdm {

class Endpoint;

class Outgoing final : public Owner {
 public:
  Outgoing(Endpoint& endpoint, Place peer) : endpoint_(endpoint), peer_(peer) {}
  ~Outgoing();
  Outgoing(const Outgoing&) = delete;
  Outgoing& operator=(const Outgoing&) = delete;

  // Begins to connect. 0 or a status of the managed API.
  int dial();
  // Ends the connection: what is under way completes. Its events are still to be taken.
  void close();
  // What was posted and has not begun is given up.
  void give_up(int status);
  [[nodiscard]] bool has_ended() const { return state_ == State::kEnded; }
  [[nodiscard]] Place peer() const { return peer_; }

  // Begins the operation, once the connection is up. A status: it has not begun.
  int post(Op& op);

  void connection_event(const stm_event_t& event) override;
  void not_dialed(int status) override;
  void arrived(RxBuffer& buffer, const stm_event_t& event) override;
  void serve(const stm_event_t& event) override;
  void part_done(Op& op, int status) override;

 private:
  enum class State { kDialing, kUp, kEnded };
  struct Read {
    std::uint32_t request;
    std::uint64_t length;
  };
  struct Pull {
    Op* op;
    std::uint64_t length;
  };

  int begin(Op& op);
  int begin_parts(Op& op);
  void flush();
  void post(RxBuffer& buffer);
  void pair();
  void answer(const Pull& pull, const Read& read);
  // The operation is complete: tells so to a peer that counts accesses. True: that is on its way.
  bool tell_access(Op& op);
  void break_off(const char* why);

  Endpoint& endpoint_;
  const Place peer_;
  State state_ = State::kDialing;
  bool peer_counts_ = false;  // accesses to its memory
  stm_connection_t connection_ = nullptr;
  std::unique_ptr<std::byte, FreeBlock> bytes_;
  stm_memory_t memory_ = nullptr;
  std::vector<RxBuffer> buffers_;
  std::deque<Op*> waiting_;  // for the connection to be up
  std::uint32_t last_id_ = 0;
  std::unordered_map<std::uint32_t, Op*> announced_;  // not pulled yet
  std::deque<Pull> pulls_;                            // that wait for their reads
  std::deque<Read> reads_;                            // that wait for their pulls
};

}  // namespace stp::fi::rdm
