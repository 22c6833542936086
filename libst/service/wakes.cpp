// SPDX-License-Identifier: BSD-3-Clause
#include "libst/service/wakes.h"

#include <utility>

#include "dpdk_port/link/clock.h"
#include "stp/base/assert.h"

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

void Wakes::over(Client& client, std::unique_ptr<Channel> channel) {
  if (channel->control().gathered.load(std::memory_order_relaxed) != 0) return page(client);
  client.wakes.over.push_back(std::move(channel));
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
    STP_ASSERT(client != nullptr, "who is to be woken stays until then");
    wake_one(*client);
    client->wakes.waits = false;
    if (!client->wakes.channels.empty() || !client->wakes.over.empty())
      wait(*client);
    else
      clients_.forget_if_empty(*client);
  } while (!waiting_.empty() && port::now() < until);
  return !waiting_.empty();
}

void Wakes::wake_one(Client& client) {
  if (std::exchange(client.wakes.page, false)) return client.wake();
  if (!client.wakes.over.empty()) {
    client.wake(*client.wakes.over.front());
    return client.wakes.over.pop_front();
  }
  if (client.wakes.channels.empty()) return;
  const auto number = client.wakes.channels.front();
  client.wakes.channels.pop_front();
  auto* const channel = client.channels.at(number);
  if (channel == nullptr || !std::exchange(channel->to_wake, false)) return;  // it has gone
  client.wake(*channel);
}

}  // namespace stp::service
