// SPDX-License-Identifier: BSD-3-Clause
#include "libst/service/client.h"

#include "libst/os/futex.h"

namespace stp::service {

void Client::wake() const {
  // Sequentially consistent on both sides. The client adds itself to `sleepers`, then reads the
  // word: so it sees the new value, or this side sees a sleeper.
  page().events.fetch_add(1);
  if (page().sleepers.load() != 0) futex_wake(page().events, 1);
}

void Client::wake(const Channel& channel) const {
  auto& control = channel.control();
  if (control.gathered.load(std::memory_order_relaxed) != 0) return wake();
  futex_wake(control.wake, 1);
}

void Client::tell_news(Bell number) const {
  const auto* const channel = channels.at(number);
  if (channel != nullptr && channel->control().gathered.load(std::memory_order_relaxed) != 0)
    page().news.ring(number);
}

}  // namespace stp::service
