// SPDX-License-Identifier: BSD-3-Clause
#include "libst/service/waiting_room.h"

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

}  // namespace stp::service
