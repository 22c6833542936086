// SPDX-License-Identifier: BSD-3-Clause
// What the follower knows of one Port without a connection. Its Key and sizes are in no answer:
// they are learnt from what others send to it (docs/protocol.md, section 11).
#pragma once

#include <bit>

#include "stp/wire/layout.h"
#include "tools/replay/check/connection_table.h"

namespace stp::replay {

// What the lengths and places of STUs say about their size, a power of two.
class StuSize {
 public:
  // False: no size lets an STU of that length stand there.
  bool allow(std::uint32_t stu_num, bool last, std::uint64_t offset, std::uint64_t length) {
    auto least = least_, most = most_;
    if (length > 1) least = std::max(least, static_cast<unsigned>(std::bit_width(length - 1)));
    auto const divides = [&](std::uint64_t place) {
      if (place != 0) most = std::min(most, static_cast<unsigned>(std::countr_zero(place)));
    };
    if (stu_num != 0) divides(offset);    // it begins its tile
    if (!last) divides(offset + length);  // it ends it
    if (stu_num != 0 && !last) divides(length);
    if (least > most) return false;
    least_ = least;
    most_ = most;
    return true;
  }
  [[nodiscard]] bool known() const { return least_ == most_; }
  [[nodiscard]] unsigned log2() const { return most_; }

 private:
  unsigned least_ = wire::kMinMaxStu, most_ = wire::kMaxMaxStu;
};

struct BlockName {
  EndName sender;
  std::uint32_t d_id = 0, b_num = 0;
  friend bool operator==(const BlockName&, const BlockName&) = default;
};
struct BlockNameHash {
  std::size_t operator()(const BlockName& name) const {
    return EndHash()(name.sender) * 31 + (std::uint64_t{name.d_id} << 32 ^ name.b_num);
  }
};

struct SentBlock {
  struct Stu {
    std::uint32_t number = 0, bufx = 0, offset = 0;
    std::uint64_t length = 0;
  };
  Block block;
  Stu newest;
  TraceTime sent = kNotYet;   // its newest STU
  TraceTime whole = kNotYet;  // since when all of it has been sent
};

struct Endpoint {
  std::optional<std::uint32_t> key;
  // The Key that was used before, and who first used the present one.
  std::optional<std::uint32_t> key_before;
  EndName key_by;
  TraceTime key_since = kNotYet;
  std::uint64_t key_frame = 0;
  EndName sender;        // the first that was seen
  bool certain = false;  // and no connection of before the capture
  StuSize stu_size;
  std::optional<unsigned> bufsize;
  Recent<BlockName, SentBlock, 512, BlockNameHash> blocks;
};

}  // namespace stp::replay
