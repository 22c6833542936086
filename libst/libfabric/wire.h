// SPDX-License-Identifier: BSD-3-Clause
// The protocols between endpoints, in messages of the managed API, whose wire format they do not
// change. The tag of such a message gives its kind. Numbers are big-endian.
//
// FI_EP_MSG: a message of up to kShortMost bytes is sent as it is, so its immediate data follows
// its bytes. A longer one is announced, and read by the receiver: one at a time, in their order, so
// that the sender knows which one is meant. An empty one is read as one byte of any value.
//
// FI_EP_RDM: an endpoint sends on connections that it has made itself. Its peer answers there with
// kPull, kLane, kFreed and kAnswer. Each message begins with this header:
//
//    0  tag of a tagged message
//    8  immediate data
//   16  length: of the message (kEager, kFirst, kLaned, kAnnounced), of the write (kWritten), of
//       the read (kPull), of the lane (kLane); where in its message a part begins (kMore); up to
//       which page the lane is free (kFreed)
//   24  id: numbers an announced message (kAnnounced, kPull); the key of the memory (kWritten,
//       kAccessed, kLane); the page of the lane (kLaned)
//   28  flags
//
// The bytes of a message follow the header of kEager. A longer one may come in parts: kFirst brings
// its header and first bytes, each kMore the next ones. All but the last are as long as possible,
// and nothing else comes between them. A message that is announced is read: the receiver
// sends kPull with its id, and reads (stm_read) as many bytes as kPull says. The sender knows by
// the length which read belongs to which kPull, so all reads under way have lengths of their own.
// For that the last bytes of the message (kTail) follow the header of kAnnounced: of several
// messages of one length, the receiver reads each with another number of them left out. An empty
// message that is announced is read as one byte of any value.
//
// An endpoint that connects says whether it knows lanes (kKnowsLanes). Only then the peer may lend
// it one (rdm/landing.h): kLane names the memory and, as immediate data, the base of its marks. The
// sender puts the bytes of a message there, and sends kLaned behind it, without waiting for the
// put. In place of the last bytes that it puts it puts a mark, and those (kLaneTail) follow the
// header. So the receiver knows whether the put is there already. Behind them comes what the
// message has after its whole pages, if kLane says that it may (kRests). kFreed gives pages back.
// Nobody has to use a lane.
//
// Short messages that find no room in the peer's ring wait for each other: kSeveral brings several
// of them, each as one of kEager is, one behind the other. An endpoint that may send that says so
// when it connects, behind kKnowsLanes (kSendsSeveral), and only then its peer says that it may
// (kTakesSeveral, in front of kListens).
//
// An endpoint with FI_RMA_EVENT says so when it accepts a connection (kListens). Only then its peer
// sends kAccessed after each write, read and atomic operation without immediate data: when it is
// complete, with kReads or without.
//
// Memory that no link can write (kByProgram) is accessed by its own program, while that calls the
// library. kAsk asks for it, one step at a time on each connection: after the header come the key
// of the memory and, of a write, its bytes, of an atomic step the number to add or to store and the
// one to compare with (8 bytes each). Its tag is the address, its length that of the access, its id
// the step's number, its flags tell what (Access). kAnswer has that id, the error (flags), and what
// stood there before an atomic step (data). A read with kAnswer that tells no error is made then
// (stm_read), of that length.
#pragma once

#include <endian.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

#include "libst/libfabric/info.h"

namespace stp::fi {

// ---- FI_EP_MSG ----

enum class MessageKind : std::uint32_t {
  kPlain = 0,          // the bytes
  kData = 1,           // the bytes, then 8 of immediate data
  kAnnounced = 2,      // 16 bytes: the length of a message, 0. The receiver reads it (stm_read)
  kAnnouncedData = 3,  // 16 bytes: the length of such a message, its immediate data
  kWritten = 4,        // 16 bytes: the length of a complete write, its immediate data
};
inline constexpr std::size_t kAnnouncement = 16;

inline void store64(std::byte* to, std::uint64_t value) {
  const auto big = htobe64(value);
  std::memcpy(to, &big, sizeof big);
}
inline std::uint64_t load64(const std::byte* from) {
  std::uint64_t big = 0;
  std::memcpy(&big, from, sizeof big);
  return be64toh(big);
}

// Whether a message of that kind may have that length, and announce what it does.
inline bool is_legal(MessageKind kind, const std::byte* data, std::size_t length) {
  switch (kind) {
    case MessageKind::kPlain:
      return length <= kShortMost;
    case MessageKind::kData:
      return length >= kTrailer && length <= kBuffer;
    case MessageKind::kAnnounced:
    case MessageKind::kAnnouncedData:
    case MessageKind::kWritten:
      return length == kAnnouncement && load64(data) <= kMostMessage;
  }
  return false;
}

// ---- FI_EP_RDM ----

enum class Kind : std::uint32_t {
  kEager = 0x100,
  kAnnounced = 0x101,
  kPull = 0x102,
  kWritten = 0x103,
  kAccessed = 0x104,
  kFirst = 0x105,
  kMore = 0x106,
  kLaned = 0x107,
  kLane = 0x108,
  kFreed = 0x109,
  kAsk = 0x10a,
  kAnswer = 0x10b,
  kSeveral = 0x10c,
};

inline constexpr std::size_t kHead = 32;
// The longest message that is sent with its header.
inline constexpr std::size_t kEagerMost = kBuffer - kHead;
// The longest message that comes in parts.
inline constexpr std::size_t kPartsMost = 4 * kEagerMost;
static_assert(kRdmInjectMost + kHead == 4080, "the longest short message of the managed API");
// A receiver has so many reads under way on a connection. It can leave out 0 to kTail bytes, so one
// of the lengths is always free.
inline constexpr std::size_t kMostReads = 16;
inline constexpr std::size_t kTail = kMostReads - 1;
// The last bytes that are put into a lane for a message: they come with its header.
inline constexpr std::size_t kLaneTail = 8;
inline constexpr std::size_t kLanePage = 4096;
// What a message has behind its whole pages may come with its header, too, as a short message of
// the managed API: so all frames of the message have one length, and leave and arrive together.
inline constexpr std::size_t kMostRest = kRdmInjectMost - kLaneTail;
// The first word of a connection request: "STFR".
inline constexpr std::uint32_t kMagic = 0x53544652;

// kRests: of kLane; what is behind the whole pages of messages may come with their headers.
enum HeadFlags : std::uint32_t { kTagged = 1, kWithData = 2, kReads = 4, kRests = 8 };
// What kAsk asks for.
enum class Access : std::uint32_t { kWrite = 0, kRead = 1, kAdd = 2, kSwap = 3 };
// Behind its header: the key, and two numbers.
inline constexpr std::size_t kAskHead = kHead + 8, kNumbers = 16;
inline constexpr std::size_t kAskMost = kBuffer - kAskHead;
// What an endpoint with FI_RMA_EVENT accepts a connection with.
inline constexpr std::string_view kListens = "accesses";
// What one that knows lanes asks for a connection with, behind its address.
inline constexpr std::string_view kKnowsLanes = "lanes";
// What one that may send several messages as one says behind that, and who accepts it answers.
inline constexpr std::string_view kSendsSeveral = "several", kTakesSeveral = "several";

// What is said with a connection: words, one behind the other.
inline std::string_view words_in(const std::vector<std::byte>& data) {
  return {reinterpret_cast<const char*>(data.data()), data.size()};
}
inline bool take_word(std::string_view& words, std::string_view word) {
  if (!words.starts_with(word)) return false;
  words.remove_prefix(word.size());
  return true;
}

struct Head {
  std::uint64_t tag = 0, data = 0, length = 0;
  std::uint32_t id = 0, flags = 0;
};

inline void store(const Head& head, std::byte* to) {
  const std::uint64_t words[] = {htobe64(head.tag), htobe64(head.data), htobe64(head.length),
                                 htobe64(std::uint64_t{head.id} << 32 | head.flags)};
  static_assert(sizeof words == kHead);
  std::memcpy(to, words, kHead);
}

inline Head load(const std::byte* from) {
  const auto last = load64(from + 24);
  return {.tag = load64(from),
          .data = load64(from + 8),
          .length = load64(from + 16),
          .id = static_cast<std::uint32_t>(last >> 32),
          .flags = static_cast<std::uint32_t>(last)};
}

// The bytes of the part that begins at `offset`.
inline std::size_t part_length(std::size_t length, std::size_t offset) {
  return std::min(kEagerMost, length - offset);
}

// The last bytes of an announced message that come with its header.
inline std::size_t tail_length(std::size_t length) {
  return std::min(kTail, length);
}

// How many bytes of a message in a lane come with its header, if its receiver takes some so.
inline std::size_t rest_of(std::size_t length) {
  const auto rest = length % kLanePage;
  return length > kLanePage && rest <= kMostRest ? rest : 0;
}

// The flags of messages of that kind.
inline std::uint32_t known_flags(Kind kind) {
  if (kind == Kind::kMore) return 0;
  if (kind == Kind::kAsk) return 3;
  return kind == Kind::kAccessed ? kReads : kTagged | kWithData;
}

inline bool is_legal_ask(const Head& head, std::size_t size) {
  switch (static_cast<Access>(head.flags)) {
    case Access::kWrite:
      return size >= kAskHead && head.length == size - kAskHead;
    case Access::kRead:
      return size == kAskHead && head.length > 0 && head.length <= kPartsMost;
    case Access::kAdd:
    case Access::kSwap:
      break;
  }
  return size == kAskHead + kNumbers && head.length == 8 && head.tag % 8 == 0;
}

// Whether a sender may send that: a message of `size` bytes with its header.
inline bool is_legal(Kind kind, const Head& head, std::size_t size) {
  if ((head.flags & ~known_flags(kind)) != 0) return false;
  switch (kind) {
    case Kind::kEager:
      return head.length == size - kHead && head.length <= kEagerMost;
    case Kind::kSeveral:  // the first of them
      return head.length <= std::min(kRdmInjectMost, size - kHead);
    case Kind::kFirst:
      return size == kBuffer && head.length > kEagerMost && head.length <= kPartsMost;
    case Kind::kMore:
      return size > kHead && head.length < kPartsMost;
    case Kind::kLaned:
      return head.length > kRdmInjectMost && head.length <= kPartsMost &&
             (size == kHead + kLaneTail || size == kHead + kLaneTail + rest_of(head.length));
    case Kind::kAnnounced:
      return head.length <= kMostMessage && size == kHead + tail_length(head.length);
    case Kind::kWritten:
      return size == kHead && head.length <= kMostMessage && (head.flags & kTagged) == 0;
    case Kind::kAccessed:
      return size == kHead;
    case Kind::kAsk:
      return is_legal_ask(head, size);
    case Kind::kPull:
    case Kind::kLane:
    case Kind::kFreed:
    case Kind::kAnswer:
      break;
  }
  return false;
}

}  // namespace stp::fi
