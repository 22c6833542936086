// SPDX-License-Identifier: BSD-3-Clause
// Receives on arrival: starts a write although earlier messages have not arrived. Marks its message
// as handled, so that the order of the others does not change.
#include <algorithm>

#include "stp/base/assert.h"
#include "stp/transfer/sequencer_impl.h"

namespace stp {

// protocol: 9.33
std::deque<WaitingOffer>::iterator Sequencer::Impl::first_ahead() {
  return std::find_if(waiting.begin(), waiting.end(), [this](const WaitingOffer& offer) {
    const auto ahead = offer.msn - expected_msn;
    return offer.msn != 0 && ahead != 0 && ahead < kMaxAhead && !skipped.contains(offer.msn);
  });
}

std::optional<Offer> Sequencer::waiting_ahead() {
  impl_->pass_stale();
  const auto found = impl_->first_ahead();
  if (found == impl_->waiting.end()) return std::nullopt;
  return Offer{found->length, found->msn};
}

void Sequencer::receive_ahead(Context context, const Landing& landing) {
  const auto found = impl_->first_ahead();
  if (found == impl_->waiting.end()) return;
  const auto offer = *found;
  impl_->waiting.erase(found);
  STP_ASSERT(offer.msn != impl_->expected_msn, "a write that is begun ahead has its turn later");
  impl_->skipped.insert(offer.msn);
  impl_->begin(offer, Completion::Kind::kReceive, context, landing, impl_->clock);
}

}  // namespace stp
