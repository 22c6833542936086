// SPDX-License-Identifier: BSD-3-Clause
// The sender's view of a Transfer's Blocks: which stand in a transmit buffer, which the receiver
// has asked for, which have arrived. Without IO.
//
// A buffer is used again only when B_seq covers its Block: what an RSR says, never a guess.
#pragma once

#include <stp/st.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

namespace stp::files {

class SendWindow {
 public:
  // `depth`: buffers; Block b is sent from buffer b % depth.
  SendWindow(std::uint32_t block_count, unsigned depth) : count_(block_count), buffers_(depth) {}

  [[nodiscard]] bool done() const { return b_seq_ == count_; }
  [[nodiscard]] std::uint32_t b_seq() const { return b_seq_; }

  // Blocks are loaded in order, each into the buffer of one that has arrived.
  [[nodiscard]] bool can_load() const {
    return loaded_ != count_ && loaded_ - b_seq_ < buffers_.size();
  }
  [[nodiscard]] std::uint32_t next_load() const { return loaded_; }
  // The link may still read this buffer, for a repeat that turned out to be needless.
  [[nodiscard]] bool flush_before_load() const { return at(loaded_).sent > 1; }
  void loaded() { at(loaded_++) = Buffer{}; }

  // True: B_seq has grown.
  bool acknowledge(std::uint32_t b_seq) {
    if (b_seq <= b_seq_ || b_seq > loaded_) return false;
    b_seq_ = b_seq;
    return true;
  }

  // A CTS. True: it asks for a Block that no CTS asked for before.
  bool ask(const st_header_t& cts) {
    auto const b = cts.b_num;
    if (b < b_seq_ || b >= count_ || b - b_seq_ >= buffers_.size()) return false;
    // A Block not loaded yet has its CTS kept; more than one for it say the same.
    auto const waiting = std::find_if(asked_.begin(), asked_.end(),
                                      [&](const st_header_t& h) { return h.b_num == b; });
    auto const fresh = waiting == asked_.end() && (b >= loaded_ || at(b).sent == 0);
    if (waiting != asked_.end())
      *waiting = cts;
    else
      asked_.push_back(cts);
    return fresh;
  }
  // The next CTS that can be answered now.
  std::optional<st_header_t> answer() {
    std::erase_if(asked_, [&](const st_header_t& h) { return h.b_num < b_seq_; });
    auto const next = std::find_if(asked_.begin(), asked_.end(),
                                   [&](const st_header_t& h) { return h.b_num < loaded_; });
    if (next == asked_.end()) return std::nullopt;
    auto const cts = *next;
    asked_.erase(next);
    if (at(cts.b_num).sent++ > 0) ++repeats_;
    return cts;
  }
  [[nodiscard]] std::uint64_t repeats() const { return repeats_; }

 private:
  struct Buffer {
    unsigned sent = 0;
  };
  [[nodiscard]] Buffer& at(std::uint32_t block) { return buffers_[block % buffers_.size()]; }
  [[nodiscard]] const Buffer& at(std::uint32_t block) const {
    return buffers_[block % buffers_.size()];
  }

  std::uint32_t count_;
  std::uint32_t b_seq_ = 0;   // the first Block not complete at the receiver
  std::uint32_t loaded_ = 0;  // the first Block not in a buffer
  std::uint64_t repeats_ = 0;
  std::vector<Buffer> buffers_;
  std::vector<st_header_t> asked_;
};

}  // namespace stp::files
