// SPDX-License-Identifier: BSD-3-Clause
// The peer's offers (RTS) and ENDs, by its own ids (I_ids). A grant is checked against the offer,
// and nothing is granted for an ended Transfer. Both tables are bounded and drop the oldest entry.
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
    bool fresh = false;  // no CTS has started its Transfer yet
  };

  // An RTS arrived. `repeated`: its Transfer is already under way.
  void offered(const wire::RequestToSend& rts, bool repeated) {
    const Offer offer{rts.i_id, rts.t_len, rts.max_block, !repeated};
    if (auto* const known = find(rts.i_id)) {
      *known = offer;
    } else if (offers_.size() < kMaxOffers) {
      offers_.push_back(offer);
    } else {
      offers_[next_offer_++ % kMaxOffers] = offer;
    }
  }
  // The offer that the peer calls `i_id`; nullptr: none, or too long ago.
  [[nodiscard]] const Offer* offer(std::uint32_t i_id) const {
    return const_cast<PeerRequests*>(this)->find(i_id);
  }
  // A CTS starts the Transfer of `i_id`. Its offer is no longer fresh.
  void begun(std::uint32_t i_id) {
    if (auto* const known = find(i_id)) known->fresh = false;
  }

  // The peer sent END: it calls the Transfer `i_id`; we call it `r_id` (kNoId: the peer does not
  // know).
  void ended(std::uint32_t i_id, std::uint32_t r_id) {
    forget_ended(i_id);
    if (ended_.size() == kMaxEnded) ended_.erase(ended_.begin());
    ended_.push_back({i_id, r_id});
    work::count("ENDs", ended_.size());
  }
  // Forgets the END of `i_id`: the peer reuses the id, or our user has seen the END.
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
    const auto found = std::find_if(offers_.begin(), offers_.end(),
                                    [&](const Offer& o) { return o.i_id == i_id; });
    return found == offers_.end() ? nullptr : &*found;
  }

  std::vector<Offer> offers_;
  std::size_t next_offer_ = 0;
  std::vector<Ended> ended_;  // the newest ENDs not yet answered by EA
};

}  // namespace stp
