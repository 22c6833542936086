// SPDX-License-Identifier: BSD-3-Clause
// A sender's view of the Slots free at its peer (section 6).
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

namespace stp {

// protocol: 6.5
class SlotCredit {
 public:
  void reset(std::uint32_t slots) {
    slots_ = credit_ = slots;
    ask_at_ = slots / 2;
  }
  [[nodiscard]] std::uint32_t credit() const { return credit_; }
  [[nodiscard]] bool available() const { return credit_ > 0; }
  // protocol: 6.6
  [[nodiscard]] bool should_ask() const { return credit_ <= ask_at_; }

  void spend() {
    --credit_;
    ++spent_;
  }
  // A question (RS) about the peer's Slots leaves now, marked with `sync`. `unsent` operations
  // already counted by spend() leave after it.
  void asked(std::uint32_t sync, std::uint32_t unsent = 0) {
    asks_[next_++ % asks_.size()] = {sync, spent_ - unsent, true};
  }

  // The answer to question `sync`: `free` Slots were free when the peer handled it. False: no such
  // question is open (an old or repeated answer); nothing changes.
  bool answered(std::uint32_t sync, std::uint32_t free) {
    for (std::size_t i = 0; i < asks_.size(); ++i) {
      const auto at = (next_ + asks_.size() - 1 - i) % asks_.size();
      if (!asks_[at].open || asks_[at].sync != sync) continue;
      const auto since = spent_ - asks_[at].spent;
      close_older(at);
      credit_ = free > since ? free - since : 0;
      // Prevents a question after each operation when the peer reads slowly.
      ask_at_ = std::min(slots_ / 2, credit_ / 2);
      return true;
    }
    return false;
  }

 private:
  struct Ask {
    std::uint32_t sync = 0, spent = 0;
    bool open = false;
  };
  // Closes earlier questions: their answers are older than this one.
  void close_older(std::size_t at) {
    for (auto& ask : asks_)
      if (static_cast<std::int32_t>(asks_[at].spent - ask.spent) >= 0) ask.open = false;
  }

  std::uint32_t slots_ = 0, credit_ = 0, ask_at_ = 0;
  std::uint32_t spent_ = 0;  // wraps at 2^32
  std::array<Ask, 16> asks_{};
  std::size_t next_ = 0;
};

}  // namespace stp
