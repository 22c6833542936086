// SPDX-License-Identifier: BSD-3-Clause
#include "libst/service/listener.h"

#include <sys/epoll.h>
#include <sys/socket.h>

#include <cerrno>
#include <utility>

#include "stp/base/assert.h"

namespace stp::service {

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

int Listener::open(const std::string& path, const SocketAccess& access) {
  return listen_at(path, doors_[kAll].socket, doors_[kAll].file, access);
}

int Listener::open_for_operators(const std::string& path, std::optional<gid_t> group) {
  auto& door = doors_[kOperators];
  const auto beside = operators_socket_of(path);
  SocketAccess access;
  access.mode = group ? 0660 : 0600;
  access.group = group;
  const auto error = listen_at(beside, door.socket, door.file, access);
  if (error != -EPERM || !group) return error;
  access = {};
  access.mode = 0600;
  const auto without = listen_at(beside, door.socket, door.file, access);
  return without == 0 ? error : without;
}

std::vector<UniqueFd> Listener::end() {
  std::vector<UniqueFd> sockets;
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

UniqueFd Listener::accept(int& error, bool& as_operator) {
  last_ = (last_ + 1) % doors_.size();
  UniqueFd socket;
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

}  // namespace stp::service
