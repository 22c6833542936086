// SPDX-License-Identifier: BSD-3-Clause
// Wakes threads of clients that sleep on words of shared memory. That takes the longer, the more
// threads of any program sleep on words that the kernel keeps in the same place of its table, and a
// program can bring tens of thousands there. So what happens in a turn wakes a client once by the
// word of its page; and when that and its channels take longer than a moment, clients take turns,
// and what is left is done in the next turns of the link.
#pragma once

#include <deque>
#include <memory>

#include "libst/service/client_table.h"

namespace stp::service {

class Wakes {
 public:
  // All of one turn together.
  static constexpr Time kMoment = 500 * kMicrosecond;

  explicit Wakes(ClientTable& clients) : clients_(clients) {}

  // In the next go_on(): one thread that sleeps on the page, or on the channel of that number.
  void page(Client& client);
  void channel(Client& client, Bell number);
  // The same, and then releases the channel, whose connection is over.
  void over(Client& client, std::unique_ptr<Channel> channel);
  // Returns true if some are left. Wakes one at least.
  bool go_on(Time moment = kMoment);

 private:
  void wait(Client& client);
  static void wake_one(Client& client);

  ClientTable& clients_;
  std::deque<ClientId> waiting_;  // each client once
};

}  // namespace stp::service
