// SPDX-License-Identifier: BSD-3-Clause
// What all mechanisms of a Node share: its configuration, the source of random numbers, the
// counters, the queue of the Node's own frames, and the events for its caller.
#pragma once

#include <deque>
#include <initializer_list>

#include "stp/counters.h"
#include "stp/drop_reason.h"
#include "stp/node/answers.h"
#include "stp/node/objects.h"
#include "stp/wire/frame.h"

namespace stp {

struct Common {
  Common(const NodeConfig& node_config, Random& node_random)
      : config(node_config), random(node_random) {}

  // protocol: 12.1
  void drop(DropReason why) { counters.add(counter_of(why)); }
  void event(Event::Kind kind, std::uint64_t id, std::uint64_t cookie = 0) {
    events.push_back({kind, id, cookie});
  }
  // Queues a frame of the Node's own to the peer of `vc`. Such frames are small and leave before
  // all user data except a frame already being sent.
  void answer(const Vc& vc, const wire::Header& header, const OptionPayload& option = {}) {
    if (!answers.add({vc.peer_mac, header, vc.endpoint->config.checksum, option}))
      counters.add(Counter::kAnswersFull);
  }
  // The same to a station without a connection here. Queues all of `headers` or none; false: no
  // room.
  // protocol: 5.41
  bool answer_stranger(const MacAddr& dst, std::initializer_list<wire::Header> headers,
                       bool checksum = false, const OptionPayload& option = {}) {
    const auto source = source_of(dst);
    if (const auto room = answers.room_for_stranger(source, headers.size());
        room != Answers::Added::kYes) {
      counters.add(room == Answers::Added::kFull ? Counter::kAnswersFull : Counter::kAddressFull);
      return false;
    }
    for (const auto& header : headers)
      answers.add_for_stranger({dst, header, checksum, option}, source);
    return true;
  }
  // protocol: 13.14
  [[nodiscard]] MacAddr source_of(const MacAddr& station) const {
    return config.sources == nullptr ? station : config.sources->source_of(station);
  }
  // The frame has our address as its source but did not come from here.
  // protocol: 5.42
  [[nodiscard]] bool is_spoofed(const wire::Frame& frame) const {
    return frame.src == config.mac && !looped;
  }

  const NodeConfig config;
  Random& random;
  Counters counters;
  Answers answers;
  std::deque<Event> events;
  Time seen = 0;            // time of the latest call
  bool looped = false;      // the frames being received came from this Node itself
  bool unfinished = false;  // one call could not do all the work
};

}  // namespace stp
