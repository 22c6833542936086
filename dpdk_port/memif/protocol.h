// SPDX-License-Identifier: BSD-3-Clause
// memif 2.0: the messages of its control socket, and its rings in shared memory. The side that
// connects, the client, makes the memory, with all buffers in it; the server makes the socket. All
// integers have the host's byte order. How many rings there are, and who uses which: handshake.h.
#pragma once

#include <cstddef>
#include <cstdint>

namespace stp::port::memif {

inline constexpr std::uint16_t kVersion = 0x0200;
inline constexpr std::uint32_t kCookie = 0x3e31f20;

// ---- messages: one datagram each, with at most one descriptor ----

enum class MessageType : std::uint16_t {
  kNone = 0,
  kAck = 1,         // both ways
  kHello = 2,       // server: what it can do
  kInit = 3,        // client: which interface it wants. Acknowledged, as are the next two
  kAddRegion = 4,   // client: shared memory, by its descriptor
  kAddRing = 5,     // client: a ring in it, and the descriptor of its interrupt
  kConnect = 6,     // client: that was all
  kConnected = 7,   // server: frames may flow
  kDisconnect = 8,  // both ways, with the reason
};

inline constexpr std::size_t kNameSize = 32, kSecretSize = 24, kReasonSize = 96;

struct [[gnu::packed]] Hello {
  char name[kNameSize];
  std::uint16_t least_version, greatest_version;
  std::uint16_t last_region, last_server_ring, last_client_ring;  // greatest index of each
  std::uint8_t greatest_log2_ring;
};

struct [[gnu::packed]] Init {
  std::uint16_t version;
  std::uint32_t id;
  std::uint8_t mode;  // 0: Ethernet frames
  char secret[kSecretSize];
  char name[kNameSize];
};

struct [[gnu::packed]] AddRegion {
  std::uint16_t index;
  std::uint64_t size;
};

struct [[gnu::packed]] AddRing {
  static constexpr std::uint16_t kFromClient = 1;
  std::uint16_t flags;
  std::uint16_t index;
  std::uint16_t region;
  std::uint32_t offset;
  std::uint8_t log2_size;
  std::uint16_t private_header_size;
};

struct [[gnu::packed]] Named {  // kConnect, kConnected
  char interface[kNameSize];
};

struct [[gnu::packed]] Disconnect {
  std::uint32_t code;
  char reason[kReasonSize];
};

struct [[gnu::packed]] Message {
  static constexpr std::size_t kSize = 128;
  MessageType type = MessageType::kNone;
  union [[gnu::packed]] Body {
    std::uint8_t bytes[kSize - sizeof(MessageType)];
    Hello hello;
    Init init;
    AddRegion add_region;
    AddRing add_ring;
    Named named;
    Disconnect disconnect;
  } body{};
};
static_assert(sizeof(Message) == Message::kSize);

// ---- rings ----

// Of the client's ring, which carries frames to the server, the client moves the head and the
// server the tail. Of the server's ring the client moves the head, too: it offers empty buffers up
// to there; the server fills them, and moves the tail. Both count modulo 2^16.
inline constexpr std::size_t kCookieAt = 0, kFlagsAt = 4, kHeadAt = 6, kTailAt = 64;
inline constexpr std::size_t kDescriptorsAt = 128;
// Of this implementation, in a place that memif leaves free, and others zero: waking.h.
inline constexpr std::size_t kServerSleepsAt = 8, kClientSleepsAt = 10;
// Of the rings that this side makes, and of those that it takes: DPDK's client puts them close.
inline constexpr std::size_t kRingAlignment = 64, kLeastAlignment = 16;
inline constexpr std::uint16_t kNoInterrupts = 1;  // flags: who empties the ring polls it
inline constexpr unsigned kGreatestLog2Ring = 14;

struct Descriptor {
  static constexpr std::uint16_t kMore = 1;  // the frame goes on in the next buffer
  std::uint16_t flags = 0;
  std::uint16_t region = 0;
  std::uint32_t length = 0;
  std::uint32_t offset = 0;
  std::uint32_t metadata = 0;
};
static_assert(sizeof(Descriptor) == 16);

// What a ring takes.
constexpr std::size_t ring_bytes(unsigned log2_size) {
  return kDescriptorsAt + (sizeof(Descriptor) << log2_size);
}

}  // namespace stp::port::memif
