// SPDX-License-Identifier: BSD-3-Clause
// The state of the link: looks at it now and then, and reports each change to the clients through
// their pages, and to the owner of the Service, which writes the log.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>

#include "dpdk_port/port.h"
#include "libst/ipc/requests.h"

namespace stp::service {

class ClientTable;
class Wakes;
struct Client;

// A change of the link's state.
struct LinkChange {
  port::LinkState state = port::LinkState::kUnknown;
  std::string trouble;            // with the remedy; "": none
  std::uint64_t passed_over = 0;  // earlier changes, dropped because nobody fetched them
};

class LinkWatch {
 public:
  // A link that is not up now counts as changed.
  LinkWatch(port::Port& port, ClientTable& clients, Wakes& wakes, Time now);

  // Call in each turn: looks every 10 ms, which is how late a change is reported at most.
  void turn(Time now) {
    if (now >= next_look_) look(now);
  }
  // Writes the state into the page of a new client.
  void greet(Client& client) const;
  void answer(ask::LinkState::Reply& reply, Time now) const;
  // How often the state has changed since the link was opened.
  [[nodiscard]] std::uint32_t changes() const { return changes_; }
  // Returns the changes one by one, in order; nullopt: no more. Keeps only the last few.
  std::optional<LinkChange> next_change();

 private:
  void look(Time now);
  void note();

  port::Port& port_;
  ClientTable& clients_;
  Wakes& wakes_;
  // At the last look.
  port::LinkState state_;
  std::optional<port::Ipv4> address_;
  Time since_, next_look_ = 0;
  std::uint32_t changes_ = 0;
  std::deque<LinkChange> noted_;
  std::uint64_t unnoted_ = 0;
};

}  // namespace stp::service
