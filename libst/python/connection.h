// SPDX-License-Identifier: BSD-3-Clause
// One peer. Messages come in the order in which they were sent, also past receives that were taken
// back: one of those that gets a message after all leaves it for the next receive, and no receive
// is posted before they are over.
#pragma once

#include <deque>
#include <memory>
#include <string>

#include "libst/python/domain.h"

namespace stp::python {

// What the link knows to be wrong with the way to the peer, behind a colon; "": nothing.
std::string trouble_with(stm_connection_t connection);

class Connection : public std::enable_shared_from_this<Connection> {
 public:
  Connection(std::shared_ptr<Domain> domain, std::uint64_t number)
      : context(number), domain_(std::move(domain)) {}

  // A request: one of these decides it.
  std::shared_ptr<Operation> accept(const std::string& data);
  void reject(const std::string& data);
  // The same, if its peer has gone. False: it is there.
  bool drop_if_gone();

  using Pending = std::shared_ptr<Operation>;
  Pending send(Buffer bytes, std::uint32_t tag, unsigned flags);
  Pending receive(std::size_t most);
  Pending receive_into(Buffer buffer);
  Pending put(Buffer bytes, std::uint32_t key, std::uint64_t address, unsigned flags);
  Pending get(Buffer buffer, std::uint32_t key, std::uint64_t address, unsigned flags);
  Pending fetch(unsigned op, std::uint64_t operand, std::uint64_t compare, std::uint32_t key,
                std::uint64_t address, unsigned flags);
  Pending ended();  // done when the connection is over
  void disconnect(int how);
  void close();

  stm_connection_info_t info();
  [[nodiscard]] bool is_closed() const { return handle == nullptr; }
  [[nodiscard]] bool is_over() const { return over_; }
  [[nodiscard]] int reason() const { return reason_; }

  // For the domain.
  void hear(const stm_event_t& event);
  void received(const Pending& operation, int status);       // a receive is over
  void put_back(std::string_view bytes, std::uint32_t tag);  // the next receive gets this message
  void end(int reason);
  void cancel(const Pending& operation);    // one that was posted
  void withdraw(const Pending& operation);  // one that was not
  std::shared_ptr<Operation> begin_opening(std::string what);
  void fail_opening(int error, const std::string& text);
  void learn_data();
  const std::uint64_t context;
  stm_connection_t handle = nullptr;
  bool is_request = false;  // not decided
  std::string data;         // what the peer has sent along

 private:
  struct Message {
    std::string bytes;
    std::uint32_t tag;
  };

  stm_connection_t need() const;  // fails when it is closed
  Pending begin(const char* what, Operation::Gives gives);
  template <typename Call>
  Pending move(const char* what, Operation::Gives gives, Buffer bytes, bool fills,
               const Call& call);
  Pending begin_receive(const Pending& operation);
  bool deliver_kept(const Pending& operation);
  void go_on();

  std::shared_ptr<Domain> domain_;
  Pending opening_;
  std::deque<Pending> enders_;
  std::deque<Pending> later_;  // receives that wait for `abandoned_`
  std::deque<Message> kept_;   // messages of receives that were taken back
  unsigned abandoned_ = 0;     // receives that were taken back, and are not over
  bool over_ = false;
  int reason_ = 0;
};

}  // namespace stp::python
