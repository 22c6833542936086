// SPDX-License-Identifier: BSD-3-Clause
// Takes connections from a listening endpoint of level 0, and reports each one when its request has
// come.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <utility>

#include "libst/managed/connection.h"
#include "libst/managed/queue.h"

namespace stp::managed {

class Listener : public std::enable_shared_from_this<Listener> {
 public:
  static constexpr client::Kind kKind = client::Kind::kListener;

  Listener(std::shared_ptr<Domain> domain, std::uint64_t context, unsigned backlog)
      : domain_(std::move(domain)), context_(context), backlog_(backlog) {}

  // Under the control mutex.
  int listen(std::uint32_t uport);
  void close();

  // Under the domain's mutex.
  void use(std::shared_ptr<Queue> queue) { queue_ = QueueUse(std::move(queue)); }
  void accept();
  // The request of `connection` has arrived.
  void requested(const std::shared_ptr<Connection>& connection);
  // An undecided connection has been accepted or rejected, or is gone.
  void decided(const Connection& connection);

  [[nodiscard]] const std::shared_ptr<Domain>& domain() const { return domain_; }

  // Of connections to these stations, oldest first: the oldest one of the station that has most, if
  // it is among the first `old`, which alone may go.
  static std::optional<std::size_t> oldest_of_most(std::span<const std::uint64_t> stations,
                                                   std::size_t old);

 private:
  void tell();
  bool take_one();
  bool make_room();
  bool drop_expected(const Connection& connection);
  void drop_untold(const Connection& connection);

  const std::shared_ptr<Domain> domain_;
  const std::uint64_t context_;
  const unsigned backlog_;
  EndpointId endpoint_ = kNoneId;
  QueueUse queue_;
  // Connections without a request so far, oldest first; and how many wait for the program's
  // decision.
  struct Expected {
    Connection* connection;
    Time since;
  };
  std::deque<Expected> expected_;
  unsigned requested_ = 0;
  bool closed_ = false;
  std::deque<std::shared_ptr<Connection>> untold_;  // their events wait for a place in the queue
};

}  // namespace stp::managed
