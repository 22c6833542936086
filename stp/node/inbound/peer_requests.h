// SPDX-License-Identifier: BSD-3-Clause
// What a connection's peer has asked for and what it has ended, by its own ids (I_ids): a grant is
// measured by what was offered, and nothing is granted of what has ended. Both are bounded: of more
// the oldest is forgotten.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "stp/base/work_meter.h"
#include "stp/wire/operation.h"

namespace stp {

class PeerRequests {
 public:
  static constexpr std::size_t kMaxOffers = 64, kMaxEnded = 64;

  // A Request_To_Send.
  struct Offer {
    std::uint32_t i_id = 0;
    std::uint64_t t_len = 0;
    unsigned max_block = 0;
    bool fresh = false;  // no CTS has begun a Transfer of it yet
  };

  // An RTS arrived. `repeated`: its Transfer is under way already.
  void offered(const wire::RequestToSend& rts, bool repeated) {
    Offer const offer{rts.i_id, rts.t_len, rts.max_block, !repeated};
    if (auto* const known = find(rts.i_id)) {
      *known = offer;
    } else if (offers_.size() < kMaxOffers) {
      offers_.push_back(offer);
    } else {
      offers_[next_offer_++ % kMaxOffers] = offer;
    }
  }
  // What the peer calls `i_id`; nullptr: it has not offered that, or long ago.
  [[nodiscard]] const Offer* offer(std::uint32_t i_id) const {
    return const_cast<PeerRequests*>(this)->find(i_id);
  }
  // A CTS begins a Transfer of it. It is no fresh offer any more.
  void begun(std::uint32_t i_id) {
    if (auto* const known = find(i_id)) known->fresh = false;
  }

  // An END of the peer's, which calls it `i_id`, and us `r_id` (kNoId: it does not know).
  void ended(std::uint32_t i_id, std::uint32_t r_id) {
    forget_ended(i_id);
    if (ended_.size() == kMaxEnded) ended_.erase(ended_.begin());
    ended_.push_back({i_id, r_id});
    work::count("ENDs", ended_.size());
  }
  // What the peer called `i_id` before is another's matter: it asks anew, or our user has seen the
  // end.
  void forget_ended(std::uint32_t i_id) {
    std::erase_if(ended_, [&](const Ended& e) { return e.i_id == i_id; });
  }
  // protocol: 7.12
  [[nodiscard]] bool has_ended(std::uint32_t i_id, std::uint32_t r_id) const {
    return std::ranges::any_of(ended_, [&](const Ended& e) {
      return e.i_id == i_id && (e.r_id == wire::kNoId || e.r_id == r_id);
    });
  }

  void clear() {
    offers_.clear();
    ended_.clear();
  }

 private:
  struct Ended {
    std::uint32_t i_id, r_id;
  };

  Offer* find(std::uint32_t i_id) {
    work::count("Requests_To_Send", offers_.size());
    auto const found = std::find_if(offers_.begin(), offers_.end(),
                                    [&](const Offer& o) { return o.i_id == i_id; });
    return found == offers_.end() ? nullptr : &*found;
  }

  std::vector<Offer> offers_;
  std::size_t next_offer_ = 0;
  std::vector<Ended> ended_;  // by ENDs that no EA has answered yet: the newest
};

}  // namespace stp
