// SPDX-License-Identifier: BSD-3-Clause
// Owns the peer's requests to read that the program has not been told of yet, because its queue has
// no place. It promises to keep at most kMost, whatever the peer does.
#pragma once

#include <deque>

#include "libst/managed/reports.h"
#include "stp/transfer/sequencer.h"

namespace stp::managed {

class ReadRequests {
 public:
  // As many as can be open at the Sequencer. A peer that ends its requests and sends new ones could
  // otherwise fill the memory of a program that does not poll.
  static constexpr std::size_t kMost = 1024;

  // Returns false if kMost wait: the caller refuses this one.
  [[nodiscard]] bool add(const Completion& c) {
    if (untold_.size() == kMost) return false;
    untold_.push_back(c);
    return true;
  }
  [[nodiscard]] bool empty() const { return untold_.empty(); }
  void clear() { untold_.clear(); }

  // Reports as many as the queue has places for.
  void tell(Reports& reports) {
    while (!untold_.empty() && reports.events().reserve()) {
      const auto& c = untold_.front();
      auto told = reports.event(STM_READ_REQUEST);
      told.length = c.length;
      told.request = c.request;
      reports.events().push(told);
      untold_.pop_front();
    }
  }

 private:
  std::deque<Completion> untold_;
};

}  // namespace stp::managed
