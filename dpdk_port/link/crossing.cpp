// SPDX-License-Identifier: BSD-3-Clause
#include "dpdk_port/link/crossing.h"

#include <sys/eventfd.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "dpdk_port/link/past_caches.h"
#include "stp/base/assert.h"
#include "stp/base/fetch_ahead.h"

namespace stp::port {

FrameRing::FrameRing(std::size_t places, std::size_t room)
    : buffers_(places, whole_cache_lines(sizeof(Mark) + room + sizeof(LongLength))),
      count_(places),
      room_(room),
      free_(places) {
  STP_ASSERT(std::has_single_bit(places), "a ring has a power of two of places");
}

// Either this side sees the room, or the receiver sees that the sender waits: each side stores
// before it loads.
bool FrameRing::has_room(std::size_t frames) {
  waits_ = false;
  if (free_ >= frames || (free_ = free_places()) >= frames) return true;
  stalled_.store(true, std::memory_order_seq_cst);
  free_ = free_places();
  waits_ = free_ < frames;
  if (!waits_) stalled_.store(false, std::memory_order_seq_cst);
  return !waits_;
}

bool FrameRing::push(Bytes head, Bytes rest, bool local) {
  // A NIC's buffers may hold longer frames than the MTU allows.
  const std::size_t length = head.size() + rest.size();
  if (length > room_) return false;
  if (free_ == 0 && (free_ = free_places()) == 0) return false;
  std::byte* const to = place(pushed_);
  if (length >= kLong) {
    const auto whole = static_cast<LongLength>(length);
    std::memcpy(long_length(to), &whole, sizeof whole);
  }
  write(to, static_cast<Mark>(std::min<std::size_t>(length, kLong) | (local ? kLocal : 0)), head,
        rest);
  ++pushed_;
  --free_;
  return true;
}

void FrameRing::write(std::byte* place, Mark mark, Bytes head, Bytes rest) const {
  const auto put_together = [&](std::byte* to) {
    std::memcpy(to, &mark, sizeof mark);
    std::byte* const behind = std::copy(head.begin(), head.end(), to + sizeof mark);
    std::copy(rest.begin(), rest.end(), behind);
  };
  const std::size_t length = sizeof mark + head.size() + rest.size();
  if (length > kShort || not_published() < kThroughCaches) return put_together(place);
  alignas(kCacheLine) std::array<std::byte, kShort> lines;
  put_together(lines.data());
  write_past_caches(place, lines.data(), whole_cache_lines(length));
}

bool FrameRing::publish() {
  const auto count = not_published();
  if (count == 0) return false;
  if (count > kThroughCaches) finish_writes_past_caches();
  sent_.store(pushed_, std::memory_order_seq_cst);
  fetch_places_ahead();
  return true;
}

// The receiver's caches have what it has read there. What it may still read stays with it.
void FrameRing::fetch_places_ahead() const {
  for (std::size_t i = 0; i < std::min(free_, kThroughCaches); ++i)
    fetch_line_to_write(place(pushed_ + i));
}

bool FrameRing::may_go_on() const {
  return waits_ && free_places() >= count_ / 2;
}

FrameRing::Entry FrameRing::at(std::size_t index) const {
  STP_ASSERT(index < waiting(), "a frame that is read waits");
  const auto number = received_.load(std::memory_order_relaxed) + index;
  std::byte* const from = place(number);
  Mark mark = 0;
  std::memcpy(&mark, from, sizeof mark);
  LongLength length = mark & kLong;
  if (length == kLong) std::memcpy(&length, long_length(from), sizeof length);
  return {Bytes(from + sizeof mark, length), (mark & kLocal) != 0};
}

void FrameRing::fetch_ahead(std::size_t frames) const {
  const auto first = received_.load(std::memory_order_relaxed);
  for (std::size_t i = 0; i < frames; ++i) fetch_line(place(first + i));
}

bool FrameRing::release(std::size_t frames) {
  STP_ASSERT(frames <= waiting(), "what is released has waited");
  received_.store(received_.load(std::memory_order_relaxed) + frames, std::memory_order_seq_cst);
  if (!stalled_.load(std::memory_order_seq_cst) || waiting() > count_ / 2) return false;
  stalled_.store(false, std::memory_order_seq_cst);
  return true;
}

namespace {

// A ring has fewer places for long frames: its memory should stay in the processors' caches.
std::size_t places_for(std::size_t room) {
  constexpr std::size_t kBytes = std::size_t{8} << 20, kLeast = 4 * kBurst, kMost = 1024;
  return std::clamp(std::bit_floor(kBytes / room), kLeast, kMost);
}

}  // namespace

Crossing::Crossing(unsigned shards, std::size_t room) : shards_(shards) {
  rings_.reserve(std::size_t{shards} * shards);
  for (unsigned i = 0; i < shards * shards; ++i) {
    rings_.push_back(std::make_unique<FrameRing>(places_for(room), room));
  }
}

void Crossing::set_bell(unsigned shard, int bell) {
  Place& place = places_[shard];
  const Lock lock(place.mutex);
  place.bell = bell;
}

// The lock keeps the bell valid.
void Crossing::ring_bell(Place& place) {
  const Lock lock(place.mutex);
  if (place.bell >= 0) eventfd_write(place.bell, 1);  // a full counter rings as well
}

template <typename Visit>
void Seat::each_outgoing(Visit&& visit) {
  for (unsigned to = 0; to < crossing_->count(); ++to) {
    if (to != shard_) {
      visit(crossing_->ring(shard_, to), to);
    } else if (shard_ != Crossing::kOwner) {
      visit(crossing_->to_link(shard_), Crossing::kOwner);
    }
  }
}

bool Seat::all_have_room(std::size_t frames) {
  bool room = true;
  each_outgoing([&](FrameRing& ring, unsigned) { room &= ring.has_room(frames); });
  return room;
}

bool Seat::may_send(Time now, std::size_t frames) {
  if (all_have_room(frames)) {
    waiting_since_ = kNever;
    return true;
  }
  ++counters_.waited;
  if (waiting_since_ == kNever) waiting_since_ = now;
  return now - waiting_since_ >= kPatience;
}

bool Seat::give(unsigned to, Bytes head, Bytes rest, bool local) {
  STP_ASSERT(to != shard_, "a shard keeps what is its own");
  const bool room = crossing_->ring(shard_, to).push(head, rest, local);
  ++(room ? counters_.given : counters_.full);
  return room;
}

bool Seat::give_to_link(Bytes head, Bytes rest) {
  const bool room = crossing_->to_link(shard_).push(head, rest, false);
  if (!room) ++counters_.full;
  return room;
}

void Seat::publish() {
  each_outgoing([this](FrameRing& ring, unsigned to) {
    if (ring.publish()) crossing_->wake(to);
  });
}

unsigned Seat::deliver(Engine& engine, Time now) {
  unsigned moved = 0;
  for (unsigned from = 0; from < crossing_->count(); ++from) {
    if (from != shard_) moved += deliver(crossing_->ring(from, shard_), from, engine, now);
  }
  counters_.taken += moved;
  return moved;
}

// Passes adjacent frames of one kind to the engine as one burst.
unsigned Seat::deliver(FrameRing& ring, unsigned from, Engine& engine, Time now) {
  unsigned moved = 0;
  while (moved < kBurst * kTurnBursts) {
    const std::size_t waiting = std::min(ring.waiting(), kBurst);
    if (waiting == 0) break;
    if (waiting > 1) ring.fetch_ahead(waiting);
    std::array<Bytes, kBurst> frames;
    std::array<LoopedFrame, kBurst> looped;
    const bool local = ring.at(0).local;
    std::size_t count = 0;
    for (; count < waiting; ++count) {
      const FrameRing::Entry entry = ring.at(count);
      if (entry.local != local) break;
      frames[count] = entry.frame;
      looped[count].head = entry.frame;
    }
    if (local) {
      engine.receive_looped(std::span(looped).first(count), now);
    } else {
      engine.receive(std::span(frames).first(count), now);
    }
    if (ring.release(count)) crossing_->wake(from);
    moved += static_cast<unsigned>(count);
  }
  return moved;
}

bool Seat::prepare_to_sleep() {
  crossing_->set_asleep(shard_, true);
  bool anything = false;
  for (unsigned from = 0; from < crossing_->count(); ++from) {
    if (from != shard_) {
      anything |= crossing_->ring(from, shard_).waiting() != 0;
    } else if (shard_ == Crossing::kOwner) {
      for (unsigned other = 1; other < crossing_->count(); ++other) {
        anything |= crossing_->to_link(other).waiting() != 0;
      }
    }
  }
  each_outgoing([&](const FrameRing& ring, unsigned) { anything |= ring.may_go_on(); });
  if (anything) woke_up();
  return !anything;
}

}  // namespace stp::port
