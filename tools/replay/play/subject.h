// SPDX-License-Identifier: BSD-3-Clause
// A whole trace in memory: playing needs it, because later frames determine what a user has to do.
// What takes the place of one of its stations, and the names that it chooses for itself.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tools/replay/capture.h"

namespace stp::replay {

// A station's frame may reach the capture this long after it was sent, in nanoseconds.
inline constexpr std::int64_t kOnItsWay = 1'000'000;

struct Recorded {
  std::vector<std::byte> bytes;
  Decoded decoded;  // points into `bytes`
};

// Returns nullopt if the trace cannot be played: `error` says why. Calls `see` with each frame as
// it was captured; later those of datagrams have no addresses.
std::optional<std::deque<Recorded>> record(
    Capture& capture, std::string& error,
    const std::function<void(const Decoded&)>& see = [](const Decoded&) {});

// An RS with which a Node asks about its credit, or whether its peer is alive.
// protocol: 6.10
inline bool own_question(const wire::Header& h) {
  return h.op() == wire::Op::kRequestState && h.d_id == wire::kNoId && h.b_num == wire::kNoId;
}

// A connection as one side identifies it: its own Port, the peer's address and Port.
struct Line {
  std::uint16_t own = 0;
  MacAddr peer_mac;
  std::uint16_t peer = 0;
  friend auto operator<=>(const Line&, const Line&) = default;
};
// The Line of a frame from or to the station.
inline Line line_of(const Recorded& recorded, const MacAddr& station) {
  const auto& frame = recorded.decoded.frame;
  const auto& h = frame.header;
  return frame.src == station ? Line{h.s_port, frame.dst, h.d_port}
                              : Line{h.d_port, frame.src, h.s_port};
}

enum class Name : std::uint8_t { kPort, kKey, kMx, kSync };

// An Mx together with its Port: endpoints have Mx of their own, which may have the same numbers.
inline std::uint32_t mx_at(std::uint16_t port, std::uint16_t mx) {
  return std::uint32_t{port} << 16 | mx;
}

// Maps the names that each implementation chooses for itself, in the trace and on the live side.
// The mapping is one to one.
class Renaming {
 public:
  // Whether the two can be the same, according to what is already bound.
  [[nodiscard]] bool agree(Name kind, std::uint32_t in_trace, std::uint32_t live) const {
    const auto there = to_live_.find({kind, in_trace});
    const auto back = to_trace_.find({kind, live});
    if (there == to_live_.end() && back == to_trace_.end()) return true;
    return there != to_live_.end() && there->second == live && back != to_trace_.end() &&
           back->second == in_trace;
  }
  // Replaces earlier bindings of both.
  void bind(Name kind, std::uint32_t in_trace, std::uint32_t live) {
    if (const auto at = to_live_.find({kind, in_trace}); at != to_live_.end())
      to_trace_.erase({kind, at->second});
    if (const auto at = to_trace_.find({kind, live}); at != to_trace_.end())
      to_live_.erase({kind, at->second});
    to_live_[{kind, in_trace}] = live;
    to_trace_[{kind, live}] = in_trace;
  }
  // Returns the live name. If none is bound, returns the trace's name, or another if that one is
  // bound to a different name.
  [[nodiscard]] std::uint32_t live(Name kind, std::uint32_t in_trace) const {
    const auto at = to_live_.find({kind, in_trace});
    if (at != to_live_.end()) return at->second;
    return to_trace_.contains({kind, in_trace}) ? in_trace ^ 0x8000 : in_trace;
  }
  // Returns the live Mx that stands for an Mx of a Port, both of the trace. If none is bound,
  // returns one that stands for no other at that Port.
  [[nodiscard]] std::uint16_t live_mx(std::uint16_t port, std::uint16_t mx) const {
    const auto at = to_live_.find({Name::kMx, mx_at(port, mx)});
    if (at != to_live_.end()) return static_cast<std::uint16_t>(at->second);
    const auto live_port = static_cast<std::uint16_t>(live(Name::kPort, port));
    return to_trace_.contains({Name::kMx, mx_at(live_port, mx)}) ? mx ^ 0x8000 : mx;
  }
  [[nodiscard]] bool knows(Name kind, std::uint32_t in_trace) const {
    return to_live_.contains({kind, in_trace});
  }

 private:
  std::map<std::pair<Name, std::uint32_t>, std::uint32_t> to_live_, to_trace_;
};

// What takes the place of a station of a trace: a Node, or a peer on a real link.
class Subject {
 public:
  // Called with each frame that it sends.
  using Output = std::function<void(const Recorded&)>;
  virtual ~Subject() = default;

  // Whether it may be given more Slots than the peer of the trace has.
  [[nodiscard]] virtual bool wants_credit() const = 0;

  // Advances the trace's clock to `now`.
  virtual void advance(std::int64_t now) = 0;
  // Delivers a frame, which has the subject's names. `at`: its place in the trace.
  virtual void deliver(std::size_t at, Bytes frame) = 0;
  // The trace shows that the station sends frame `at`. If that was a user's decision, makes the
  // same decision. Returns false if the subject cannot do it.
  virtual bool decide(std::size_t at) = 0;
};

}  // namespace stp::replay
