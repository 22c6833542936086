// SPDX-License-Identifier: BSD-3-Clause
// Who gets into the daemon: programs while there is a place and a file for them, operators always.
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <mutex>
#include <utility>

#include "libst/service/limits.h"
#include "libst/service/server.h"

namespace stp::service {

void Server::admit() {
  UniqueFd socket(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (!socket) {
    // Out of descriptors: the client waits in the backlog, and epoll would never rest.
    auto const error = errno;
    if (error != EMFILE && error != ENFILE && error != ENOMEM && error != ENOBUFS) return;
    watch_listener(false);
    if (std::exchange(starved_, true)) return;
    return log(LogLevel::kError, std::string("a client has to wait: ") + std::strerror(error));
  }
  starved_ = false;
  auto const who = identify_peer(socket.get(), admin_group_);
  if (!who) return;
  bool const scarce = socket.get() >= first_reserved_file_;
  bool operating = false;
  if (!find_place(*who, scarce, operating))
    return refuse(*who, scarce
                            ? "no more files may be open: raise the limit, LimitNOFILE of systemd"
                            : std::to_string(most_clients_) + " are connected already");
  ClientId client = 0;
  {
    std::lock_guard guard(service_.lock());
    client = service_.add_client(who->uid == 0);
    service_.identify(client, *who);
  }
  if (client == 0)
    return log(LogLevel::kError, std::string("client refused: ") + std::strerror(errno));
  auto const& peer =
      peers_.emplace(client, Peer{std::move(socket), client, *who, false, operating, ++asked_})
          .first->second;
  if (operating) ++operators_;
  ++counts_.clients;
  log(LogLevel::kInfo, "client " + std::to_string(client) + " connected: pid " +
                           std::to_string(who->pid) + ", uid " + std::to_string(who->uid));
  if (watch(peer.socket.get(), client) != 0) drop(client, std::strerror(errno));
}

void Server::refuse(const ClientIdentity& who, const std::string& why) {
  ++counts_.refused;
  log(LogLevel::kWarning, "client refused: pid " + std::to_string(who.pid) + ": " + why);
}

// Whoever may administer the daemon gets in when it is full, or short of files, too. Programs of an
// administrator do not: what they ask disconnects them.
bool Server::find_place(const ClientIdentity& who, bool scarce, bool& operating) {
  operating = scarce || peers_.size() - operators_ >= most_clients_;
  if (!operating) return true;
  if (!who.administrator) return false;
  if (operators_ >= limits::kOperatorPlaces) make_room_for_operator();
  return true;
}

// A tool that was left running somewhere must not keep out who needs to look now.
void Server::make_room_for_operator() {
  auto longest = peers_.end();
  for (auto at = peers_.begin(); at != peers_.end(); ++at) {
    if (!at->second.operating) continue;
    if (longest == peers_.end() || at->second.last_asked < longest->second.last_asked) longest = at;
  }
  drop(longest->first, "another operator needs the place");
}

}  // namespace stp::service
