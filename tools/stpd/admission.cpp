// SPDX-License-Identifier: BSD-3-Clause

#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <exception>
#include <utility>

#include "libst/host/budgets.h"
#include "libst/ipc/socket.h"
#include "libst/os/file_limit.h"
#include "stp/base/assert.h"
#include "stp/base/caught.h"
#include "stp/base/scarce_memory.h"
#include "tools/stpd/server.h"

namespace stp::stpd {

std::optional<WaitingRoom::Guest> WaitingRoom::enter(Guest guest) {
  auto& lines = group_of(guest.who).lines;
  const auto [line, made] = lines.try_emplace(guest.who.uid);
  try {
    line->second.push_back(std::move(guest));
  } catch (...) {  // no memory
    if (made) lines.erase(line);
    throw;
  }
  ++size_;
  if (size_ <= most_) return std::nullopt;
  return displaced();
}

std::optional<WaitingRoom::Guest> WaitingRoom::next() {
  if (empty()) return std::nullopt;
  auto& preferred = groups_[turn_];
  turn_ = (turn_ + 1) % groups_.size();
  auto& group = preferred.lines.empty() ? groups_[turn_] : preferred;
  auto line = group.lines.upper_bound(group.last);
  if (line == group.lines.end()) line = group.lines.begin();
  group.last = line->first;
  return leave(group, line, false);
}

WaitingRoom::Guest WaitingRoom::leave(Group& group, std::map<uid_t, Line>::iterator line,
                                      bool newest) {
  STP_ASSERT(size_ > 0 && !line->second.empty(), "who leaves the room has waited in it");
  auto& guests = line->second;
  auto guest = std::move(newest ? guests.back() : guests.front());
  newest ? guests.pop_back() : guests.pop_front();
  if (guests.empty()) group.lines.erase(line);
  --size_;
  return guest;
}

WaitingRoom::Guest WaitingRoom::displaced() {
  Group* of = nullptr;
  std::map<uid_t, Line>::iterator most;
  for (auto& group : groups_)
    for (auto line = group.lines.begin(); line != group.lines.end(); ++line)
      if (of == nullptr || line->second.size() > most->second.size()) {
        of = &group;
        most = line;
      }
  STP_ASSERT(of != nullptr, "somebody waits in a full room");
  return leave(*of, most, true);
}

int Listener::open(const std::string& path, const ipc::SocketAccess& access) {
  return ipc::listen_at(path, doors_[kAll].socket, doors_[kAll].file, access);
}

int Listener::open_for_operators(const std::string& path, std::optional<gid_t> group) {
  auto& door = doors_[kOperators];
  const auto beside = ipc::operators_socket_of(path);
  ipc::SocketAccess access;
  access.mode = group ? 0660 : 0600;
  access.group = group;
  const auto error = ipc::listen_at(beside, door.socket, door.file, access);
  if (error != -EPERM || !group) return error;
  access = {};
  access.mode = 0600;
  const auto without = ipc::listen_at(beside, door.socket, door.file, access);
  return without == 0 ? error : without;
}

std::vector<os::UniqueFd> Listener::end() {
  std::vector<os::UniqueFd> sockets;
  for (auto& door : doors_) {
    if (!door.socket) continue;
    door.file.remove();
    sockets.push_back(std::exchange(door.socket, {}));
  }
  watched_ = false;
  return sockets;
}

void Listener::watch(int epoll, std::uint64_t key) {
  epoll_ = epoll;
  key_ = key;
  watched_ = false;
  resume();
}

void Listener::pause() {
  accepts_from_ = Clock::now() + kPause;
  if (!std::exchange(watched_, false)) return;
  for (const auto& door : doors_)
    if (door.socket) ::epoll_ctl(epoll_, EPOLL_CTL_DEL, door.socket.get(), nullptr);
}

void Listener::resume() {
  if (watched_ || !is_open()) return;
  watched_ = true;
  for (const auto& door : doors_) {
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.u64 = key_;
    if (door.socket && ::epoll_ctl(epoll_, EPOLL_CTL_ADD, door.socket.get(), &event) != 0 &&
        errno != EEXIST)
      watched_ = false;  // no memory: the next resume() tries again
  }
}

void Listener::resume_if_due() {
  if (Clock::now() >= accepts_from_) resume();
}

os::UniqueFd Listener::accept(int& error, bool& as_operator) {
  last_ = (last_ + 1) % doors_.size();
  os::UniqueFd socket;
  for (std::size_t i = 0; i < doors_.size() && !socket; ++i) {
    const auto which = (last_ + i) % doors_.size();
    const auto& door = doors_[which];
    if (!door.socket) continue;
    as_operator = which == kOperators;
    socket.reset(::accept4(door.socket.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    error = socket ? 0 : errno;
    if (starved(error)) break;
  }
  return socket;
}

bool Listener::starved(int error) {
  return error == EMFILE || error == ENFILE || error == ENOMEM || error == ENOBUFS;
}

namespace {

bool has_hung_up(int socket) {
  pollfd look{.fd = socket, .events = 0, .revents = 0};
  return ::poll(&look, 1, 0) == 1 && (look.revents & POLLHUP) != 0;
}

}  // namespace

// Takes clients out of the backlog, which knows no users, so that each waits in the line of its
// own. Goes on for a moment: clients that are admitted already have their turn in between.
void Server::accept_clients() {
  constexpr std::chrono::milliseconds kMoment{1};
  constexpr int kAtLeast = 64;
  const auto until = Clock::now() + kMoment;
  for (int i = 0; i < kAtLeast || Clock::now() < until; ++i) {
    int error = 0;
    bool as_operator = false;
    auto socket = listener_.accept(error, as_operator);
    if (!socket) return accept_failed(error);
    starved_ = false;
    receive(std::move(socket), as_operator);
  }
}

void Server::accept_failed(int error) {
  if (!Listener::starved(error)) return;
  listener_.pause();
  if (std::exchange(starved_, true)) return;
  log(LogLevel::kError, std::string("a client waits, because it cannot be accepted: ") +
                            std::strerror(error) +
                            (error == ENFILE ? "; raise fs.file-max" : "; raise LimitNOFILE"));
}

// One that has gone again takes nobody's turn, and little time: thousands of them may be before an
// operator in the backlog.
void Server::receive(os::UniqueFd socket, bool as_operator) {
  const auto gone = has_hung_up(socket.get());
  auto who = ipc::identify_peer(socket.get());
  const auto user = who ? who->uid : ipc::kUnknownUser;
  if (gone && ipc::refuses_files(socket.get()) && !slow_sockets_.costs_too_much(user))
    return slow_sockets_.took(user, time_of([&] { socket.reset(); }));
  if (!who || gone) return hang_up(user, std::move(socket));
  who->administrator |= as_operator;  // nobody else may open that socket
  auto refused = waiting_->enter({std::move(*who), std::move(socket)});
  if (!refused) return;
  const auto told = refuse(refused->who, -EBUSY, "too many clients of its user connect at once");
  hang_up(refused->who.uid, std::move(refused->socket), told);
}

// Few per turn: clients that are admitted already have their turn in between.
void Server::admit_clients() {
  constexpr int kAtOnce = 4;
  for (int i = 0; i < kAtOnce; ++i) {
    auto guest = waiting_->next();
    if (!guest) return;
    if (has_hung_up(guest->socket.get()))
      hang_up(guest->who.uid, std::move(guest->socket));
    else
      admit(std::move(*guest));
  }
}

void Server::admit(WaitingRoom::Guest guest) {
  os::UniqueFd process;
  Refused refused;
  try {
    ipc::find_groups(guest.socket.get(), admin_group_, guest.who);
    refused = admit(guest.who, guest.socket, process);
  } catch (const std::exception& failure) {
    log(LogLevel::kError, std::string("a client could not be admitted: ") + what_of(failure));
  }
  closer_->close(guest.who.uid, std::move(process));  // both: if it was refused
  if (guest.socket) hang_up(guest.who.uid, std::move(guest.socket), refused);
}

namespace {

// The answer to a client's first request, whatever that is.
void tell_refusal(int socket, int error, const std::string& why) {
  ipc::ReplyMessage reply;
  reply.refuse(error, why);
  ipc::send_reply(socket, reply, {}, ipc::Wait::kDontWait);
}

}  // namespace

// Only a socket with unread descriptors can block who closes it, and only one that is watched by
// many takes long. Any other one is closed here, so that no client keeps a descriptor after it was
// refused.
void Server::hang_up(uid_t user, os::UniqueFd socket, const Refused& refused) {
  const bool by_another = slow_sockets_.costs_too_much(user) && !foreign_->has_left_sockets(user);
  // Descriptors that are kept for operators hold no more than one such socket of a user.
  const auto most = socket.get() < first_reserved_file_ ? ForeignFiles::kMostUnread : 1;
  SlowSockets::Time time{0};
  if (!by_another)
    time = time_of([&] {
      if (refused.error != 0 && !foreign_->has_too_many_unread(user, most))
        tell_refusal(socket.get(), refused.error, refused.why);
      ::shutdown(socket.get(), SHUT_RDWR);
    });
  slow_sockets_.took(user, time);
  if (ipc::has_unread_by_peer(socket.get()))
    foreign_->keep_until_read(user, std::move(socket));
  else if (by_another || time >= SlowSockets::kSlow || ipc::has_unread_files(socket.get()))
    foreign_->close_socket(user, std::move(socket));
}

Server::Refused Server::admit(const ipc::ClientIdentity& who, os::UniqueFd& socket,
                              os::UniqueFd& process) {
  if (!who.administrator && (foreign_->has_lost(who.uid) || foreign_->has_left_sockets(who.uid)))
    return refuse(who, -EBUSY, "descriptors of its user cannot be closed");
  if (!who.administrator && memory_is_scarce)
    return refuse(who, -ENOMEM, "the system has no memory for stpd: raise what limits it");
  const auto stuck = cannot_close_files_of(who.uid);
  if (!who.administrator && stuck) return refuse(who, -EBUSY, "bells of its user cannot be closed");
  if (!who.administrator && workers_->has_slept(who.uid))
    return refuse(who, -EBUSY, "programs of its user have kept files locked that they share");
  if (!who.administrator && slow_sockets_.costs_too_much(who.uid))
    return refuse(who, -EBUSY, "too many wait for sockets of programs of its user");
  if (!who.administrator && foreign_->has_too_many_unread(who.uid))
    return refuse(who, -EBUSY,
                  "programs of its user that are gone here have not read their last replies");
  if (!who.administrator && is_crowded())
    return refuse(who, -EBUSY, "too many descriptors of clients wait to be closed");
  if (const auto error = ipc::open_process(socket.get(), who.pid, process); error != 0)
    return refuse(who, error, error == -ESRCH ? "its process has ended" : std::strerror(-error));
  const bool scarce = stuck || socket.get() >= first_reserved_file_;
  bool operating = false;
  if (!find_place(who, scarce, operating))
    return scarce ? refuse(who, -EMFILE,
                           "no more files may be open: raise the limit, LimitNOFILE of systemd")
                  : refuse(who, -EDQUOT,
                           std::to_string(most_clients_) +
                               " clients are connected already: raise --max-clients");
  Refused refused;
  std::shared_ptr<host::ProgramUse> use;
  auto client = join(who, operating, use, refused);
  // An operator's programs may have used up the places of that user: it still gets in to watch.
  if (client == 0 && !operating && find_operator_place(who)) {
    operating = true;
    client = join(who, operating, use, refused);
  }
  if (client == 0) return refuse(who, refused.error, refused.why);
  std::vector<host::ClientId> clients(shards_.size());
  clients.front() = client;
  const auto& peer = peers_
                         .emplace(client, Peer{std::move(socket), std::move(process), client,
                                               std::move(clients), std::move(use), who,
                                               std::nullopt, nullptr, operating, false, ++asked_})
                         .first->second;
  if (operating) ++operators_;
  ++counts_.clients;
  log_client(who.uid, LogLevel::kDebug,
             "client " + std::to_string(client) + " connected: pid " + std::to_string(who.pid) +
                 ", uid " + std::to_string(who.uid));
  auto failed = watch(peer.socket.get(), client);
  if (failed == 0 && peer.process) failed = watch(peer.process.get(), client | kProcessBit);
  if (failed != 0)
    drop(client, std::strerror(-failed));
  else
    ipc::permit_files(peer.socket.get(), true);
  return {};
}

host::ClientId Server::join(const ipc::ClientIdentity& who, bool operating,
                            std::shared_ptr<host::ProgramUse>& use, Refused& refused) {
  const auto turn = shards_.front()->drive();
  const auto client = turn->add_client(who, operating, refused.why);
  if (client == 0) refused.error = -errno;
  if (client == 0 && errno != EDQUOT) refused.why = std::strerror(errno);
  use = turn->use_of(client);
  return client;
}

Server::Refused Server::refuse(const ipc::ClientIdentity& who, int error, const std::string& why) {
  ++counts_.refused;
  log_client(who.uid, LogLevel::kWarning,
             "client refused: pid " + std::to_string(who.pid) + ": " + why);
  return {error, why};
}

// All that a user can have may go at once, and then waits for a moment: of each program its
// process, and on each shard its bell and what watches that.
bool Server::cannot_close_files_of(uid_t user) const {
  const auto of_programs = most_clients_ * (1 + 2 * shards_.size());
  return closer_->lost(user) != 0 || closer_->waiting(user) > Closer::kMostPerUser + of_programs;
}

bool Server::is_crowded() const {
  const auto room = os::room_for_foreign_files();
  return foreign_->is_crowded() || (closer_->lost() != 0 && closer_->waiting() > room / 4);
}

// Administrators get in even if the daemon is full or short of descriptors, in a reserved place.
// There the server answers only requests that watch. Any other request, as of an administrator's
// ordinary program, disconnects the client.
bool Server::find_place(const ipc::ClientIdentity& who, bool scarce, bool& operating) {
  operating = scarce || peers_.size() - operators_ >= most_clients_;
  return !operating || find_operator_place(who);
}

bool Server::find_operator_place(const ipc::ClientIdentity& who) {
  if (!who.administrator) return false;
  if (operators_ >= host::limits::kOperatorPlaces) make_room_for_operator();
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

}  // namespace stp::stpd
