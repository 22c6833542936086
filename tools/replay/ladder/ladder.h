// SPDX-License-Identifier: BSD-3-Clause
// A capture as a ladder: a column for each station, an arrow for each frame of STP, what check
// finds beside it. It holds what the pictures need, and no more frames than it was told to.
#pragma once

#include <array>
#include <limits>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "tools/replay/check/checker.h"
#include "tools/replay/check/connection.h"
#include "tools/replay/text.h"

namespace stp::replay {

struct Conversation {
  EndName first, second;    // first: who spoke first; the Port of `second` is 0 until it is known
  std::uint16_t uport = 0;  // what an RC asked for, or 0
};

// Numbers the connections of a trace, for pictures: which connection each frame belongs to, by the
// stations and Ports that it names. A Port pair that is requested anew begins another connection.
class Conversations {
 public:
  // The index of the conversation that a frame with a header belongs to. Call it in order.
  std::size_t of(const Decoded& frame);
  [[nodiscard]] const std::vector<Conversation>& all() const { return all_; }

 private:
  struct Name {
    EndName low, high;
    friend bool operator==(const Name&, const Name&) = default;
  };
  struct NameHash {
    std::size_t operator()(const Name& name) const {
      return EndHash()(name.low) * 31 + EndHash()(name.high);
    }
  };
  struct Request {
    std::size_t conversation = 0;
    std::uint32_t key = 0;
    bool answered = false;
  };
  std::size_t of_request(const Decoded& frame, const EndName& from, const EndName& to);
  std::size_t begin(const EndName& first, const EndName& second, std::uint16_t uport);

  std::vector<Conversation> all_;
  std::unordered_map<Name, std::size_t, NameHash> by_ends_;
  // By who asks, and the station that is asked, with Port 0.
  std::unordered_map<Name, Request, NameHash> requests_;
};

struct LadderRow {
  static constexpr std::size_t kNone = std::numeric_limits<std::size_t>::max();

  std::uint64_t number = 0;          // of the frame in the capture
  std::string time;                  // seconds since the capture began
  std::size_t from = 0, to = 0;      // stations
  std::size_t conversation = kNone;  // kNone: the frame has no header
  std::string operation;             // "RTS", or "?" for a frame that is not well formed
  std::string text;                  // the operation and its fields, what is wrong with the form
  std::vector<std::size_t> findings;
};

class Ladder {
 public:
  struct Limits {
    std::uint64_t from = 1;        // number of the first frame that is drawn
    std::size_t frames = 100'000;  // that are drawn, at most
  };
  // More stations than this share the last column; more findings are counted, but not drawn.
  static constexpr std::size_t kMostStations = 64, kMostFindings = 10'000;

  Ladder(std::string title, const Limits& limits) : title_(std::move(title)), limits_(limits) {}

  // Frames in their order; a finding after the frame that it is about.
  void add(const Decoded& frame, const std::vector<Detail>& details);
  void add(const Finding& finding);

  [[nodiscard]] const std::string& title() const { return title_; }
  [[nodiscard]] const std::vector<std::string>& stations() const { return stations_; }
  [[nodiscard]] const std::vector<LadderRow>& rows() const { return rows_; }
  [[nodiscard]] const std::vector<Finding>& findings() const { return findings_; }
  [[nodiscard]] const std::vector<Conversation>& conversations() const {
    return conversations_.all();
  }
  // What the capture has beside what is drawn.
  [[nodiscard]] std::uint64_t other_frames() const { return other_frames_; }
  [[nodiscard]] std::uint64_t other_findings() const { return other_findings_; }

 private:
  std::size_t station(const MacAddr& mac, const std::string& text);

  std::string title_;
  Limits limits_;
  std::int64_t start_ = 0;
  bool started_ = false;
  std::vector<std::string> stations_;
  std::map<std::uint64_t, std::size_t> by_mac_;
  std::vector<LadderRow> rows_;
  std::vector<Finding> findings_;
  Conversations conversations_;
  std::uint64_t other_frames_ = 0, other_findings_ = 0;
};

// "02:00:00:00:00:01 Port 101 – 02:00:00:00:00:02 Port 202, UPort 3000"
std::string name_of(const Conversation& conversation);

// The page of docs/ that explains a rule, below `pages`, the address of that folder.
std::string link_of(const RuleText& rule, const std::string& pages);

// The colour of an operation's arrow, by what it is for: connections, grants, DATA, the rest.
const char* colour_of(std::string_view operation);
inline constexpr const char* kWrongColour = "#cf222e";

// The ladder as a page that needs nothing else: it scrolls, filters and shows fields. And as a
// picture.
std::string html_of(const Ladder& ladder, const std::string& pages);
std::string svg_of(const Ladder& ladder, const std::string& pages);

}  // namespace stp::replay
