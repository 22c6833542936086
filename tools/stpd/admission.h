// SPDX-License-Identifier: BSD-3-Clause
// Where clients come in: the sockets on which stpd accepts them, and the line in which they wait.
#pragma once

#include <sys/types.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "libst/host/identity.h"
#include "libst/ipc/socket.h"
#include "libst/os/unique_fd.h"

namespace stp::service {

// Clients that were accepted and wait to be admitted. Users have their turn one after the other, so
// one that connects without pause delays its own programs only. Operators have every second turn.
class WaitingRoom {
 public:
  struct Guest {
    ClientIdentity who;
    UniqueFd socket;
  };
  explicit WaitingRoom(std::size_t most) : most_(most) {}

  // Returns who finds no place if the room is full: the newest of the user with the most, which may
  // be this one.
  [[nodiscard]] std::optional<Guest> enter(Guest guest);
  // The next to admit: the oldest of the user whose turn it is. nullopt: nobody waits.
  std::optional<Guest> next();
  [[nodiscard]] bool empty() const { return size_ == 0; }
  [[nodiscard]] std::size_t size() const { return size_; }

 private:
  using Line = std::deque<Guest>;
  struct Group {
    std::map<uid_t, Line> lines;  // none is empty
    uid_t last = 0;               // whose turn it was
  };
  [[nodiscard]] Group& group_of(const ClientIdentity& who) {
    return groups_[who.administrator ? 1 : 0];
  }
  Guest leave(Group& group, std::map<uid_t, Line>::iterator line, bool newest);
  Guest displaced();

  const std::size_t most_;
  std::size_t size_ = 0;
  std::array<Group, 2> groups_;  // programs, operators
  std::size_t turn_ = 0;         // the group that is served next
};

// The sockets on which stpd accepts clients, and their files: one for all programs, and beside it
// one of the operators, whose backlog no other program can fill. It stops listening for a moment
// when no descriptor is free, because epoll would report it again and again; clients wait in the
// backlog meanwhile.
class Listener {
 public:
  // How long the listener accepts no clients after pause().
  static constexpr std::chrono::milliseconds kPause{100};

  // Creates the socket for all programs. Returns 0; -EADDRINUSE: another daemon answers there; or
  // another negative errno.
  int open(const std::string& path, const SocketAccess& access);
  // Creates the one at operators_socket_of(path), which root, this user and the members of `group`
  // may open. -EPERM: it cannot be given to that group, and is open for the others; or another
  // negative errno: operators have the first one only.
  int open_for_operators(const std::string& path, std::optional<gid_t> group);
  [[nodiscard]] bool is_open() const { return static_cast<bool>(doors_[kAll].socket); }
  // Removes the files. Closing the result also closes the connections in the backlogs and the
  // descriptors in their messages, which may block.
  std::vector<UniqueFd> end();

  // From now on epoll reports clients under this key.
  void watch(int epoll, std::uint64_t key);
  [[nodiscard]] bool is_paused() const { return !watched_; }
  void pause();
  // Ends a pause: at once, or `if_due`.
  void resume();
  void resume_if_due();

  // Accepts a client, of each socket in turn. Without one, `error` is an errno; starved(error)
  // tells whether clients have to wait because the process or the machine is short of something.
  // `as_operator`: it came through the operators' socket.
  UniqueFd accept(int& error, bool& as_operator);
  static bool starved(int error);

 private:
  using Clock = std::chrono::steady_clock;
  struct Door {
    UniqueFd socket;
    SocketFile file;
  };
  enum : std::size_t { kAll, kOperators, kDoors };

  std::array<Door, kDoors> doors_;
  std::size_t last_ = kAll;  // that accept() has looked at first
  int epoll_ = -1;
  std::uint64_t key_ = 0;
  bool watched_ = false;
  Clock::time_point accepts_from_{};
};

}  // namespace stp::service
