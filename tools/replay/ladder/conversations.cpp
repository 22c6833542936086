// SPDX-License-Identifier: BSD-3-Clause
#include "tools/replay/ladder/conversations.h"

namespace stp::replay {

std::size_t Conversations::begin(const EndName& first, const EndName& second, std::uint16_t uport) {
  all_.push_back({first, second, uport});
  return all_.size() - 1;
}

// A repeated RC has the Key of the first. Another Key asks for another connection.
std::size_t Conversations::of_request(const Decoded& frame, const EndName& from,
                                      const EndName& to) {
  const auto& h = frame.frame.header;
  const auto known = requests_.find({from, to});
  if (known != requests_.end() && known->second.key == h.offset) return known->second.conversation;
  const auto made = begin(from, to, static_cast<std::uint16_t>(h.d_id));
  requests_[{from, to}] = {made, h.offset, false};
  return made;
}

std::size_t Conversations::of(const Decoded& frame) {
  const auto& h = frame.frame.header;
  const EndName from{frame.frame.src.to_u64(), h.s_port}, to{frame.frame.dst.to_u64(), h.d_port};
  if (h.op() == wire::Op::kRequestConnection) return of_request(frame, from, {to.mac, 0});
  const Name ends = from < to ? Name{from, to} : Name{to, from};
  // The first answer to a request says the other Port; one that refuses has none.
  if (h.op() == wire::Op::kConnectionAnswer) {
    const auto asked = requests_.find({to, {from.mac, 0}});
    if (asked != requests_.end() && !asked->second.answered) {
      asked->second.answered = true;
      all_[asked->second.conversation].second = from;
      by_ends_[ends] = asked->second.conversation;
      return asked->second.conversation;
    }
  }
  const auto known = by_ends_.find(ends);
  if (known != by_ends_.end()) return known->second;
  return by_ends_[ends] = begin(from, to, 0);
}

}  // namespace stp::replay
