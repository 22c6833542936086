// SPDX-License-Identifier: BSD-3-Clause
// The memory shared by one user and a Node: a Schedule Header Queue (Node -> user) and a transmit
// queue (user -> Node), which are single-producer single-consumer rings, and a block of control
// words. Processes may share it, so it holds no pointers. The Node's side trusts nothing that the
// user's side can write.
#pragma once

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "stp/base/fetch_ahead.h"
#include "stp/wire/header.h"

namespace stp {

inline constexpr std::uint32_t kMaxSlots = 65'535;  // R_Slots is a 16-bit field
inline constexpr std::uint32_t kMaxCredits = 65'536;
// Entries beyond the Slots: Request_State_Response uses no Slot but must reach the user.
// protocol: 6.11
inline constexpr std::uint32_t kStateReserve = 16;

// An entry of the Schedule Header Queue. Its first cache line has all of it but the payload.
struct alignas(kCacheLine) ReceivedEntry {
  wire::Header header;
  std::uint64_t source_mac;     // connectionless: who sent it (MacAddr::to_u64)
  std::uint8_t payload_length;  // 0, 32 or 64
  std::uint8_t reserved[3];
  std::uint32_t length;  // DATA: bytes of the Block
  std::uint8_t more[8];
  std::uint8_t payload[wire::kAppendSize];  // option payload (32) or append (64)
};
static_assert(sizeof(ReceivedEntry) == 2 * kCacheLine);
static_assert(offsetof(ReceivedEntry, payload) == kCacheLine);

// A request of the user to the Node. Its first cache line has all of it but the payload.
struct alignas(kCacheLine) SendEntry {
  wire::Header header;
  std::uint64_t destination_mac;  // connectionless only
  std::uint32_t length;           // DATA: bytes from the user's transmit buffers
  std::uint32_t bufx;             // DATA: where they begin
  std::uint32_t offset;
  std::uint8_t payload_length;  // 0, 32 (control) or 64 (DATA)
  std::uint8_t limited;        // 1: CTS: grants `length` bytes, whatever T_len and Blocksize allow;
                               // DATA: does not go to the end of its Block, so has no Last
                               // kInParts: CTS: as 1, and the Node may grant it in parts (13.19)
  std::uint8_t may_be_marked;  // 1: DATA: of a Block that the peer has granted, sent first (13.22)
  std::uint8_t reserved[1];
  std::uint8_t payload[wire::kAppendSize];
};
static_assert(sizeof(SendEntry) == 2 * kCacheLine);
// NodeChannel::look() reads these together.
static_assert(offsetof(SendEntry, may_be_marked) == offsetof(SendEntry, payload_length) + 2 &&
              offsetof(SendEntry, payload) == offsetof(SendEntry, payload_length) + 4);
static_assert(offsetof(SendEntry, payload) == kCacheLine);
inline constexpr std::uint8_t kInParts = 2;  // SendEntry::limited

// An entry without payload is its first cache line, and no more of it is written or read. Who
// decides that is this side alone: the other one may write to the ring meanwhile.
template <typename Entry>
void write_entry(const Entry& entry, Entry& place) {
  std::memcpy(static_cast<void*>(&place), &entry, kCacheLine);
  if (entry.payload_length != 0) std::memcpy(place.payload, entry.payload, sizeof place.payload);
}
template <typename Entry>
void read_entry(const Entry& place, Entry& out) {
  std::memcpy(static_cast<void*>(&out), &place, kCacheLine);
  // Stops further reads of that line.
  std::atomic_signal_fence(std::memory_order_seq_cst);
  if (out.payload_length != 0) std::memcpy(out.payload, place.payload, sizeof out.payload);
}

enum class ChannelState : std::uint32_t {
  kConnecting = 0,  // Request_Connection sent, no answer yet
  kOpen = 1,
  kPeerClosed = 2,  // the peer disconnected; queued headers can still be read
  kFailed = 3,      // see ChannelControl::error
  kClosed = 4,      // closed by this side, all done
};

struct ChannelControl {
  // Set once by the Node's side, before the user sees the channel.
  std::uint32_t magic;
  std::uint32_t size;         // bytes of the whole channel
  std::uint32_t slots;        // Slots announced to the peer
  std::uint32_t credits;      // entries of the transmit queue a user may fill
  std::uint32_t rx_capacity;  // ring sizes: powers of two
  std::uint32_t tx_capacity;
  std::uint32_t rx_at;  // byte positions of the rings from the start of the channel
  std::uint32_t tx_at;

  // Written by the Node's side only. Indices wrap at 2^32.
  alignas(kCacheLine) std::atomic<std::uint32_t> rx_head;  // next entry the Node fills
  std::atomic<std::uint32_t> tx_tail;                      // next entry the Node takes
  std::atomic<std::uint32_t> tx_done;     // requests before it no longer use the user's memory
  std::atomic<std::uint32_t> tx_refused;  // requests that the Node refused
  std::atomic<ChannelState> state;
  std::atomic<std::int32_t> error;            // negative errno, with kFailed
  std::atomic<std::uint32_t> cts_repeated;    // CTS sent again because STUs were lost
  std::atomic<std::uint32_t> wake;            // futex word: incremented to wake a sleeping user
  std::atomic<std::uint32_t> tx_over_budget;  // of tx_refused: no memory to track the grants
  std::atomic<std::uint32_t> path_block;      // exponent of the Block that suits the path; 0: any
  std::atomic<std::uint32_t> rx_first;        // as tx_first, of the Schedule Header Queue
  std::atomic<std::uint32_t> steps;           // of Blocks that are granted in parts (10.17)

  // Written by the user's side only.
  alignas(kCacheLine) std::atomic<std::uint32_t> rx_tail;  // next entry the user reads
  std::atomic<std::uint32_t> tx_head;                      // next entry the user fills
  std::atomic<std::uint32_t> sleepers;                     // users asleep on `wake`, or about to be
  std::atomic<std::uint32_t> gathered;   // not 0: the user gathers many channels: notify it with
                                         // kNews. Tells users that sleep on one word apart
  std::atomic<std::uint32_t> passed_on;  // the value of `wake` at which one sleeper woke the others
  // The index whose entry stands in the first place of the ring. Whoever fills an empty ring begins
  // with that place: a connection that never has much outstanding uses two pages of its rings.
  std::atomic<std::uint32_t> tx_first;
};
inline constexpr std::uint32_t kChannelMagic = 0x53545043;  // "STPC"
static_assert(std::atomic<std::uint32_t>::is_always_lock_free);
static_assert(sizeof(std::atomic<ChannelState>) == 4);

struct ChannelGeometry {
  std::uint32_t slots = 0;    // 1..kMaxSlots
  std::uint32_t credits = 0;  // 1..kMaxCredits

  [[nodiscard]] constexpr std::uint32_t rx_capacity() const {
    return std::bit_ceil(slots + kStateReserve);
  }
  [[nodiscard]] constexpr std::uint32_t tx_capacity() const { return std::bit_ceil(credits); }
  [[nodiscard]] constexpr std::size_t rx_at() const {
    return (sizeof(ChannelControl) + kCacheLine - 1) / kCacheLine * kCacheLine;
  }
  [[nodiscard]] constexpr std::size_t tx_at() const {
    return rx_at() + std::size_t{rx_capacity()} * sizeof(ReceivedEntry);
  }
  // Bytes a channel needs; its memory must be aligned to a cache line and zeroed.
  [[nodiscard]] constexpr std::size_t size() const {
    return tx_at() + std::size_t{tx_capacity()} * sizeof(SendEntry);
  }
};

}  // namespace stp
