// SPDX-License-Identifier: BSD-3-Clause
// Which stations get long datagrams, or are asked for some, and answer. If some way carries shorter
// packets only, and no router says so, that is all that a link sees of it: a station that is there,
// and from which nothing comes back for the long ones, or none of those that it was asked for.
// Whether they arrived, or were sent, the link cannot know.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "stp/types.h"
#include "stp/wire/big_endian.h"
#include "stp/wire/layout.h"

namespace stp::port {

class UdpWays {
 public:
  // The longest datagrams that any way with IPv6 carries, with the headers before them.
  static constexpr std::size_t kEverywhere = 1'280 - 48;
  // What was sent counts so long, and an answer. What was asked for is late after kLate.
  static constexpr Time kSent = 10 * kSecond, kHeard = 3 * kSecond, kLate = kSecond;

  // Not of what begins().
  void sent(const MacAddr& to, std::size_t bytes, Time now) {
    if (bytes <= kEverywhere) return;
    const std::uint64_t name = to.to_u64();
    Way& way = place(name);
    if (way.name != name) way = {.name = name};
    if (way.sent == kNever || now - way.sent > kSent) way.longest = 0;
    way.longest = std::max(way.longest, bytes);
    way.sent = now;
  }
  // It was asked for so much that long datagrams are to come.
  void asked(const MacAddr& station, Time now) {
    const std::uint64_t name = station.to_u64();
    Way& way = place(name);
    if (way.name != name) way = {.name = name};
    if (way.asked == kNever || now - way.asked > kSent) way.first_asked = now;
    way.asked = now;
  }
  // Strangers, who get nothing that is long, take no place. `begins`: it is of a new connection, as
  // when the station has started anew: then it owes nothing of what was asked before.
  void heard(const MacAddr& from, std::size_t bytes, Time now, bool begins = false) {
    Way& way = place(from.to_u64());
    if (way.name != from.to_u64()) return;
    way.heard = now;
    if (bytes <= kEverywhere) return;
    way.asked = kNever;
    if (begins) way.begun = now;
  }
  // The longest of the datagrams that were sent lately to a station that answers. 0: none.
  [[nodiscard]] std::size_t longest(const MacAddr& station, Time now) const {
    const Way& way = ways_[index(station.to_u64())];
    return answers(way, station, now) && is_recent(way.sent, now) ? way.longest : 0;
  }
  // The station answers, and nothing long has come of what it is asked for.
  [[nodiscard]] bool owes(const MacAddr& station, Time now) const {
    const Way& way = ways_[index(station.to_u64())];
    return answers(way, station, now) && is_recent(way.asked, now) &&
           now - way.first_asked >= kLate && !is_recent(way.begun, now);
  }
  // Whether a frame of STP begins a connection: it is as long as it is to find out what arrives.
  // protocol: 13.20
  static bool begins(Bytes frame) {
    if (frame.size() < wire::kHeaderSize) return false;
    const auto op = op_of(frame);
    return op == wire::Op::kRequestConnection || op == wire::Op::kConnectionAnswer;
  }
  // Whether a frame of STP is sent only by who has got something, and not again by a timer. An RSR
  // without a D_Key is the question of a dial.
  // protocol: 13.20
  static bool answers(Bytes frame) {
    if (frame.size() < wire::kHeaderSize) return false;
    const auto op = op_of(frame);
    const bool asks =
        (wire::load16(frame.data() + wire::at::kOpFlags) & wire::flag::kReject) != 0 &&
        wire::load32(frame.data() + wire::at::kDKey) == 0;
    if (op == wire::Op::kRequestStateResponse && asks) return false;
    return op == wire::Op::kConnectionAnswer || op == wire::Op::kRequestStateResponse ||
           op == wire::Op::kEndAck || op == wire::Op::kDisconnectComplete;
  }
  // Whether a frame of STP asks for more than one datagram carries everywhere.
  static bool asks_for_long(Bytes frame) {
    if (frame.size() < wire::kHeaderSize) return false;
    const auto op = op_of(frame);
    const std::size_t param = wire::load16(frame.data() + wire::at::kParam);
    if (op == wire::Op::kClearToSend)
      return param <= wire::kMaxBlocksize && std::size_t{1} << param > kEverywhere;
    return op == wire::Op::kGet && (param == 0 || param > kEverywhere);  // 0: 65,536
  }

 private:
  struct Way {
    std::uint64_t name = 0;
    std::size_t longest = 0;
    Time sent = kNever, heard = kNever;
    Time first_asked = kNever, asked = kNever;  // asked: kNever, too, once long ones have come
    Time begun = kNever;                        // by a long one: the way carries such
  };
  static wire::Op op_of(Bytes frame) {
    const unsigned op_flags = wire::load16(frame.data() + wire::at::kOpFlags);
    return static_cast<wire::Op>(op_flags >> wire::kOpShift);
  }
  static bool is_recent(Time sent, Time now) { return sent != kNever && now - sent <= kSent; }
  static bool answers(const Way& way, const MacAddr& station, Time now) {
    return way.name == station.to_u64() && way.heard != kNever && now - way.heard <= kHeard;
  }
  // Of two stations with one place, the one that was sent to last has it.
  static constexpr unsigned kBits = 9;
  static std::size_t index(std::uint64_t name) {
    return (name * 0x9e37'79b9'7f4a'7c15) >> (64 - kBits);
  }
  Way& place(std::uint64_t name) { return ways_[index(name)]; }

  std::array<Way, std::size_t{1} << kBits> ways_{};
};

}  // namespace stp::port
