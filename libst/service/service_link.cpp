// SPDX-License-Identifier: BSD-3-Clause
// Reports changes of the link's state: to programs through their pages, and to the owner of the
// Service, which writes the log, through next_link_change().
#include "libst/service/service_impl.h"

namespace stp::service {
namespace {

// The interval between checks: a change is reported at most this much later.
constexpr Time kInterval = 10 * kMillisecond;
// The most changes that wait for next_link_change(). Beyond that, the oldest is dropped and
// counted.
constexpr std::size_t kKept = 8;

}  // namespace

void Service::Impl::look_at_link(Time now) {
  look_at_link_at = now + kInterval;
  const auto state = port->state();
  const auto address = port->info().address;
  if (state == link_state && address == link_address) return;
  link_address = address;
  if (state != link_state) {
    link_state = state;
    link_state_since = now;
    ++link_changes;
    note_link_change();
  }
  for (auto& [id, client] : clients) {
    work::count("clients");
    tell_link_state(client);
    wake_page(client.page());
  }
}

void Service::Impl::note_link_change() {
  if (noted_changes.size() == kKept) {
    noted_changes.pop_front();
    ++unnoted_changes;
  }
  noted_changes.push_back({link_state, port->trouble()});
}

void Service::Impl::tell_link_state(Client& client) const {
  auto& page = client.page();
  page.link_ipv4.store(link_address ? link_address->value : 0, std::memory_order_relaxed);
  page.link_state.store(static_cast<std::uint32_t>(link_state), std::memory_order_relaxed);
  page.link_changes.store(link_changes, std::memory_order_release);
}

int Service::Impl::query_link(Reply& reply) {
  const auto& info = port->info();
  reply.state = static_cast<std::uint32_t>(link_state);
  reply.value = link_changes;
  reply.age = clock.now() - link_state_since;
  reply.mtu = info.mtu;
  reply.megabits = info.megabits;
  if (info.address) reply.ipv4 = info.address->value;
  return 0;
}

std::optional<LinkChange> Service::next_link_change() {
  auto& noted = impl_->noted_changes;
  if (noted.empty()) return std::nullopt;
  auto change = std::move(noted.front());
  noted.pop_front();
  change.passed_over = std::exchange(impl_->unnoted_changes, 0);
  return change;
}

}  // namespace stp::service
