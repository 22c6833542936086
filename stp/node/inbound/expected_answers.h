// SPDX-License-Identifier: BSD-3-Clause
// The answers to a user's Gets and FetchOps: where each may land, until it arrives or is given up.
// A finished answer is not expected again, however often its request is repeated.
#pragma once

#include <cstdint>
#include <unordered_map>

#include "stp/node/inbound/inbound_block.h"

namespace stp {

class ExpectedAnswers {
 public:
  static constexpr std::size_t kMost = 64;

  // A Get or FetchOp leaves: expects its answer of `length` bytes at the place it names. `value`:
  // the answer is a FetchOp's number. Returns 0 (also for a repeat), -ENOBUFS (kMost are expected),
  // or -EALREADY (the answer arrived or was given up).
  int expect(const wire::Get& get, std::uint64_t length, bool value, const Tiles& tiles);
  // The answer arrived completely, was refused, or is given up.
  void forget(std::uint32_t r_id, std::uint32_t g_num);
  [[nodiscard]] bool empty() const { return blocks_.empty(); }
  // The answer that an STU of `length` bytes belongs to; nullptr: none.
  [[nodiscard]] InboundBlock* find(const wire::DataView& data, std::size_t length,
                                   const Tiles& tiles);
  void clear();

 private:
  static std::uint64_t key(std::uint32_t r_id, std::uint32_t g_num) {
    return std::uint64_t{r_id} << 32 | g_num;
  }
  [[nodiscard]] bool is_over(std::uint32_t g_num);

  std::unordered_map<std::uint64_t, InboundBlock> blocks_;  // by (R_id, G_num)
  // Finished G_nums of ours: the newest that left, and bit n for the G_num n before it.
  bool any_ = false;
  std::uint32_t newest_ = 0;
  std::uint64_t over_ = 0;
};

}  // namespace stp
