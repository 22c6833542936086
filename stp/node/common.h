// SPDX-License-Identifier: BSD-3-Clause
// What all mechanisms of a Node share: its configuration, the source of random numbers, the
// counters, the queue of the Node's own frames, and the events for its caller.
#pragma once

#include <algorithm>
#include <array>
#include <initializer_list>
#include <vector>

#include "stp/base/ring_queue.h"
#include "stp/counters.h"
#include "stp/node/node.h"
#include "stp/node/objects.h"
#include "stp/wire/frame.h"
#include "stp/wire/header.h"

namespace stp {

struct Answer {
  MacAddr dst;
  wire::Header header;
  bool checksum = false;
  OptionPayload option;
  std::uint64_t order = 0;                // sequence number of add() and add_for_stranger()
  std::size_t of_group = 0;               // of sources
  bool completes = false;                 // an RSR that tells that a Transfer is complete
  Presence presence = Presence::kProven;  // as in TxFrame

  // Must leave before users' requests: the frame that opens a connection before its data, and the
  // news that a Transfer is complete before its END.
  [[nodiscard]] bool pressing() const {
    return header.op() != wire::Op::kRequestStateResponse || completes;
  }
};

// Queues of the frames that a Node sends of its own accord: to peers, and to strangers (stations
// without a connection here). There may be any number of strangers, under any addresses. So they
// get few places, few of those per source (Sources), and a small share of the frames that leave
// while users have something to send.
// protocol: 5.41
class Answers {
 public:
  static constexpr std::size_t kToPeers = 1024, kToStrangers = 256, kToOneStranger = 32;
  // While users wait, at most one frame in kShare goes to strangers.
  static constexpr unsigned kShare = 8;

  enum class Added : std::uint8_t { kYes, kFull, kAddressFull };

  [[nodiscard]] bool empty() const { return peers_.count + strangers_.count == 0; }
  [[nodiscard]] bool has_pressing() const { return pressing_ != 0; }
  // Of those to peers.
  [[nodiscard]] bool is_half_full() const { return peers_.count >= kToPeers / 2; }
  // Whether there is room for `frames` more to stations of that source.
  [[nodiscard]] Added room_for_stranger(const MacAddr& source, std::size_t frames) const {
    if (strangers_.count + frames > kToStrangers) return Added::kFull;
    return waiting_[group(source)] + frames > kToOneStranger ? Added::kAddressFull : Added::kYes;
  }
  bool add(const Answer& answer) {
    if (peers_.count == kToPeers) return false;
    put(peers_, answer);
    return true;
  }
  // Requires room_for_stranger().
  void add_for_stranger(const Answer& answer, const MacAddr& source) {
    put(strangers_, answer).of_group = group(source);
    ++waiting_[group(source)];
  }

  // The answer to send next; nullptr: none, or users go first.
  const Answer* next(bool users_wait) {
    const bool stranger = strangers_.count != 0 && (!users_wait || credit_ >= kShare - 1);
    if (!stranger && peers_.count == 0) return nullptr;
    const bool first =
        stranger && peers_.count != 0 ? strangers_.front().order < peers_.front().order : stranger;
    turn_ = first ? &strangers_ : &peers_;
    return &turn_->front();
  }
  // Whether the answer that next() has returned is for a stranger.
  [[nodiscard]] bool is_for_stranger() const { return turn_ == &strangers_; }
  void sent(bool users_wait) {
    const auto& answer = turn_->front();
    pressing_ -= answer.pressing() ? 1 : 0;
    if (turn_ == &strangers_) {
      --waiting_[answer.of_group];
      if (users_wait) credit_ -= kShare - 1;
    }
    turn_->drop();
  }
  // Users have sent `frames` frames.
  void users_sent(std::size_t frames) { credit_ = std::min(credit_ + frames, kMostCredit); }

 private:
  // Lets a burst of answers to strangers leave without waiting when strangers are few.
  static constexpr std::size_t kMostCredit = 32 * (kShare - 1);
  static constexpr std::size_t kGroups = 256;
  struct Ring {
    explicit Ring(std::size_t size) : places(size) {}
    [[nodiscard]] const Answer& front() const { return places[first]; }
    // One that gets empty begins again with its first place, which is in the nearest cache.
    void drop() { first = --count == 0 ? 0 : (first + 1) % places.size(); }
    std::vector<Answer> places;
    std::size_t first = 0, count = 0;
  };
  static std::size_t group(const MacAddr& source) {
    return (source.to_u64() * 0x9e3779b97f4a7c15 >> 48) % kGroups;
  }
  Answer& put(Ring& ring, const Answer& answer) {
    auto& place = ring.places[(ring.first + ring.count++) % ring.places.size()];
    place.dst = answer.dst;
    place.header = answer.header;
    place.checksum = answer.checksum;
    place.presence = answer.presence;
    if (place.option || answer.option) place.option = answer.option;  // most have none
    place.completes = answer.completes;
    place.order = order_++;
    pressing_ += answer.pressing() ? 1 : 0;
    return place;
  }

  Ring peers_{kToPeers}, strangers_{kToStrangers};
  Ring* turn_ = &peers_;
  std::size_t pressing_ = 0;
  std::uint64_t order_ = 0;
  std::size_t credit_ = kMostCredit;
  std::array<std::uint16_t, kGroups> waiting_{};  // strangers' answers per group of sources
};

// Which stations have lately sent what only somebody can send who has got something from here.
class HeardStations {
 public:
  // That long a frame shows that its sender is there. A connection asks a silent peer sooner.
  static constexpr Time kLately = 5 * kSecond;

  static bool is_lately(Time heard, Time now) { return now < heard || now - heard < kLately; }
  void note(const MacAddr& station, Time heard) {
    auto& place = places_[index(station)];
    if (place.station == station.to_u64() && place.heard > heard) return;
    place = {station.to_u64(), heard};
  }
  [[nodiscard]] bool lately(const MacAddr& station, Time now) const {
    const auto& place = places_[index(station)];
    return place.station == station.to_u64() && is_lately(place.heard, now);
  }

 private:
  // Of two stations with one place, the one that was heard last has it.
  static constexpr unsigned kBits = 8;
  static std::size_t index(const MacAddr& station) {
    return station.to_u64() * 0x9e37'79b9'7f4a'7c15 >> (64 - kBits);
  }
  struct Place {
    std::uint64_t station = 0;
    Time heard = 0;
  };
  std::array<Place, std::size_t{1} << kBits> places_{};
};

struct Common {
  Common(const NodeConfig& node_config, Random& node_random)
      : config(node_config), random(node_random) {}

  // protocol: 12.1
  void drop(DropReason why) { counters.add(counter_of(why)); }
  void event(Event::Kind kind, std::uint64_t id, std::uint64_t cookie = 0) {
    events.push_back({kind, id, cookie});
  }
  // Queues a frame of the Node's own to the peer of `vc`. Such frames are small, but for RC and CA
  // that are padded (protocol: 13.20), and leave before
  // all user data except a frame already being sent. `completes`: as in Answer.
  void answer(const Vc& vc, const wire::Header& header, const OptionPayload& option = {},
              bool completes = false) {
    const auto presence = config.sources == nullptr ? Presence::kProven : presence_to_answer(vc);
    if (!answers.add({.dst = vc.peer_mac,
                      .header = header,
                      .checksum = vc.endpoint->config.checksum,
                      .option = option,
                      .completes = completes,
                      .presence = presence}))
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
  // Who gets an answer may be there for the next dial, too. Only links over IP want to know.
  [[gnu::noinline]] Presence presence_to_answer(const Vc& vc) {
    const auto presence = presence_of(vc, seen);
    if (presence == Presence::kProven && vc.peer_key != 0) stations.note(vc.peer_mac, vc.heard);
    return presence;
  }
  // Whether the peer of a connection is there. Of a connectionless Port there is no such peer.
  [[nodiscard]] Presence presence_of(const Vc& vc, Time now) const {
    if (vc.waits_for_proof) return Presence::kClaimed;
    if (vc.peer_key != 0 && HeardStations::is_lately(vc.heard, now)) return Presence::kProven;
    return presence_of(vc.peer_mac, now);
  }
  // Whether a station is that a user has named.
  [[nodiscard]] Presence presence_of(const MacAddr& station, Time now) const {
    return stations.lately(station, now) ? Presence::kProven : Presence::kNamed;
  }
  // protocol: 13.14
  [[nodiscard]] MacAddr source_of(const MacAddr& station) const {
    return config.sources == nullptr ? station : config.sources->source_of(station);
  }
  // protocol: 13.14
  [[nodiscard]] MacAddr network_of(const MacAddr& station) const {
    return config.sources == nullptr ? station : config.sources->network_of(station);
  }
  // Congestion is controlled on some ways, or on all.
  [[nodiscard]] bool controls_congestion() const { return config.routed || config.ways != nullptr; }
  // protocol: 13.9
  [[nodiscard]] bool is_shared(const MacAddr& station) const {
    return config.routed ||
           (config.ways != nullptr && station != config.mac && config.ways->is_shared(station));
  }
  // Marks of routers are heeded.
  // protocol: 13.22
  [[nodiscard]] bool heeds_marks() const { return config.marks && controls_congestion(); }
  // The frame has our address as its source but did not come from here.
  // protocol: 5.42
  [[nodiscard]] bool is_spoofed(const wire::Frame& frame) const {
    return frame.src == config.mac && !looped;
  }

  const NodeConfig config;
  Random& random;
  Counters counters;
  Answers answers;
  RingQueue<Event> events;
  HeardStations stations;   // that have sent to connectionless Ports, or got an answer
  Time seen = 0;            // time of the latest call
  bool looped = false;      // the frames being received came from this Node itself
  bool marked = false;      // a router has marked the frame that is being received
  bool unfinished = false;  // one call could not do all the work
};

}  // namespace stp
