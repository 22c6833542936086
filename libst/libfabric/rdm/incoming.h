// SPDX-License-Identifier: BSD-3-Clause
// A connection that a peer has made to an endpoint: the peer's messages come on it. Nothing that
// comes is trusted: what the protocol does not permit ends the connection.
#pragma once

#include <list>
#include <memory>
#include <optional>
#include <vector>

#include "libst/libfabric/rdm/matching.h"

namespace stp::fi::rdm {

class Endpoint;

// A message of which not all parts have come.
struct Assembly {
  Message message;
  std::optional<Receive> receive;  // where it goes, if it is awaited
  std::size_t arrived = 0;         // bytes
};

class Incoming final : public Owner {
 public:
  Incoming(Endpoint& endpoint, stm_connection_t connection, Place source)
      : endpoint_(endpoint), connection_(connection), source_(source) {}
  ~Incoming();
  Incoming(const Incoming&) = delete;
  Incoming& operator=(const Incoming&) = delete;

  // 0 or a status of the managed API: then it has to be closed.
  int accept();
  // Ends the connection: what is under way completes. Its events are still to be taken.
  void close();
  // What was to be read and has not begun is given up.
  void give_up(int status);
  [[nodiscard]] bool has_ended() const { return ended_; }

  // Reads an announced message into that receive.
  void pull(const Message& message, Receive&& receive);
  // The bytes of the message are not needed any more.
  void done_with(Message& message);

  void connection_event(const stm_event_t& event) override;
  void not_dialed(int) override {}
  void arrived(RxBuffer& buffer, const stm_event_t& event) override;
  void serve(const stm_event_t& event) override;
  void part_done(Op& op, int status) override;

 private:
  void post(RxBuffer& buffer);
  // The message goes to its receive, or waits for one.
  void match(Message&& message);
  void take_first(Message&& message, RxBuffer& buffer);
  void take_more(const Head& head, RxBuffer& buffer, std::size_t length);
  void take_part(const RxBuffer& buffer, std::size_t length);
  void read_next();
  int read(Op& op);
  void keep(Message&& message);
  void break_off(const char* why);

  Endpoint& endpoint_;
  stm_connection_t connection_;
  const Place source_;
  std::unique_ptr<std::byte, FreeBlock> bytes_;
  stm_memory_t memory_ = nullptr;
  std::vector<RxBuffer> buffers_;
  std::optional<Assembly> assembly_;
  std::size_t kept_ = 0;    // bytes of messages that wait for receives in copies
  std::list<Op*> waiting_;  // reads to begin
  std::vector<Op*> reading_;
  bool ended_ = false, broken_ = false;
};

}  // namespace stp::fi::rdm
