// SPDX-License-Identifier: BSD-3-Clause
// Finds operations that the station dropped because it had no free Slot. A trace does not show when
// its users read their queues. A Node in its place, whose users read at once, would accept these
// operations.
#pragma once

#include <map>
#include <set>
#include <vector>

#include "tools/replay/play/recording.h"

namespace stp::replay {

class Shortage {
 public:
  Shortage(const std::deque<Recorded>& trace, const MacAddr& station);

  // Whether the frame at that place was dropped because no Slot was free: its sender has used all
  // Slots that the station announced, and a later frame of the station shows that it did not take
  // it.
  [[nodiscard]] bool drops(std::size_t at) const { return dropped_.contains(at); }

 private:
  struct Block {
    std::set<std::uint32_t> stus;
    std::optional<std::uint32_t> last;   // STU_num of the STU with Last
    std::optional<std::uint32_t> asked;  // its Sync, with Send_state
    bool silent = false;

    [[nodiscard]] bool whole() const { return last && stus.size() == *last + std::size_t{1}; }
  };
  using BlockName = std::pair<std::uint32_t, std::uint32_t>;  // R_id, B_num
  // The Slots that the peer of one connection has used, and its limit from the station's answers.
  struct Use {
    std::uint32_t key = 0;  // of the side that has answered the RC
    std::uint64_t used = 0, limit = 0;
    std::map<std::uint32_t, std::uint64_t> asked;  // `used` when a question came, by Sync
    std::map<BlockName, Block> open;
  };

  void hear(std::size_t at);
  void hear_data(std::size_t at, Use& use);
  void say(std::size_t at);
  void begin(const Line& line, std::uint32_t key, std::uint32_t slots);
  [[nodiscard]] bool answered(std::size_t at, std::uint32_t sync) const;
  [[nodiscard]] bool taken(std::size_t at, const Block& block) const;
  [[nodiscard]] const wire::Header& header(std::size_t at) const {
    return trace_[at].decoded.frame.header;
  }

  const std::deque<Recorded>& trace_;
  MacAddr station_;
  // Places of its RSR, by Sync.
  std::map<std::pair<Line, std::uint32_t>, std::vector<std::size_t>> answers_;
  std::map<std::uint16_t, std::uint32_t> asking_;  // Slots of the station's RC, by its Port
  std::map<Line, Use> uses_;
  std::set<std::size_t> dropped_;
};

}  // namespace stp::replay
