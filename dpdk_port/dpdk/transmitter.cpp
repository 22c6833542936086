// SPDX-License-Identifier: BSD-3-Clause
#include "dpdk_port/dpdk/transmitter.h"

#include <algorithm>
#include <utility>

#include "stp/base/assert.h"

namespace stp::port {

bool Attachments::open(const std::string& name) {
  pool_ = make_mbuf_pool(name, kCapacity, 0, PoolUse::kOneThread);
  if (!pool_) return false;
  STP_ASSERT(free_count_ == 0 && released_count_ == 0, "attachments are opened once");
  for (Slot& slot : slots_) {
    slot.owner = this;
    slot.shared.free_cb = on_release;
    slot.shared.fcb_opaque = &slot;
    free_[free_count_++] = &slot;
  }
  return true;
}

bool Attachments::attach(rte_mbuf* head, Bytes memory, const TxToken& token) {
  STP_ASSERT(head->next == nullptr && head->nb_segs == 1, "memory is attached to a bare head");
  // A slot becomes free before its token is returned, so both lists need room.
  if (free_count_ <= released_count_ || memory.size() > kMaxLength) return false;
  rte_mbuf* const tail = rte_pktmbuf_alloc(pool_.get());
  if (tail == nullptr) return false;
  Slot* const slot = free_[--free_count_];
  slot->token = token;
  rte_mbuf_ext_refcnt_set(&slot->shared, 1);
  // The driver only reads it, by its virtual address: our devices use no other.
  auto* const address = const_cast<std::byte*>(memory.data());
  const auto length = static_cast<std::uint16_t>(memory.size());
  rte_pktmbuf_attach_extbuf(tail, address, reinterpret_cast<rte_iova_t>(address), length,
                            &slot->shared);
  tail->data_off = 0;
  tail->data_len = length;
  tail->pkt_len = length;
  head->next = tail;
  head->nb_segs = 2;
  head->pkt_len += length;
  return true;
}

std::span<const TxToken> Attachments::take_released() {
  return std::span(released_).first(std::exchange(released_count_, 0));
}

void Attachments::on_release(void*, void* opaque) {
  auto* const slot = static_cast<Slot*>(opaque);
  Attachments& owner = *slot->owner;
  STP_ASSERT(owner.free_count_ < kCapacity, "a slot that comes free was in use");
  STP_ASSERT(owner.released_count_ < kCapacity, "there is room for each token that comes back");
  owner.free_[owner.free_count_++] = slot;
  owner.released_[owner.released_count_++] = slot->token;
}

namespace {

std::byte* data_of(rte_mbuf* mbuf) {
  return rte_pktmbuf_mtod(mbuf, std::byte*);
}

void set_length(rte_mbuf* mbuf, std::size_t length) {
  mbuf->data_len = static_cast<std::uint16_t>(length);
  mbuf->pkt_len = static_cast<std::uint32_t>(length);
}

}  // namespace

Transmitter::~Transmitter() {
  rte_pktmbuf_free_bulk(pending_.data(), pending_count_);
  rte_pktmbuf_free_bulk(spares_.data(), static_cast<unsigned>(spare_count_));
}

unsigned Transmitter::run(Engine& engine, Tap* tap, Time now) {
  unsigned moved = flush(now);
  if (pending_count_ == 0 && owns_) {
    take_arp(tap);
    moved += flush(now);
  }
  for (std::size_t burst = 0; burst < kTurnBursts && pending_count_ == 0; ++burst) {
    unsigned taken = 0;
    if (seat_ != nullptr && owns_) {
      taken = take_from_others(tap);
      flush(now);
    }
    if (pending_count_ == 0 && (seat_ == nullptr || seat_->may_send(now))) {
      taken += take_frames(engine, tap, now);
    }
    if (taken == 0) break;
    moved += taken;
    flush(now);
    engine.transmitted(attachments_.take_released());
    if (seat_ != nullptr) seat_->publish();
  }
  engine.transmitted(attachments_.take_released());
  return moved;
}

bool Transmitter::fill_spares() {
  if (spare_count_ == kBurst) return true;
  const auto missing = static_cast<unsigned>(kBurst - spare_count_);
  if (rte_pktmbuf_alloc_bulk(share_.pool(), &spares_[spare_count_], missing) != 0) {
    ++counters_.no_buffer;
    return false;
  }
  spare_count_ = kBurst;
  // Kept between turns: most turns have nothing to send and should cost little.
  for (std::size_t i = 0; i < kBurst; ++i) frames_[i].head = data_of(spares_[i]);
  return true;
}

void Transmitter::take_arp(Tap* tap) {
  while (pending_count_ < kBurst && fill_spares()) {
    rte_mbuf* const mbuf = spares_[spare_count_ - 1];
    const std::size_t length = arp_.take(data_of(mbuf));
    if (length == 0) return;
    --spare_count_;
    set_length(mbuf, length);
    if (tap != nullptr) tap->frame(Bytes(data_of(mbuf), length), {}, true);
    pending_[pending_count_++] = mbuf;
  }
}

// Copies the frames of other shards for the link behind the waiting ones.
unsigned Transmitter::take_from_others(Tap* tap) {
  if (!fill_spares()) return 0;
  const std::size_t most = kBurst - pending_count_;
  return static_cast<unsigned>(seat_->take_for_link(most, [&](Bytes frame) {
    STP_ASSERT(spare_count_ > 0, "there is a spare for each frame that is taken");
    rte_mbuf* const mbuf = spares_[--spare_count_];
    STP_ASSERT(frame.size() <= rte_pktmbuf_tailroom(mbuf), "a frame fits its mbuf");
    std::copy(frame.begin(), frame.end(), data_of(mbuf));
    set_length(mbuf, frame.size());
    if (tap != nullptr) tap->frame(frame, {}, true);
    pending_[pending_count_++] = mbuf;
  }));
}

unsigned Transmitter::take_frames(Engine& engine, Tap* tap, Time now) {
  if (!fill_spares()) return 0;
  STP_ASSERT(pending_count_ == 0 && spare_count_ == kBurst,
             "frames are taken where none waits, and each has its mbuf");
  const std::size_t count = engine.transmit(frames_, now);
  STP_ASSERT(count <= frames_.size(), "no more frames are taken than were offered a head");
  if (count == 0) return 0;
  std::size_t unused = 0;  // heads of frames to ourselves, moved to the front
  for (std::size_t i = 0; i < count; ++i) {
    const TxFrame& frame = frames_[i];
    const bool attached = keep_frame(i, frame, tap);
    if (!attached && frame.token.region != kNoneId) {
      engine.transmitted(std::span(&frame.token, 1));
    }
    if (spares_[i] != nullptr) std::swap(spares_[unused++], spares_[i]);
  }
  spare_count_ = static_cast<std::size_t>(
      std::copy(spares_.begin() + count, spares_.end(), spares_.begin() + unused) -
      spares_.begin());
  return static_cast<unsigned>(count);
}

// True: the frame refers to user memory until it is sent, or received here. False: that memory is
// no longer used.
bool Transmitter::keep_frame(std::size_t spare, const TxFrame& frame, Tap* tap) {
  const Bytes head(frame.head, frame.head_length);
  const bool ours = destination(head) == mac_;
  // A frame that leaves is traced where it leaves.
  if (tap != nullptr && (ours || share_.sends())) tap->frame(head, frame.attached, true);
  if (ours) return loop(frame);
  STP_ASSERT(spares_[spare] != nullptr && frame.head == data_of(spares_[spare]),
             "a frame was built in the mbuf that it was offered");
  STP_ASSERT(pending_count_ < kBurst, "there is room for each frame of a burst");
  rte_mbuf* const mbuf = std::exchange(spares_[spare], nullptr);
  set_length(mbuf, head.size());
  pending_[pending_count_++] = mbuf;
  if (frame.attached.empty()) return false;
  if (attachments_.attach(mbuf, frame.attached, frame.token)) return true;
  STP_ASSERT(frame.attached.size() <= rte_pktmbuf_tailroom(mbuf), "a frame fits its mbuf");
  std::copy(frame.attached.begin(), frame.attached.end(), frame.head + head.size());
  set_length(mbuf, head.size() + frame.attached.size());
  return false;
}

// For a user of this host. Same result as keep_frame().
bool Transmitter::loop(const TxFrame& frame) {
  if (seat_ != nullptr) {
    const Bytes head(frame.head, frame.head_length);
    const unsigned owner = seat_->owner_of(head);
    if (owner != seat_->shard()) {
      seat_->give(owner, head, frame.attached, true);
      return false;
    }
  }
  loopback_.push(frame);
  return true;
}

unsigned Transmitter::flush(Time now) {
  if (pending_count_ == 0) return 0;
  std::uint16_t sent = 0;
  if (!share_.sends()) {
    sent = give_to_owner();
  } else if (share_.runs()) {
    sent = share_.send(pending_.data(), pending_count_);
  }
  STP_ASSERT(sent <= pending_count_, "a driver takes no more than it was given");
  std::copy(pending_.begin() + sent, pending_.begin() + pending_count_, pending_.begin());
  pending_count_ = static_cast<std::uint16_t>(pending_count_ - sent);
  if (sent > 0) {
    refusing_since_ = kNever;
  } else if (refusing_since_ == kNever) {
    refusing_since_ = now;
  }
  counters_.kept += pending_count_;
  if (share_.device().is_gone() || (sent == 0 && now - refusing_since_ >= kPatience))
    drop_pending();
  return sent;
}

// What finds no room in the ring is dropped and counted there.
std::uint16_t Transmitter::give_to_owner() {
  for (const rte_mbuf* mbuf : std::span(pending_).first(pending_count_)) {
    const rte_mbuf* const rest = mbuf->next;
    STP_ASSERT(rest == nullptr || rest->next == nullptr, "a frame is a head and one attachment");
    const auto bytes = [](const rte_mbuf* part) {
      return part == nullptr ? Bytes()
                             : Bytes(rte_pktmbuf_mtod(part, const std::byte*), part->data_len);
    };
    seat_->give_to_link(bytes(mbuf), bytes(rest));
  }
  rte_pktmbuf_free_bulk(pending_.data(), pending_count_);
  return pending_count_;
}

void Transmitter::drop_pending() {
  counters_.dropped += pending_count_;
  rte_pktmbuf_free_bulk(pending_.data(), pending_count_);
  pending_count_ = 0;
}

}  // namespace stp::port
