// SPDX-License-Identifier: BSD-3-Clause
// What a trace does not show of the station: when it restarted, which of two values it had
// received, what it dropped for want of Slots, and when it gave up.
#pragma once

#include <map>
#include <set>
#include <vector>

#include "tools/replay/play/subject.h"

namespace stp::replay {

// Finds restarts of a station in a trace. A restarted station knows nothing of earlier connections.

// Places of a trace: from `begin` up to, but not including, `end`.
struct Life {
  std::size_t begin = 0, end = 0;
};

// Returns one Life, unless the station gives the Port of a live connection to another one.
std::vector<Life> lives_of(const std::deque<Recorded>& trace, const MacAddr& station);

// Returns a copy of those frames.
std::deque<Recorded> piece_of(const std::deque<Recorded>& trace, const Life& life);

// Finds Transfers for which a peer sent two different values under one id shortly before the
// station sent a frame about it. The trace does not show which of the two the station had received
// by then.
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

// Finds operations that the station dropped because it had no free Slot. A trace does not show when
// its users read their queues. A Node in its place, whose users read at once, would accept these
// operations.
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

// Finds connections that the station gave up because its peer was silent for too long. A Node in
// its place has other timers, so the trace does not show when the Node would give up.
class GivenUp {
 public:
  GivenUp(const std::deque<Recorded>& trace, const MacAddr& station);

  // Whether the station ignores the frame at that place because the connection has failed.
  [[nodiscard]] bool ignores(std::size_t at) const;
  // Whether the connection of that frame fails in the end.
  [[nodiscard]] bool fails(std::size_t at) const {
    return from_.contains(line_of(trace_[at], station_));
  }

 private:
  const std::deque<Recorded>& trace_;
  MacAddr station_;
  std::map<Line, std::size_t> from_;  // the first frame that was ignored
};

}  // namespace stp::replay
