// SPDX-License-Identifier: BSD-3-Clause
// The receiver's view of a Transfer's Blocks: which may be granted, which are complete, and which
// have to be asked for again. Without IO; time is an argument.
//
// Blocks are used in order, so that a file is written and its digest computed front to back: the
// window begins at the first Block not yet used and is as deep as there are buffers.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <vector>

namespace stp::files {

using Clock = std::chrono::steady_clock;
using Time = Clock::time_point;
using Duration = Clock::duration;

class GrantWindow {
 public:
  static constexpr Duration kFirstTimeout = std::chrono::milliseconds(50);
  static constexpr Duration kMinTimeout = std::chrono::milliseconds(25);
  static constexpr Duration kMaxTimeout = std::chrono::milliseconds(250);
  // The link and the sender keep the order of grants, so a Block that this many later grants have
  // overtaken has lost something.
  static constexpr unsigned kOvertaken = 2;

  // `depth`: buffers; Block b lands in buffer b % depth.
  GrantWindow(std::uint32_t block_count, unsigned depth);

  // How many granted Blocks may be on their way at once.
  void set_limit(unsigned limit) { limit_ = limit; }

  // The Block to grant next: one that is overdue, else the next new one. Then granted() it.
  [[nodiscard]] std::optional<std::uint32_t> next_grant(Time now) const;
  void granted(std::uint32_t block, Time now);
  // The sender has not seen our grants: the first Block missing is overdue.
  void ask_again();
  // When next_grant() may have an answer though nothing happens. Time::max(): never.
  [[nodiscard]] Time next_deadline() const;

  // False: not a Block that was granted and is not complete.
  bool complete(std::uint32_t block, Time now);
  // The next Block in order is there: use it, then call used().
  [[nodiscard]] bool ready() const;
  [[nodiscard]] std::uint32_t first() const { return first_; }
  void used();
  [[nodiscard]] bool done() const { return first_ == count_; }
  [[nodiscard]] std::uint64_t repeats() const { return repeats_; }

 private:
  struct Block {
    bool granted = false, complete = false;
    unsigned tries = 0;      // grants sent
    unsigned overtaken = 0;  // Blocks granted after the last of them that are complete
    std::uint64_t first_order = 0, last_order = 0;  // of the first grant and the last
    Time granted_at{};                              // the last of them
    Duration patience{};
  };
  [[nodiscard]] Block& at(std::uint32_t block) { return blocks_[block % blocks_.size()]; }
  [[nodiscard]] const Block& at(std::uint32_t block) const {
    return blocks_[block % blocks_.size()];
  }
  void measure(Duration sample);
  [[nodiscard]] Duration timeout(unsigned tries) const;
  [[nodiscard]] Time deadline(const Block& block) const;
  [[nodiscard]] bool overdue(const Block& block, Time now) const;

  std::uint32_t count_;
  std::uint32_t first_ = 0;  // not yet used
  std::uint32_t next_ = 0;   // never granted
  unsigned limit_;
  unsigned outstanding_ = 0;
  std::uint64_t orders_ = 0, repeats_ = 0;
  bool measured_ = false;
  Duration smoothed_{}, variation_{};
  Time progress_at_{};  // when a Block was last complete
  std::vector<Block> blocks_;
};

}  // namespace stp::files
