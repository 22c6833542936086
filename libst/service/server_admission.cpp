// SPDX-License-Identifier: BSD-3-Clause
// Admits clients: programs while there are places and descriptors for them, operators always.
#include <cerrno>
#include <cstring>
#include <mutex>
#include <utility>

#include "libst/service/limits.h"
#include "libst/service/server.h"

namespace stp::service {

void Server::admit() {
  int error = 0;
  auto socket = listener_.accept(error);
  if (!socket) {
    if (!Listener::starved(error)) return;
    listener_.pause();
    if (std::exchange(starved_, true)) return;
    return log(LogLevel::kError, std::string("a client waits, because it cannot be accepted: ") +
                                     std::strerror(error) + "; raise LimitNOFILE");
  }
  starved_ = false;
  const auto who = identify_peer(socket.get(), admin_group_);
  // Refused: the socket may hold messages with descriptors already, so the closer closes it.
  const auto close = [&] {
    if (socket) foreign_->hang_up(who ? who->uid : kUnknownUser, std::move(socket));
  };
  try {
    if (who) admit(*who, socket);
  } catch (...) {
    close();
    throw;
  }
  close();
  if (foreign_->is_crowded()) listener_.pause();
}

void Server::admit(const ClientIdentity& who, UniqueFd& socket) {
  if (!who.administrator && foreign_->has_lost(who.uid))
    return refuse(who, "descriptors of its user cannot be closed");
  UniqueFd process;
  if (const auto error = open_process(socket.get(), who.pid, process); error != 0)
    return refuse(who, error == -ESRCH ? "its process has ended" : std::strerror(-error));
  const bool scarce = socket.get() >= first_reserved_file_;
  bool operating = false;
  if (!find_place(who, scarce, operating))
    return refuse(who, scarce ? "no more files may be open: raise the limit, LimitNOFILE of systemd"
                              : std::to_string(most_clients_) +
                                    " clients are connected already: raise --max-clients");
  std::string why;
  std::shared_ptr<ProgramUse> use;
  auto client = join(who, operating, use, why);
  // An operator's programs may have used up the places of that user: it still gets in to watch.
  if (client == 0 && !operating && find_operator_place(who)) {
    operating = true;
    client = join(who, operating, use, why);
  }
  if (client == 0) return refuse(who, why);
  std::vector<ClientId> clients(shards_.size());
  clients.front() = client;
  const auto& peer =
      peers_
          .emplace(client, Peer{std::move(socket), std::move(process), client, std::move(clients),
                                std::move(use), who, std::nullopt, false, operating, ++asked_})
          .first->second;
  if (operating) ++operators_;
  ++counts_.clients;
  log_client(who.uid, LogLevel::kInfo,
             "client " + std::to_string(client) + " connected: pid " + std::to_string(who.pid) +
                 ", uid " + std::to_string(who.uid));
  auto failed = watch(peer.socket.get(), client);
  if (failed == 0 && peer.process) failed = watch(peer.process.get(), client | kProcessBit);
  if (failed != 0) drop(client, std::strerror(-failed));
}

ClientId Server::join(const ClientIdentity& who, bool operating, std::shared_ptr<ProgramUse>& use,
                      std::string& why) {
  auto& first = *shards_.front();
  std::lock_guard guard(first.lock());
  const auto client = first.add_client(who, operating, why);
  if (client == 0 && errno != EDQUOT) why = std::strerror(errno);
  use = first.use_of(client);
  return client;
}

void Server::refuse(const ClientIdentity& who, const std::string& why) {
  ++counts_.refused;
  log_client(who.uid, LogLevel::kWarning,
             "client refused: pid " + std::to_string(who.pid) + ": " + why);
}

// Administrators get in even if the daemon is full or short of descriptors, in a reserved place.
// There the server answers only requests that watch. Any other request, as of an administrator's
// ordinary program, disconnects the client.
bool Server::find_place(const ClientIdentity& who, bool scarce, bool& operating) {
  operating = scarce || peers_.size() - operators_ >= most_clients_;
  return !operating || find_operator_place(who);
}

bool Server::find_operator_place(const ClientIdentity& who) {
  if (!who.administrator) return false;
  if (operators_ >= limits::kOperatorPlaces) make_room_for_operator();
  return true;
}

// Drops the operator that has asked nothing for the longest time: a tool that was left running must
// not keep out an operator who needs to look now.
void Server::make_room_for_operator() {
  auto longest = peers_.end();
  for (auto at = peers_.begin(); at != peers_.end(); ++at) {
    if (!at->second.operating) continue;
    if (longest == peers_.end() || at->second.last_asked < longest->second.last_asked) longest = at;
  }
  drop(longest->first, "another operator needs the place");
}

}  // namespace stp::service
