// SPDX-License-Identifier: BSD-3-Clause
// Losses that no operation of the program tells of. The program hears of each by its next call that
// names the peer, once.
#pragma once

#include <cstddef>
#include <unordered_map>

#include "libst/libfabric/address.h"

namespace stp::fi::rdm {

class Losses {
 public:
  // Of the losses of further peers the log alone tells.
  static constexpr std::size_t kMost = 1024;

  // A message to the peer, which was complete for the program, or injected.
  void add_sent(const Address& peer, int status) { add(peer, {.status = status, .sent = true}); }
  // Nothing is heard of the peer any more, so a message of it may be lost.
  void add_silence(const Address& peer, int status) {
    if (!of_.contains(peer)) add(peer, {.status = status, .sent = false});
  }
  // The peer is heard again.
  void end_silence(const Address& peer) {
    if (const auto found = of_.find(peer); found != of_.end() && !found->second.sent)
      of_.erase(found);
  }

  // For who sends to the peer, or receives from it. A status; 0: there is nothing to tell.
  int take_for_send(const Address& peer) { return of_.empty() ? 0 : take(peer, false); }
  int take_for_receive(const Address& peer) { return of_.empty() ? 0 : take(peer, true); }

 private:
  struct Loss {
    int status;
    bool sent;
  };
  void add(const Address& peer, const Loss& loss) {
    if (of_.size() < kMost || of_.contains(peer)) of_.insert_or_assign(peer, loss);
  }
  int take(const Address& peer, bool receives) {
    const auto found = of_.find(peer);
    if (found == of_.end() || (!receives && !found->second.sent)) return 0;
    const auto status = found->second.status;
    of_.erase(found);
    return status;
  }

  std::unordered_map<Address, Loss, HashAddress> of_;
};

}  // namespace stp::fi::rdm
