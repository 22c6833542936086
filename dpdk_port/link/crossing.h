// SPDX-License-Identifier: BSD-3-Clause
// Where the shards of one link meet: the rings between them, the queues of the link that each uses,
// and the gate to what one of them takes away.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include "dpdk_port/link/engine.h"
#include "dpdk_port/link/link_counters.h"
#include "stp/base/mutex.h"
#include "stp/node/shards.h"

namespace stp::port {

// Passes frames in order from one thread of this process to another: a lock-free ring of buffers
// with one sender and one receiver. Frames are copied in and read in place. Each side writes its
// own cache lines: the sender the frames, and each side its half of the object.
class FrameRing {
 public:
  // `places`: a power of two. `room`: bytes of the longest frame.
  FrameRing(std::size_t places, std::size_t room);

  // ---- the sender ----
  // Whether there is room for `frames` more. False: the receiver reports when it has made room.
  bool has_room(std::size_t frames);
  // `local`: the frame comes from this host's memory, not from a link. False: no room, or the frame
  // is longer than `room`.
  bool push(Bytes head, Bytes rest, bool local);
  // Makes pushed frames visible to the receiver. True: there were some.
  bool publish();
  // has_room() returned false, and now there is room. Check before sleeping.
  [[nodiscard]] bool may_go_on() const;

  // ---- the receiver ----
  struct Entry {
    Bytes frame;
    bool local;
  };
  // The number of waiting frames.
  [[nodiscard]] std::size_t waiting() const {
    return sent_.load(std::memory_order_seq_cst) - received_.load(std::memory_order_relaxed);
  }
  // A waiting frame; 0 is the oldest. Readable until released.
  [[nodiscard]] Entry at(std::size_t index) const;
  // Brings so many waiting frames into the caches: else each waits for its lines from the sender's,
  // one after the other.
  void fetch_ahead(std::size_t frames) const;
  // True: the sender waits for room.
  bool release(std::size_t frames);

 private:
  friend struct FrameRingLayout;  // a test
  // What stands before the frame in its place, so that one of up to 62 bytes takes one line: its
  // length, and whether it is local. The length from kLong on stands at the end of the place.
  using Mark = std::uint16_t;
  using LongLength = std::uint32_t;
  static constexpr Mark kLocal = 0x8000, kLong = 0x7fff;
  // So many frames that are published together are written through the caches, into lines brought
  // there before. Further short ones are written past the caches.
  static constexpr std::size_t kThroughCaches = 8, kShort = 2 * kCacheLine;

  void write(std::byte* place, Mark mark, Bytes head, Bytes rest) const;
  void fetch_places_ahead() const;
  [[nodiscard]] std::size_t free_places() const {
    return count_ - (pushed_ - received_.load(std::memory_order_seq_cst));
  }
  [[nodiscard]] std::byte* place(std::size_t number) const {
    return buffers_.at(number & (count_ - 1));
  }
  [[nodiscard]] std::byte* long_length(std::byte* place) const {
    return place + buffers_.room() - sizeof(LongLength);
  }
  [[nodiscard]] std::size_t not_published() const {
    return pushed_ - sent_.load(std::memory_order_relaxed);
  }

  FrameBuffers buffers_;
  const std::size_t count_, room_;
  // The sender's. The receiver looks at the first line in each of its turns, so what the sender
  // writes in each of its own stands in another one.
  alignas(kCacheLine) std::atomic<std::size_t> sent_{0};  // frames published, ever
  alignas(kCacheLine) std::size_t pushed_ = 0;            // published or not
  std::size_t free_ = 0;                                  // at the last check
  bool waits_ = false;                                    // there was no room at that check
  // The receiver's.
  alignas(kCacheLine) std::atomic<std::size_t> received_{0};
  // Of both, where a ring is full: the sender waits.
  alignas(kCacheLine) std::atomic<bool> stalled_{false};
};

// Which queues of a link a shard uses. A queue has one sender and one receiver, so shards share
// none. Both ends of a link follow the same rule, whatever the number of their shards:
//
//   Of Q queues to the peer, shard i of N fills Q/N, the first of which is i * (Q/N); a frame goes
//   into the one that its D_Port modulo Q/N names. Shard i empties the queues i, i + N, i + 2N, ...
//
// If one end has N shards and the other one M, and there are N * M queues each way, each frame
// arrives at the shard that its D_Port names. If there are fewer, the shard that receives a frame
// hands it over. With fewer queues than shards, those without one send through another shard.

// What one shard fills.
struct QueuesToSend {
  unsigned first = 0;
  unsigned count = 0;  // 0: none

  [[nodiscard]] unsigned at(std::uint16_t d_port) const { return first + d_port % count; }
};

constexpr QueuesToSend queues_to_send(unsigned queues, const PortShare& of) {
  if (of.count == 1) return {0, queues};
  if (queues < of.count) return {of.index, of.index < queues ? 1U : 0U};
  const unsigned each = queues / of.count;
  return {of.index * each, each};
}

// Connects the shards of one link: a ring from each shard to each other one, a ring from each to
// the shard that has the device, and doorbells that wake sleeping shards. A Seat is one shard's end
// of it.
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
    Mutex mutex;
    int bell STP_GUARDED_BY(mutex) = -1;
  };

 private:
  static void ring_bell(Place& place);

  Shards shards_;
  std::vector<std::unique_ptr<FrameRing>> rings_;
  std::array<Place, Shards::kMost> places_;
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

// Lets other threads use something that one thread, its owner, takes away now and then. A user
// enters and leaves without waiting, and writes no cache line but its own. The owner waits until
// all have left.
class Gate {
 public:
  // ---- a user; the owner needs neither
  // False: it is closed. `user`: less than Shards::kMost, of one thread at a time.
  bool enter(unsigned user) {
    std::atomic<bool>& inside = places_[user].inside;
    // Either the owner sees who is inside, or that user sees the closed gate: each stores before it
    // loads.
    inside.store(true, std::memory_order_seq_cst);
    if (open_.load(std::memory_order_seq_cst)) return true;
    inside.store(false, std::memory_order_release);
    return false;
  }
  void leave(unsigned user) { places_[user].inside.store(false, std::memory_order_release); }

  // ---- the owner
  [[nodiscard]] bool is_open() const { return open_.load(std::memory_order_relaxed); }
  void open() { open_.store(true, std::memory_order_seq_cst); }
  // Returns when nobody is inside. A user stays for one turn of its Port.
  void close() {
    open_.store(false, std::memory_order_seq_cst);
    for (const Place& place : places_) {
      // A sleep, and no yield: this thread may have a higher priority than the one it waits for.
      while (place.inside.load(std::memory_order_seq_cst))
        std::this_thread::sleep_for(std::chrono::microseconds(20));
    }
  }

  // A user's cache line.
  struct alignas(kCacheLine) Place {
    std::atomic<bool> inside{false};
  };

 private:
  alignas(kCacheLine) std::atomic<bool> open_{false};
  std::array<Place, Shards::kMost> places_;
};

}  // namespace stp::port
