// SPDX-License-Identifier: BSD-3-Clause
#include "libst/host/bells.h"

#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <span>
#include <system_error>
#include <utility>

#include "dpdk_port/link/engine.h"
#include "stp/base/assert.h"

namespace stp::host {
namespace {

// Bells of one program that a turn of stpd answers. A program in this process has no such limit.
constexpr std::uint32_t kMostBells = 64;

}  // namespace

Bells::Bells(ClientTable& clients, port::TurnClock& clock)
    : clients_(clients), clock_(clock), own_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (!own_) throw std::system_error(errno, std::generic_category(), "eventfd");
}

void Bells::ring_own() const {
  if (!asleep_) return;
  std::uint64_t const one = 1;
  // Fails only if the counter is full; then the bell is readable already.
  [[maybe_unused]] const auto put = ::write(own_.get(), &one, sizeof one);
}

// ---- bells of clients

int Bells::of(Client& client, const Allowances& allow, int& out) {
  if (client.leaving) return -EBADF;
  if (!client.bell_file) {
    auto* const group = group_for(client.identity.uid);
    if (group == nullptr) return -errno;
    if (const auto error = add(client, *group, allow); error != 0) {
      if (group->bells == 0) forget(*group);
      return error;
    }
    client.rung.most = kMostBells;
    ring_own();  // a thread that sleeps does not await a new group yet
  }
  out = client.bell_file.get();
  return 0;
}

BellGroup* Bells::group_for(uid_t user) {
  for (auto& group : groups_)
    if (group.user == user && group.bells < BellGroup::kMost) return &group;
  os::UniqueFd watch(::epoll_create1(EPOLL_CLOEXEC));
  if (!watch) return nullptr;
  BellGroup group{.user = user, .watch = std::move(watch), .unheard = {}, .paid = {}};
  group.unheard.reserve(BellGroup::kMost);
  return &groups_.emplace_back(std::move(group));
}

int Bells::add(Client& client, BellGroup& group, const Allowances& allow) {
  os::UniqueFd bell(::eventfd(0, EFD_CLOEXEC));
  if (!bell) return -errno;
  for (const auto file : {bell.get(), group.watch.get()})
    if (const auto error = allow.check_file(file); error != 0) return error;
  client.bell_group = &group;
  if (const auto error = watch(EPOLL_CTL_ADD, client, bell.get(), true); error != 0) return error;
  client.bell_file = std::move(bell);
  ++group.bells;
  ++group.heard;
  return 0;
}

void Bells::remove(Client& client) {
  if (!client.bell_file) return;
  watch(EPOLL_CTL_MOD, client, client.bell_file.get(), false);
  auto& group = *std::exchange(client.bell_group, nullptr);
  group.unheard.push_back(std::exchange(client.bell_file, {}));
  client.bell_paid.shrink(Resource::kFiles, 1);
  group.paid.join(std::move(client.bell_paid));
  if (--group.heard != 0) return;
  // The epoll first: nobody else has that, and with it nothing of this process waits for the bells.
  give_up(group.user, std::move(group.watch));
  for (auto& bell : group.unheard) give_up(group.user, std::move(bell));
  forget(group);
}

void Bells::give_up(uid_t user, os::UniqueFd file) {
  if (asleep_)
    removed_.emplace_back(user, std::move(file));
  else
    close(user, std::move(file));
}

void Bells::forget(const BellGroup& group) {
  groups_.erase(std::find_if(groups_.begin(), groups_.end(),
                             [&](const BellGroup& each) { return &each == &group; }));
}

void Bells::close(uid_t user, os::UniqueFd file) {
  if (close_) close_(user, std::move(file));
}

// Edge-triggered: epoll reports each write once, so nobody has to read the bell. So is one that is
// not heard: epoll always tells errors, and a full counter, which the kernel adds to for who asks
// it (aio), is one that lasts.
int Bells::watch(int operation, const Client& client, int bell, bool heard) {
  epoll_event event{};
  event.events = static_cast<std::uint32_t>(heard ? EPOLLIN | EPOLLET : EPOLLET);
  event.data.u64 = client.id;
  return ::epoll_ctl(client.bell_group->watch.get(), operation, bell, &event) == 0 ? 0 : -errno;
}

// ---- sleeping

bool Bells::fall_asleep() {
  asleep_ = true;
  awaited_.assign(kWatches, {.fd = -1, .events = POLLIN, .revents = 0});
  awaited_[kOwn].fd = own_.get();
  for (const auto& group : groups_)
    awaited_.push_back({.fd = group.watch.get(), .events = POLLIN, .revents = 0});
  for (auto& [id, client] : clients_) client.page().service_asleep.store(1);
  return !any_rung();
}

void Bells::wake_up() {
  asleep_ = false;
  for (auto& [id, client] : clients_) client.page().service_asleep.store(0);
  hear();
  for (auto& [user, file] : std::exchange(removed_, {})) close(user, std::move(file));
}

bool Bells::any_rung() const {
  for (const auto& [id, client] : std::as_const(clients_))
    if (!client.leaving && !client.bell_credit.silent() &&
        client.page().bells.any(client.channels.numbers()))
      return true;
  return false;
}

// The link's descriptor and the watches may be epolls, and are in none: to add one to another takes
// a mutex of the kernel that there is once, and any user of the host can hold that for most of the
// time.
bool Bells::sleep(int link, Time length) {
  const timespec timeout{.tv_sec = static_cast<time_t>(length / kSecond),
                         .tv_nsec = static_cast<long>(length % kSecond)};
  awaited_[kLink].fd = link;
  const auto ready = ::ppoll(awaited_.data(), awaited_.size(), &timeout, nullptr);
  if (ready > 0) return true;
  const bool was_interrupted = ready < 0 && errno == EINTR;
  for (auto& each : awaited_) each.revents = 0;
  return !was_interrupted;
}

void Bells::hear() {
  eventfd_t rings = 0;
  if (awaited_[kOwn].revents != 0) ::eventfd_read(own_.get(), &rings);
  for (const auto& group : std::span(awaited_).subspan(kWatches)) {
    std::array<epoll_event, BellGroup::kMost> events{};
    if (group.revents == 0) continue;
    const auto count = ::epoll_wait(group.fd, events.data(), static_cast<int>(events.size()), 0);
    for (const auto& event : std::span(events).first(static_cast<std::size_t>(std::max(count, 0))))
      // collect_of() returns the credit if there is something new.
      if (auto* const from = clients_.find(static_cast<ClientId>(event.data.u64)); from != nullptr)
        rang_in_vain(*from);
  }
}

// ---- silences

void Bells::rang_in_vain(Client& client) {
  if (client.leaving || !client.bell_file || !client.bell_credit.rang_in_vain(clock_.now())) return;
  silences_.store(silences() + 1, std::memory_order_relaxed);
  watch(EPOLL_CTL_MOD, client, client.bell_file.get(), false);
  silent_until_ = std::min(silent_until_, client.bell_credit.silent_until());
}

void Bells::end_silences() {
  silent_until_ = kNever;
  for (auto& [id, client] : clients_) {
    if (client.leaving || !client.bell_credit.silent()) continue;
    if (client.bell_credit.silent_until() <= clock_.now()) {
      STP_ASSERT(client.bell_file, "a client that was silenced has a bell");
      client.bell_credit.listen_again();
      watch(EPOLL_CTL_MOD, client, client.bell_file.get(), true);
    } else {
      silent_until_ = std::min(silent_until_, client.bell_credit.silent_until());
    }
  }
}

void Wakes::page(Client& client) {
  client.wakes.page = true;
  wait(client);
}

void Wakes::channel(Client& client, Bell number) {
  auto* const channel = client.channels.at(number);
  if (channel == nullptr) return;
  if (const auto gatherer = channel->control().gathered.load(std::memory_order_relaxed);
      gatherer != 0) {
    if (gatherer != visitor_) page(client);
    return;
  }
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

bool Wakes::wake_some(Time moment) {
  Time until = 0;
  for (;;) {
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
    if (waiting_.empty()) return false;
    // Mostly there is one, and no need to read the clock.
    const auto now = port::now();
    if (until == 0) until = now + moment;
    if (now >= until) return true;
  }
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

}  // namespace stp::host
