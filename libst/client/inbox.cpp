// SPDX-License-Identifier: BSD-3-Clause
#include "libst/client/inbox.h"

#include <algorithm>
#include <cerrno>

namespace stp::client {

int Inbox::take(UserChannel& channel, std::uint64_t sender, ReceivedEntry& out) {
  const auto wanted = [sender](const ReceivedEntry& entry) {
    return sender == kAnyone || entry.source_mac == sender;
  };
  if (const auto at = std::find_if(aside_.begin(), aside_.end(), wanted); at != aside_.end()) {
    out = *at;
    aside_.erase(at);
    return 1;
  }
  // Takes headers out of the queue up to the wanted one; if there is none, it takes out all of
  // them, because headers that find the queue full are dropped.
  for (; aside_.size() < kMostAside; aside_.push_back(out)) {
    if (!channel.receive(out)) return 0;
    if (wanted(out)) return 1;
  }
  if (sender == kAnyone) return channel.receive(out) ? 1 : 0;
  return channel.readable() ? -ENOBUFS : 0;
}

}  // namespace stp::client
