// SPDX-License-Identifier: BSD-3-Clause
// Losses that no operation of the program tells of. The program hears of a lost message by its next
// call that names the peer, once. Of a peer that is not heard any more each receive tells that
// names it, until the peer connects, or the program sends to it: a program that goes on after an
// error (Open MPI's collective operations) would else wait for ever for a peer that waits, too.
// `since` is when the peer's address got into the address vector (Av::has_since): who takes it out
// and inserts it again hears of nothing older.
#pragma once

#include <cstdint>
#include <map>
#include <utility>

#include "libst/libfabric/address.h"

namespace stp::fi::rdm {

class Losses {
 public:
  // A message to the peer, which was complete for the program, or injected.
  void add_sent(const Address& peer, int status, std::uint64_t since) {
    of(peer, since).sent = status;
  }
  // Nothing is heard of the peer any more, so a message of it may be lost.
  void add_silence(const Address& peer, int status, std::uint64_t since) {
    of(peer, since).silent = status;
  }
  // Forgets those of peers that are not in the vector, or only again: `has_since` tells.
  template <class HasSince>
  void forget_removed(HasSince has_since) {
    std::erase_if(of_,
                  [&](const auto& each) { return has_since(each.first) != each.second.since; });
  }
  // The peer is heard again, or may be.
  void end_silence(const Address& peer) {
    const auto found = of_.find(peer);
    if (found == of_.end()) return;
    found->second.silent = 0;
    if (found->second.sent == 0) of_.erase(found);
  }

  [[nodiscard]] bool empty() const { return of_.empty(); }
  // For who sends to the peer, or receives from it. A status; 0: there is nothing to tell.
  int take_for_send(const Address& peer) {
    if (of_.empty()) return 0;
    const auto status = take_sent(peer);
    if (status == 0) end_silence(peer);
    return status;
  }
  int take_for_receive(const Address& peer) {
    if (of_.empty()) return 0;
    if (const auto status = take_sent(peer); status != 0) return status;
    const auto found = of_.find(peer);
    return found == of_.end() ? 0 : found->second.silent;
  }

 private:
  struct Loss {
    std::uint64_t since = 0;
    int sent = 0, silent = 0;  // statuses
  };
  Loss& of(const Address& peer, std::uint64_t since) {
    auto& loss = of_[peer];
    if (loss.since != since) loss = {.since = since};
    return loss;
  }
  int take_sent(const Address& peer) {
    const auto found = of_.find(peer);
    if (found == of_.end()) return 0;
    const auto status = std::exchange(found->second.sent, 0);
    if (found->second.silent == 0) of_.erase(found);
    return status;
  }

  std::map<Address, Loss> of_;
};

}  // namespace stp::fi::rdm
