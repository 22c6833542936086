// SPDX-License-Identifier: BSD-3-Clause
#include "libst/service/wakes.h"

#include <utility>

#include "dpdk_port/link/clock.h"

namespace stp::service {

void Wakes::page(Client& client) {
  client.wakes.page = true;
  wait(client);
}

void Wakes::channel(Client& client, Bell number) {
  auto* const channel = client.channels.at(number);
  if (channel == nullptr) return;
  if (channel->control().gathered.load(std::memory_order_relaxed) != 0) return page(client);
  if (std::exchange(channel->to_wake, true)) return;
  client.wakes.channels.push_back(number);
  wait(client);
}

void Wakes::wait(Client& client) {
  if (!std::exchange(client.wakes.waits, true)) waiting_.push_back(client.id);
}

bool Wakes::go_on(Time moment) {
  if (waiting_.empty()) return false;
  const auto until = port::now() + moment;
  do {
    const auto id = waiting_.front();
    waiting_.pop_front();
    auto* const client = clients_.find(id);
    if (client == nullptr) continue;  // it has gone
    wake_one(*client);
    client->wakes.waits = false;
    if (!client->wakes.channels.empty()) wait(*client);
  } while (!waiting_.empty() && port::now() < until);
  return !waiting_.empty();
}

void Wakes::wake_one(Client& client) {
  if (std::exchange(client.wakes.page, false)) return client.wake();
  const auto number = client.wakes.channels.front();
  client.wakes.channels.pop_front();
  auto* const channel = client.channels.at(number);
  if (channel == nullptr || !std::exchange(channel->to_wake, false)) return;  // it has gone
  client.wake(*channel);
}

}  // namespace stp::service
