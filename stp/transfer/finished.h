// SPDX-License-Identifier: BSD-3-Clause
// The requests of the peer that are over: owns the ids of the last few thousand, so that a late
// repeat of one starts nothing. A repeat of a request that was refused is refused again, because
// the refusal may have been lost.
#pragma once

#include <cstdint>
#include <map>

#include "stp/base/assert.h"
#include "stp/base/ring_queue.h"
#include "stp/transfer/outbox.h"

namespace stp {

// protocol: 9.24, 10.2
class Finished {
 public:
  explicit Finished(Outbox& outbox) : outbox_(outbox) {}

  void remember(std::uint32_t i_id, bool refused = false) {
    const auto [known, added] = refused_.emplace(i_id, refused);
    known->second = refused;
    STP_ASSERT(refused_.size() == order_.size() + (added ? 1U : 0U),
               "each request that is remembered has its place in the order");
    if (!added) return;
    order_.push_back(i_id);
    if (order_.size() <= kMost) return;
    refused_.erase(order_.front());
    order_.pop_front();
  }
  // Refuses a request now and each time that it is repeated. `answer`: the operation that answers.
  void refuse(wire::Op answer, std::uint32_t i_id) {
    outbox_.refuse(answer, i_id);
    remember(i_id, true);
  }
  // Whether the request `i_id` was handled before.
  [[nodiscard]] bool is_over(std::uint32_t i_id, wire::Op answer) {
    const auto found = refused_.find(i_id);
    if (found == refused_.end()) return false;
    if (found->second) outbox_.refuse(answer, i_id);
    return true;
  }

 private:
  static constexpr std::size_t kMost = 4096;

  Outbox& outbox_;
  RingQueue<std::uint32_t> order_;
  std::map<std::uint32_t, bool> refused_;  // true: it was refused
};

}  // namespace stp
