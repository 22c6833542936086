// SPDX-License-Identifier: BSD-3-Clause
// Clients that were accepted and wait to be admitted. Users have their turn one after the other, so
// one that connects without pause delays its own programs only. Operators have every second turn.
#pragma once

#include <sys/types.h>

#include <array>
#include <cstddef>
#include <deque>
#include <map>
#include <optional>

#include "libst/os/unique_fd.h"
#include "libst/service/identity.h"

namespace stp::service {

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

}  // namespace stp::service
