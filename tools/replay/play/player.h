// SPDX-License-Identifier: BSD-3-Clause
// Plays a trace against a live Node or a live peer that takes the place of one of its stations, and
// compares what it sends with what the trace shows.
#pragma once

#include <chrono>
#include <limits>
#include <list>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "dpdk_port/link/owners.h"
#include "stp/types.h"
#include "tools/replay/play/subject.h"

struct pcap;

namespace stp::replay {

// When a play over a link has last made connections with a station. For 4 s the station takes the
// requests of a second play for late duplicates of the first (protocol 5.10).
class LastPlay {
 public:
  static constexpr std::chrono::milliseconds kRemembered{4'000};

  // On the machine; a name of its own for each network namespace, interface and station.
  static LastPlay with(int interface, const MacAddr& station);
  // Kept as the time of this file. "": nowhere, and nothing is known.
  explicit LastPlay(std::string path) : path_(std::move(path)) {}

  // How long the station may still remember.
  [[nodiscard]] std::chrono::milliseconds remembered() const;
  void note() const;  // connections have been made until now

 private:
  std::string path_;
};

// A station on a real link, in real time.
class LinkSubject final : public Subject {
 public:
  // Returns nullptr if the interface cannot be used: `error` says why.
  // `others`: the stations in whose names it sends. Waits while the station may take its requests
  // for duplicates of an earlier play's, and says so on stderr.
  static std::unique_ptr<LinkSubject> open(const std::string& link, const MacAddr& station,
                                           const std::set<MacAddr>& others, Output output,
                                           std::string& error);
  ~LinkSubject() override;
  [[nodiscard]] const std::string& error() const { return error_; }

  [[nodiscard]] bool wants_credit() const override { return false; }
  void advance(std::int64_t now) override;
  void deliver(std::size_t at, Bytes frame) override;
  bool decide(std::size_t /*at*/) override { return true; }  // its users decide for themselves

 private:
  struct Close {
    void operator()(pcap* link) const;
  };
  LinkSubject(pcap* link, const MacAddr& station, Output output, LastPlay last)
      : link_(link), station_(station), output_(std::move(output)), last_(std::move(last)) {}
  bool claim(const std::string& link, int index, const std::set<MacAddr>& others,
             std::string& error);
  void read(std::int64_t trace_now);

  std::unique_ptr<pcap, Close> link_;
  MacAddr station_;
  Output output_;
  LastPlay last_;
  bool connected_ = false;  // the station has accepted a connection
  std::vector<std::unique_ptr<port::InterfaceOwner>> owned_;
  std::string error_;
  std::int64_t trace_start_ = -1, real_start_ = 0;
};

struct Difference {
  std::uint64_t frame = 0;     // number in the trace, or 0 if the trace has no such frame
  std::string in_trace, live;  // empty if that side has no such frame
};

// Compares what the live side sends with what the trace shows.
class Matcher {
 public:
  explicit Matcher(Renaming& names) : names_(names) {}

  void reach(std::uint64_t frame) { reached_ = frame; }  // how far the trace has been played
  // The trace is over, and its last frame has this time: frames that are still missing may arrive,
  // and all others are ignored.
  void trace_over(std::int64_t last) {
    over_ = true;
    last_ = last;
  }
  void expect(const Recorded& frame);  // must stay valid at its address
  void sent(const Recorded& frame);    // copied
  // The peer has answered a Node's own RS with that Sync, so no later RS can match it.
  void question_over(std::uint32_t sync);
  // The frames without a partner, in the order of the trace. Repeats of matched frames are not
  // included, because their number depends on the link and on timers. A Node's own questions for
  // Slots are not included either.
  // Nor are frames of the live side that the station may have sent after the trace's end.
  std::vector<Difference> differences();
  // How many those were.
  [[nodiscard]] std::size_t after_end() const { return after_end_; }
  [[nodiscard]] std::size_t matched() const { return matched_; }

 private:
  struct Live {
    std::vector<std::byte> bytes;
    Decoded decoded;
    std::uint64_t reached = 0;
  };
  bool pair(const Decoded& in_trace, const Decoded& live);
  [[nodiscard]] bool is_repeat(const Decoded& in_trace) const;

  Renaming& names_;
  std::list<const Recorded*> expected_;
  std::list<Live> live_;
  std::set<std::vector<std::byte>> done_;  // without local choices
  std::uint64_t reached_ = 0;
  bool over_ = false;
  std::int64_t last_ = std::numeric_limits<std::int64_t>::max();
  std::size_t matched_ = 0, after_end_ = 0;
};

struct PlayResult {
  std::vector<Difference> differences;
  std::vector<std::string> troubles;  // what could not be played
  std::vector<std::string> notes;     // what the trace does not show
  std::string refused;                // why nothing was played
  std::size_t delivered = 0, expected = 0, matched = 0;
};

// Whether the station is on both sides of a connection: none of the two can be played alone.
bool talks_to_itself(const std::deque<Recorded>& trace, const MacAddr& station);

PlayResult play_node(const std::deque<Recorded>& trace, const MacAddr& station);

// Plays to the station itself over the interface `link`, as long as the trace lasts. Sets `error`
// if the link cannot be used.
PlayResult play_link(const std::deque<Recorded>& trace, const MacAddr& station,
                     const std::string& link, std::string& error);

}  // namespace stp::replay
