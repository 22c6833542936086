// SPDX-License-Identifier: BSD-3-Clause
#include "dpdk_port/dpdk/device_share.h"

#include <rte_mempool.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <new>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "dpdk_port/dpdk/device.h"
#include "stp/base/assert.h"

namespace stp::port {
namespace {

// A LIFO pool gives out the mbuf used last, whose memory is still in the processor's caches. DPDK's
// own "stack" pool does the same under a lock, whose exclusive write waits for all stores of the
// frame before it. This pool has no lock: only one thread at a time may use it.
constexpr std::string_view kName = "stp_lifo";

using Objects = std::vector<void*>;  // with room for all of the pool's

Objects& objects_of(const rte_mempool* pool) {
  return *static_cast<Objects*>(pool->pool_data);
}

int make(rte_mempool* pool) {
  try {
    auto objects = std::make_unique<Objects>();
    objects->reserve(pool->size);
    pool->pool_data = objects.release();
    return 0;
  } catch (const std::bad_alloc&) {
    return -ENOMEM;
  }
}

void destroy(rte_mempool* pool) {
  delete static_cast<Objects*>(pool->pool_data);
}

int put(rte_mempool* pool, void* const* some, unsigned count) {
  Objects& objects = objects_of(pool);
  if (count > pool->size - objects.size()) return -ENOBUFS;
  objects.insert(objects.end(), some, some + count);
  return 0;
}

int take(rte_mempool* pool, void** some, unsigned count) {
  Objects& objects = objects_of(pool);
  if (count > objects.size()) return -ENOENT;
  std::copy(objects.rbegin(), objects.rbegin() + count, some);
  objects.resize(objects.size() - count);
  return 0;
}

unsigned free_count(const rte_mempool* pool) {
  return static_cast<unsigned>(objects_of(pool).size());
}

rte_mempool_ops operations() {
  rte_mempool_ops ops{};
  kName.copy(ops.name, sizeof ops.name - 1);
  ops.alloc = make;
  ops.free = destroy;
  ops.enqueue = put;
  ops.dequeue = take;
  ops.get_count = free_count;
  return ops;
}

// Registers it with DPDK on the first call and returns its name. nullptr: DPDK accepts no more
// pools.
const char* lifo_pool() {
  static const int index = [] {
    static const rte_mempool_ops ops = operations();
    return rte_mempool_register_ops(&ops);
  }();
  return index < 0 ? nullptr : kName.data();
}

}  // namespace

MbufPool make_mbuf_pool(const std::string& name, unsigned count, std::size_t data_room,
                        PoolUse use) {
  // No caches per lcore: polling threads are not lcores and may change.
  const char* const lifo = use == PoolUse::kOneThread ? lifo_pool() : nullptr;
  const std::size_t room = data_room == 0 ? 0 : data_room + RTE_PKTMBUF_HEADROOM;
  return MbufPool(rte_pktmbuf_pool_create_by_ops(name.c_str(), count, 0, 0,
                                                 static_cast<std::uint16_t>(room), SOCKET_ID_ANY,
                                                 lifo != nullptr ? lifo : "stack"));
}

void DeviceShare::settle() {
  may_send_ =
      of_.index == kOwner || device_.memif_ != nullptr || device_.queues_of_ethdev(of_).count > 0;
}

bool DeviceShare::enter() {
  if (of_.index != kOwner) inside_ = device_.gate().enter(of_.index);
  return inside_;
}

void DeviceShare::leave() {
  if (of_.index == kOwner || !inside_) return;
  inside_ = false;
  device_.gate().leave(of_.index);
}

bool DeviceShare::runs() const {
  return inside_ && device_.runs();
}

bool DeviceShare::has_queues() const {
  return device_.queues_to_send(of_).count > 0;
}

std::uint16_t DeviceShare::send(rte_mbuf** mbufs, std::uint16_t count) {
  if (device_.memif_) return device_.memif_->send(of_.index, mbufs, count);
  if (device_.socket_) return device_.socket_->send(mbufs, count);
  const QueuesToSend queues = device_.queues_to_send(of_);
  if (queues.count > 1) return send_by_port(queues, mbufs, count);
  return rte_eth_tx_burst(device_.port_, static_cast<std::uint16_t>(queues.first), mbufs, count);
}

// Frames in a row for one queue make a burst.
std::uint16_t DeviceShare::send_by_port(const QueuesToSend& queues, rte_mbuf** mbufs,
                                        std::uint16_t count) {
  const auto queue_of = [&](const rte_mbuf* mbuf) {
    const Bytes head(rte_pktmbuf_mtod(mbuf, const std::byte*), mbuf->data_len);
    return static_cast<std::uint16_t>(queues.at(Shards::port_of(head)));
  };
  std::uint16_t sent = 0;
  while (sent < count) {
    const std::uint16_t queue = queue_of(mbufs[sent]);
    std::uint16_t row = 1;
    while (sent + row < count && queue_of(mbufs[sent + row]) == queue) ++row;
    const std::uint16_t taken = rte_eth_tx_burst(device_.port_, queue, mbufs + sent, row);
    sent = static_cast<std::uint16_t>(sent + taken);
    if (taken < row) break;
  }
  return sent;
}

std::uint16_t DeviceShare::receive(rte_mbuf** mbufs, Bytes* rests, std::uint16_t count) {
  if (device_.memif_) return receive_copies(mbufs, rests, count);
  const auto received = receive_whole(mbufs, count);
  if (rests != nullptr) std::fill_n(rests, received, Bytes());
  return received;
}

std::uint16_t DeviceShare::receive_whole(rte_mbuf** mbufs, std::uint16_t count) {
  if (device_.receive_queues_ > 1) return receive_in_turn(mbufs, count);
  if (of_.index != kOwner) return 0;
  if (device_.socket_) return device_.socket_->receive(pool(), mbufs, count);
  return rte_eth_rx_burst(device_.port_, 0, mbufs, count);
}

bool DeviceShare::returns_mbufs() const {
  return device_.memif_ != nullptr;
}

std::uint16_t DeviceShare::receive_copies(rte_mbuf** mbufs, Bytes* rests, std::uint16_t count) {
  auto& memif = *device_.memif_;
  if (landing_.front() == nullptr && rte_pktmbuf_alloc_bulk(pool(), landing_.data(), kBurst) != 0) {
    landing_.fill(nullptr);
    memif.count_no_buffer(of_.index);
    return 0;
  }
  const auto received = memif.receive(of_.index, landing_.data(), rests, count);
  std::copy_n(landing_.begin(), received, mbufs);
  return received;
}

void DeviceShare::release(rte_mbuf** mbufs, std::uint16_t count) {
  if (count == 0) return;  // nobody may be connected
  if (device_.memif_) return device_.memif_->release(of_.index);
  rte_pktmbuf_free_bulk(mbufs, count);
}

// Each call begins with another queue, so that a busy one does not keep the others waiting.
std::uint16_t DeviceShare::receive_in_turn(rte_mbuf** mbufs, std::uint16_t count) {
  const unsigned queues = device_.receive_queues_;
  std::uint16_t received = 0;
  for (unsigned queue = of_.index; queue < queues && received < count; queue += of_.count) {
    if (next_ >= queues) next_ = of_.index;
    received = static_cast<std::uint16_t>(
        received + rte_eth_rx_burst(device_.port_, static_cast<std::uint16_t>(next_),
                                    mbufs + received,
                                    static_cast<std::uint16_t>(count - received)));
    next_ += of_.count;
  }
  return received;
}

namespace {

Bytes segment(const rte_mbuf* mbuf) {
  return {rte_pktmbuf_mtod(mbuf, const std::byte*), mbuf->data_len};
}

// Some drivers take a frame's tag out.
std::optional<std::uint16_t> removed_tag(const rte_mbuf* mbuf) {
  if ((mbuf->ol_flags & RTE_MBUF_F_RX_VLAN_STRIPPED) == 0) return std::nullopt;
  return mbuf->vlan_tci;
}

// Receives fewer long frames at a time, so that frames copied into mbufs by a driver are still in
// the nearest caches when they are copied out.
std::uint16_t burst_of(std::size_t frame) {
  constexpr std::size_t kBytes = 64 * 1024, kLeast = 4;
  return static_cast<std::uint16_t>(std::clamp(kBytes / frame, kLeast, kBurst));
}

}  // namespace

Receiver::Receiver(DeviceShare& share, Arp& arp, Seat* seat)
    : share_(share),
      arp_(arp),
      seat_(seat),
      joined_(kBurst, frame_room(share.device().mtu())),
      burst_(burst_of(joined_.room())) {}

unsigned Receiver::run(Engine& engine, Tap* tap, Time now) {
  if (!share_.runs()) return 0;
  unsigned moved = 0;
  while (moved < kBurst * kTurnBursts) {
    std::array<rte_mbuf*, kBurst> mbufs;
    const std::uint16_t count = share_.receive(mbufs.data(), rests_.data(), burst_);
    STP_ASSERT(count <= burst_, "a driver gives no more than it was asked for");
    if (count == 0) break;
    std::size_t kept = 0;
    for (std::size_t i = 0; i < count; ++i) {
      const Bytes frame = frame_of(mbufs[i], joined_.at(i));
      if (frame.empty()) continue;
      if (!is_of_vlan(frame, removed_tag(mbufs[i]), share_.device().spec().vlan)) {
        ++counters_.other_vlan;
        continue;
      }
      if (tap != nullptr) tap->frame(frame, rests_[i], false);
      if (take_arp(frame, now) || hand_over(frame, rests_[i])) continue;
      // One field after the other: to copy what has just been written is slow.
      frames_[kept].head = frame;
      frames_[kept++].attached = rests_[i];
    }
    if (seat_ != nullptr) seat_->publish();
    if (kept > 0) engine.receive_apart(std::span(frames_).first(kept), now);
    share_.release(mbufs.data(), count);
    moved += count;
    if (count < burst_) break;
  }
  return moved;
}

// The owner sends the answer.
bool Receiver::take_arp(Bytes frame, Time now) {
  if (!arp_packet(frame)) return false;
  arp_.receive(frame, now);
  if (seat_ != nullptr) seat_->crossing().wake(Crossing::kOwner);
  return true;
}

// True: it belongs to another shard.
bool Receiver::hand_over(Bytes frame, Bytes rest) {
  if (seat_ == nullptr) return false;
  const unsigned owner = seat_->owner_of(frame);
  if (owner == seat_->shard()) return false;
  if (share_.device().steers() && Shards::port_of(frame) != 0) ++counters_.wrong_queue;
  seat_->give(owner, frame, rest, false);
  return true;
}

// Empty: drop the frame. Checks every length before using it.
Bytes Receiver::frame_of(const rte_mbuf* mbuf, std::byte* buffer) {
  if (mbuf->next == nullptr) return segment(mbuf);
  ++counters_.chained;
  std::size_t length = 0;
  for (; mbuf != nullptr; mbuf = mbuf->next) {
    const Bytes part = segment(mbuf);
    if (part.size() > joined_.room() - length) {
      ++counters_.oversize;
      return {};
    }
    std::copy(part.begin(), part.end(), buffer + length);
    length += part.size();
    STP_ASSERT(length <= joined_.room(), "a frame that is put together fits its buffer");
  }
  return {buffer, length};
}

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

Transmitter::Transmitter(DeviceShare& share, Arp& arp, Loopback& loopback, Seat* seat)
    : share_(share),
      mac_(share.device().mac()),
      owns_(share.of().index == DeviceShare::kOwner),
      arp_(arp),
      loopback_(loopback),
      seat_(seat) {}

Transmitter::~Transmitter() {
  rte_pktmbuf_free_bulk(pending_.data(), pending_count_);
  rte_pktmbuf_free_bulk(spares_.data(), kBurst);
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
    return_tokens(engine);
    if (seat_ != nullptr) seat_->publish();
  }
  return_tokens(engine);
  return moved;
}

void Transmitter::return_tokens(Engine& engine) {
  if (const auto tokens = attachments_.take_released(); !tokens.empty()) engine.transmitted(tokens);
}

// They are kept between turns: most turns have nothing to send and should cost little.
bool Transmitter::fill_spares() {
  if (missing_ == 0) return true;
  std::array<rte_mbuf*, kBurst> fresh;
  if (rte_pktmbuf_alloc_bulk(share_.pool(), fresh.data(), static_cast<unsigned>(missing_)) != 0) {
    ++counters_.no_buffer;
    return false;
  }
  for (std::size_t i = 0; missing_ > 0; ++i) {
    if (spares_[i] != nullptr) continue;
    spares_[i] = fresh[--missing_];
    frames_[i].head = data_of(spares_[i]);
  }
  return true;
}

rte_mbuf* Transmitter::take_spare(std::size_t spare) {
  STP_ASSERT(spares_[spare] != nullptr, "there is a spare for each frame that is taken");
  ++missing_;
  pending_places_[pending_count_] = static_cast<std::uint8_t>(spare);
  return pending_[pending_count_++] = std::exchange(spares_[spare], nullptr);
}

// The first ones of those that wait have been copied: each is a spare again, where it was one and
// frames_ has its head. Spares are added only while no frame waits, so that place is empty.
void Transmitter::take_back(std::uint16_t sent) {
  for (std::uint16_t i = 0; i < sent; ++i) {
    rte_mbuf* const mbuf = pending_[i];
    rte_mbuf*& place = spares_[pending_places_[i]];
    STP_ASSERT(place == nullptr && frames_[pending_places_[i]].head == data_of(mbuf),
               "a frame that waits has left its place empty");
    if (mbuf->next != nullptr) {  // attached memory
      rte_pktmbuf_free(std::exchange(mbuf->next, nullptr));
      mbuf->nb_segs = 1;
    }
    set_length(mbuf, 0);
    place = mbuf;
    --missing_;
  }
}

void Transmitter::take_arp(Tap* tap) {
  if (!arp_.has_waiting() || !fill_spares()) return;
  STP_ASSERT(pending_count_ == 0, "frames are taken where none waits");
  for (std::size_t spare = 0; spare < kBurst; ++spare) {
    const std::size_t length = arp_.take(data_of(spares_[spare]));
    if (length == 0) return;
    rte_mbuf* const mbuf = take_spare(spare);
    set_length(mbuf, length);
    if (tap != nullptr) tap->frame(Bytes(data_of(mbuf), length), {}, true);
  }
}

// Copies the frames of other shards for the link behind the waiting ones.
unsigned Transmitter::take_from_others(Tap* tap) {
  if (!fill_spares()) return 0;
  const std::size_t most = kBurst - pending_count_;
  std::size_t next = 0;
  return static_cast<unsigned>(seat_->take_for_link(most, [&](Bytes frame) {
    rte_mbuf* const mbuf = take_spare(next++);
    STP_ASSERT(frame.size() <= rte_pktmbuf_tailroom(mbuf), "a frame fits its mbuf");
    std::copy(frame.begin(), frame.end(), data_of(mbuf));
    set_length(mbuf, frame.size());
    if (tap != nullptr) tap->frame(frame, {}, true);
  }));
}

unsigned Transmitter::take_frames(Engine& engine, Tap* tap, Time now) {
  if (!fill_spares()) return 0;
  STP_ASSERT(pending_count_ == 0 && missing_ == 0,
             "frames are taken where none waits, and each has its mbuf");
  const std::size_t count = engine.transmit(frames_, now);
  STP_ASSERT(count <= frames_.size(), "no more frames are taken than were offered a head");
  if (count == 0) return 0;
  for (std::size_t i = 0; i < count; ++i) {
    const TxFrame& frame = frames_[i];
    const bool attached = keep_frame(i, frame, tap);
    if (!attached && frame.token.region != kNoneId) {
      engine.transmitted(std::span(&frame.token, 1));
    }
  }
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
  rte_mbuf* const mbuf = take_spare(spare);
  set_length(mbuf, head.size());
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
    if (share_.returns_mbufs()) take_back(sent);
  }
  STP_ASSERT(sent <= pending_count_, "a driver takes no more than it was given");
  if (sent < pending_count_) {
    std::copy(pending_.begin() + sent, pending_.begin() + pending_count_, pending_.begin());
    std::copy(pending_places_.begin() + sent, pending_places_.begin() + pending_count_,
              pending_places_.begin());
  }
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
