// SPDX-License-Identifier: BSD-3-Clause
// Doorbells, which wake the sleeping polling thread. A client that shares a descriptor can change
// its flags, read it, and write it as often as it likes. So each client has a bell of its own, and
// the service only asks epoll whether it was written: that never blocks and depends on no flag.
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <cerrno>
#include <span>
#include <utility>

#include "libst/service/service_impl.h"
#include "stp/base/assert.h"

namespace stp::service {

// Bells of one program that a turn of stpd answers. A program in this process has no such limit.
constexpr std::uint32_t kMostBells = 64;

int Service::bell_of(ClientId id, int& out) {
  auto* const client = impl_->client(id);
  if (client == nullptr || client->leaving) return -EBADF;
  if (!client->bell_file) {
    UniqueFd fresh(::eventfd(0, EFD_CLOEXEC));
    if (!fresh) return -errno;
    if (fresh.get() >= impl_->first_reserved_file) return -EMFILE;
    if (const auto error = impl_->watch_bell(EPOLL_CTL_ADD, fresh.get(), id, true); error != 0)
      return error;
    client->bell_file = std::move(fresh);
    client->rung.most = kMostBells;
  }
  out = client->bell_file.get();
  return 0;
}

// Edge-triggered: epoll reports each write once, so nobody has to read the bell. `whose` 0: the
// bell of this process.
int Service::Impl::watch_bell(int operation, int fd, ClientId whose, bool heard) {
  epoll_event event{};
  event.events = heard ? static_cast<std::uint32_t>(EPOLLIN | EPOLLET) : 0;
  event.data.u64 = whose;
  return ::epoll_ctl(bells.get(), operation, fd, &event) == 0 ? 0 : -errno;
}

void Service::sleep(int wake_fd, Time length) {
  if (wake_fd != impl_->link_fd) impl_->watch_link(wake_fd);
  impl_->sleep_on_bells(length);
}

// Level-triggered, as for poll(): the link ends sleeps as long as the descriptor is readable.
void Service::Impl::watch_link(int fd) {
  epoll_event event{};
  event.events = EPOLLIN;
  if (link_fd >= 0) ::epoll_ctl(bells.get(), EPOLL_CTL_DEL, link_fd, nullptr);
  if (fd >= 0) ::epoll_ctl(bells.get(), EPOLL_CTL_ADD, fd, &event);
  link_fd = fd;
}

// Sleeps and learns who rang in one system call. Events beyond the size of `rung` stay pending and
// end the next sleep.
void Service::Impl::sleep_on_bells(Time length) {
  const timespec timeout{.tv_sec = static_cast<time_t>(length / kSecond),
                         .tv_nsec = static_cast<long>(length % kSecond)};
  const auto most = static_cast<int>(rung.size());
  rung_count = ::epoll_pwait2(bells.get(), rung.data(), most, &timeout, nullptr);
  if (rung_count >= 0 || errno == EINTR) return;
  // Linux before 5.11 has no epoll_pwait2(); epoll_wait() counts in milliseconds.
  pollfd any{.fd = bells.get(), .events = POLLIN, .revents = 0};
  ::ppoll(&any, 1, &timeout, nullptr);
  rung_count = ::epoll_wait(bells.get(), rung.data(), most, 0);
}

void Service::Impl::hear_bells() {
  const auto count = static_cast<std::size_t>(std::max(std::exchange(rung_count, 0), 0));
  for (const auto& event : std::span(rung).first(count))
    if (auto* const from = client(static_cast<ClientId>(event.data.u64)); from != nullptr)
      rang_in_vain(*from);  // collect_bells_of() returns the credit if there is something new
}

void Service::Impl::rang_in_vain(Client& client) {
  if (client.leaving || !client.bell_file || !client.bell_credit.rang_in_vain(clock.now())) return;
  ++silences;
  watch_bell(EPOLL_CTL_MOD, client.bell_file.get(), client.id, false);
  silent_until = std::min(silent_until, client.bell_credit.silent_until());
}

void Service::Impl::end_silences() {
  silent_until = kNever;
  for (auto& [id, client] : clients) {
    if (client.leaving || !client.bell_credit.silent()) continue;
    if (client.bell_credit.silent_until() <= clock.now()) {
      STP_ASSERT(client.bell_file, "a client that was silenced has a bell");
      client.bell_credit.listen_again();
      watch_bell(EPOLL_CTL_MOD, client.bell_file.get(), id, true);
    } else {
      silent_until = std::min(silent_until, client.bell_credit.silent_until());
    }
  }
}

}  // namespace stp::service
