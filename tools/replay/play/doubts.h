// SPDX-License-Identifier: BSD-3-Clause
// Finds Transfers for which a peer sent two different values under one id shortly before the
// station sent a frame about it. The trace does not show which of the two the station had received
// by then.
#pragma once

#include <map>
#include <set>

#include "tools/replay/play/recording.h"
#include "tools/replay/play/renaming.h"

namespace stp::replay {

class Doubts {
 public:
  Doubts(const std::deque<Recorded>& trace, const MacAddr& station);

  // Whether a frame of the station, in the trace or live, belongs to such a Transfer.
  [[nodiscard]] bool concern(const wire::Frame& in_trace) const;
  [[nodiscard]] bool concern(const wire::Frame& live, const Renaming& names) const;
  // A text about them, or an empty string if there are none.
  [[nodiscard]] std::string note() const;

 private:
  using Id = std::pair<Line, std::uint32_t>;
  struct Contradiction {
    std::int64_t time = 0;
    std::uint64_t frame = 0;
  };
  // A Transfer by its R_id, which the station has chosen if it receives.
  struct Transfer {
    Line line;
    bool receives = false;
    std::uint32_t r_id = 0;
    friend auto operator<=>(const Transfer&, const Transfer&) = default;
  };
  static Transfer transfer_of(const wire::Frame& sent);

  void hear(const Decoded& decoded, const Line& line);
  void say(const Decoded& decoded, const Line& line);
  void doubt(const std::map<Id, Contradiction>& contradictions, const Id& id,
             const Decoded& decoded);

  std::map<Id, std::uint64_t> offers_;                           // T_len, by I_id
  std::map<std::pair<Id, std::uint32_t>, wire::Header> grants_;  // by R_id and B_num
  std::map<Id, Contradiction> other_offers_, other_grants_;
  std::set<Transfer> transfers_;
  std::uint64_t first_ = 0;
};

}  // namespace stp::replay
