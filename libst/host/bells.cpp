// SPDX-License-Identifier: BSD-3-Clause
#include "libst/host/bells.h"

#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
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
    os::UniqueFd fresh(::eventfd(0, EFD_CLOEXEC)), watcher(::epoll_create1(EPOLL_CLOEXEC));
    if (!fresh || !watcher) return -errno;
    for (const auto* const file : {&fresh, &watcher})
      if (const auto error = allow.check_file(file->get()); error != 0) return error;
    if (const auto error = watch(EPOLL_CTL_ADD, watcher.get(), fresh.get(), true); error != 0)
      return error;
    client.bell_file = std::move(fresh);
    client.bell_watch = std::move(watcher);
    client.rung.most = kMostBells;
  }
  out = client.bell_file.get();
  return 0;
}

void Bells::remove(Client& client) {
  if (!client.bell_file) return;
  // The watch first: nobody else has that, and with it nothing of this process waits for the bell.
  for (auto* const file : {&client.bell_watch, &client.bell_file}) {
    auto gone = std::exchange(*file, {});
    if (asleep_)
      removed_.emplace_back(client.identity.uid, std::move(gone));
    else
      close(client.identity.uid, std::move(gone));
  }
}

void Bells::close(uid_t user, os::UniqueFd file) {
  if (close_) close_(user, std::move(file));
}

// Edge-triggered: epoll reports each write once, so nobody has to read the bell.
int Bells::watch(int operation, int watcher, int bell, bool heard) {
  epoll_event event{};
  event.events = heard ? static_cast<std::uint32_t>(EPOLLIN | EPOLLET) : 0;
  return ::epoll_ctl(watcher, operation, bell, &event) == 0 ? 0 : -errno;
}

// ---- sleeping

bool Bells::fall_asleep() {
  asleep_ = true;
  awaited_.assign(kWatches, {.fd = -1, .events = POLLIN, .revents = 0});
  awaited_[kOwn].fd = own_.get();
  whose_.clear();
  for (auto& [id, client] : clients_) {
    client.page().service_asleep.store(1);
    if (!client.bell_watch) continue;
    awaited_.push_back({.fd = client.bell_watch.get(), .events = POLLIN, .revents = 0});
    whose_.push_back(id);
  }
  return !any_rung();
}

void Bells::wake_up() {
  asleep_ = false;
  for (auto& [user, file] : std::exchange(removed_, {})) close(user, std::move(file));
  for (auto& [id, client] : clients_) client.page().service_asleep.store(0);
  hear();
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
void Bells::sleep(int link, Time length) {
  const timespec timeout{.tv_sec = static_cast<time_t>(length / kSecond),
                         .tv_nsec = static_cast<long>(length % kSecond)};
  awaited_[kLink].fd = link;
  if (::ppoll(awaited_.data(), awaited_.size(), &timeout, nullptr) <= 0) return;
  eventfd_t rings = 0;
  if (awaited_[kOwn].revents != 0) ::eventfd_read(own_.get(), &rings);
  for (auto at = kWatches; at < awaited_.size(); ++at) {
    epoll_event event{};
    if (awaited_[at].revents == 0 || ::epoll_wait(awaited_[at].fd, &event, 1, 0) != 1) continue;
    whose_[rung_++] = whose_[at - kWatches];
  }
}

void Bells::hear() {
  for (const auto whose : std::span(whose_).first(std::exchange(rung_, 0)))
    if (auto* const from = clients_.find(whose); from != nullptr)
      rang_in_vain(*from);  // collect_of() returns the credit if there is something new
}

// ---- silences

void Bells::rang_in_vain(Client& client) {
  if (client.leaving || !client.bell_file || !client.bell_credit.rang_in_vain(clock_.now())) return;
  silences_.store(silences() + 1, std::memory_order_relaxed);
  watch(EPOLL_CTL_MOD, client.bell_watch.get(), client.bell_file.get(), false);
  silent_until_ = std::min(silent_until_, client.bell_credit.silent_until());
}

void Bells::end_silences() {
  silent_until_ = kNever;
  for (auto& [id, client] : clients_) {
    if (client.leaving || !client.bell_credit.silent()) continue;
    if (client.bell_credit.silent_until() <= clock_.now()) {
      STP_ASSERT(client.bell_file, "a client that was silenced has a bell");
      client.bell_credit.listen_again();
      watch(EPOLL_CTL_MOD, client.bell_watch.get(), client.bell_file.get(), true);
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
