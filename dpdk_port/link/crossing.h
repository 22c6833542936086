// SPDX-License-Identifier: BSD-3-Clause
// Connects the shards of one link: a ring from each shard to each other one, a ring from each to
// the shard that has the device, and doorbells that wake sleeping shards. A Seat is one shard's end
// of it.
#pragma once

#include <array>
#include <memory>
#include <mutex>
#include <vector>

#include "dpdk_port/link/engine.h"
#include "dpdk_port/link/frame_ring.h"
#include "dpdk_port/link/loopback.h"
#include "stp/node/shards.h"

namespace stp::port {

class Crossing {
 public:
  // `room`: bytes of the longest frame.
  Crossing(unsigned shards, std::size_t room);

  [[nodiscard]] Shards& shards() { return shards_; }
  [[nodiscard]] unsigned count() const { return shards_.count(); }
  // `from` and `to` must differ.
  FrameRing& ring(unsigned from, unsigned to) { return *rings_[from * count() + to]; }
  // Frames that shard `from`, which is not kOwner, sends on the link.
  FrameRing& to_link(unsigned from) { return *rings_[from * count() + from]; }
  // The shard that has the device, if there is one.
  static constexpr unsigned kOwner = 0;

  // Sets the eventfd that wakes the thread of that shard; -1: none.
  void set_bell(unsigned shard, int bell);
  void set_asleep(unsigned shard, bool asleep) {
    places_[shard].asleep.store(asleep, std::memory_order_seq_cst);
  }
  // Call after publishing to `shard`. Rings its doorbell only if it sleeps.
  void wake(unsigned shard) {
    if (places_[shard].asleep.load(std::memory_order_seq_cst)) ring_bell(places_[shard]);
  }

  // Of a shard. It writes `asleep` when it goes to sleep and wakes up, not for a frame.
  struct alignas(kCacheLine) Place {
    std::atomic<bool> asleep{false};
    std::mutex mutex;  // guards `bell`
    int bell = -1;
  };

 private:
  static void ring_bell(Place& place);

  Shards shards_;
  std::vector<std::unique_ptr<FrameRing>> rings_;
  std::array<Place, Shards::kMost> places_;
};

struct SeatCounters {
  std::uint64_t given = 0;  // frames handed to other shards
  std::uint64_t taken = 0;  // frames that other shards handed over
  std::uint64_t full = 0;  // frames dropped: the other shard's ring was full, or they were too long
  std::uint64_t waited = 0;  // times that a full ring prevented a burst
};

// Used by the thread that is inside its Port.
class Seat {
 public:
  // How long a sender waits for a shard that takes nothing. After that its frames are dropped.
  static constexpr Time kPatience = 100 * kMillisecond;

  Seat(std::shared_ptr<Crossing> crossing, unsigned shard)
      : crossing_(std::move(crossing)), shard_(shard) {}
  ~Seat() { crossing_->set_bell(shard_, -1); }
  Seat(const Seat&) = delete;
  Seat& operator=(const Seat&) = delete;

  [[nodiscard]] unsigned shard() const { return shard_; }
  [[nodiscard]] Crossing& crossing() const { return *crossing_; }
  // The shard that a frame belongs to (Shards::owner_of).
  [[nodiscard]] unsigned owner_of(Bytes head) const {
    return crossing_->shards().owner_of(head, shard_);
  }

  // Whether so many of this shard's frames may be sent: each has room, wherever it goes, or the
  // wait was long enough.
  bool may_send(Time now, std::size_t frames = kBurst);
  // Copies the frame. False: dropped and counted.
  bool give(unsigned to, Bytes head, Bytes rest, bool local);
  bool give_to_link(Bytes head, Bytes rest);
  // Makes the given frames visible to the other shards.
  void publish();

  // Passes the frames from other shards to the engine, a turn's worth of each. Returns the number
  // of frames.
  unsigned deliver(Engine& engine, Time now);
  // For the owner: takes the frames that other shards send on the link, from each in turn, at most
  // `most`.
  template <typename Send>
  std::size_t take_for_link(std::size_t most, Send&& send);

  // As in Port. False: a frame came meanwhile.
  bool prepare_to_sleep();
  void woke_up() { crossing_->set_asleep(shard_, false); }

  [[nodiscard]] const SeatCounters& counters() const { return counters_; }

 private:
  unsigned deliver(FrameRing& ring, unsigned from, Engine& engine, Time now);
  [[nodiscard]] bool all_have_room(std::size_t frames);
  template <typename Visit>
  void each_outgoing(Visit&& visit);

  const std::shared_ptr<Crossing> crossing_;
  const unsigned shard_;
  Time waiting_since_ = kNever;
  unsigned next_for_link_ = 1;
  SeatCounters counters_;
};

template <typename Send>
std::size_t Seat::take_for_link(std::size_t most, Send&& send) {
  std::size_t taken = 0;
  const unsigned others = crossing_->count() - 1;
  for (unsigned i = 0; i < others && taken < most; ++i) {
    const unsigned from = 1 + (next_for_link_ - 1 + i) % others;
    FrameRing& ring = crossing_->to_link(from);
    const std::size_t count = std::min(ring.waiting(), most - taken);
    for (std::size_t frame = 0; frame < count; ++frame) send(ring.at(frame).frame);
    if (count > 0 && ring.release(count)) crossing_->wake(from);
    taken += count;
  }
  next_for_link_ = 1 + next_for_link_ % others;
  return taken;
}

}  // namespace stp::port
