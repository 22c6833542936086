// SPDX-License-Identifier: BSD-3-Clause
#include "libst/service/link_watch.h"

#include <utility>

#include "libst/service/bells.h"
#include "libst/service/client_table.h"
#include "stp/base/work_meter.h"

namespace stp::service {
namespace {

constexpr Time kInterval = 10 * kMillisecond;
// The most changes that wait for next_change(). Beyond that, the oldest is dropped and counted.
constexpr std::size_t kKept = 8;

}  // namespace

LinkWatch::LinkWatch(port::Port& port, ClientTable& clients, Wakes& wakes, Time now)
    : port_(port),
      clients_(clients),
      wakes_(wakes),
      state_(port.state()),
      address_(port.info().address),
      since_(now) {
  if (state_ != port::LinkState::kUp) note();
}

void LinkWatch::look(Time now) {
  next_look_ = now + kInterval;
  const auto state = port_.state();
  const auto address = port_.info().address;
  if (state == state_ && address == address_) return;
  address_ = address;
  if (state != state_) {
    state_ = state;
    since_ = now;
    ++changes_;
    note();
  }
  for (auto& [id, client] : clients_) {
    work::count("clients");
    greet(client);
    wakes_.page(client);
  }
}

void LinkWatch::note() {
  if (noted_.size() == kKept) {
    noted_.pop_front();
    ++unnoted_;
  }
  noted_.push_back({state_, port_.trouble()});
}

void LinkWatch::greet(Client& client) const {
  auto& page = client.page();
  page.link_ipv4.store(address_ ? address_->value : 0, std::memory_order_relaxed);
  page.link_state.store(static_cast<std::uint32_t>(state_), std::memory_order_relaxed);
  page.link_changes.store(changes_, std::memory_order_release);
}

void LinkWatch::answer(ask::LinkState::Reply& reply, Time now) const {
  const auto& info = port_.info();
  reply.state = static_cast<std::uint32_t>(state_);
  reply.changes = changes_;
  reply.age = now - since_;
  reply.mtu = info.mtu;
  reply.megabits = info.megabits;
  if (info.address) reply.ipv4 = info.address->value;
}

std::optional<LinkChange> LinkWatch::next_change() {
  if (noted_.empty()) return std::nullopt;
  auto change = std::move(noted_.front());
  noted_.pop_front();
  change.passed_over = std::exchange(unnoted_, 0);
  return change;
}

}  // namespace stp::service
