// SPDX-License-Identifier: BSD-3-Clause
// Every number of the wire format that an owner of the printed standard might correct: op codes,
// flag bits, field positions, legal exponents. No other file repeats them. Marks as in
// docs/protocol.md: [S] public record of the standard, [P] decision of our profile.
#pragma once

#include <cstddef>
#include <cstdint>

namespace stp::wire {

// protocol: 2.2
inline constexpr std::uint16_t kEtherType = 0x8181;      // [S, IANA]
inline constexpr std::uint16_t kVlanEtherType = 0x8100;  // IEEE 802.1Q
inline constexpr std::uint16_t kMax8023Length = 1500;    // a type field at or below is a length

// Over IP: the usual UDP port, which is not registered, and the protocol of IP itself.
// protocol: 13.2, 13.15
inline constexpr std::uint16_t kUdpPort = 8181;   // [P]
inline constexpr std::uint8_t kIpProtocol = 118;  // [IANA]

inline constexpr std::size_t kEthernetSize = 14;
inline constexpr std::size_t kVlanSize = 4;
inline constexpr std::size_t kSnapSize = 8;     // AA AA 03 00 00 00 81 81
inline constexpr std::size_t kHeaderSize = 40;  // Schedule Header: ten 32-bit words [S]
inline constexpr std::size_t kOptionSize = 32;  // option payload of a control operation [S]
inline constexpr std::size_t kAppendSize = 64;  // append after a Block's last STU [L]
inline constexpr std::size_t kMinPayload = 46;  // Ethernet pads shorter payloads up to this
// The longest run of bytes before an STU: Ethernet, one tag, SNAP, Schedule Header.
inline constexpr std::size_t kMaxHeadSize = kEthernetSize + kVlanSize + kSnapSize + kHeaderSize;

// w0: Op:5 | Flags:11 | Param:16 [S]
// protocol: 3.4
enum class Op : std::uint8_t {
  kRequestConnection = 0x01,
  kConnectionAnswer = 0x02,
  kRequestDisconnect = 0x03,
  kDisconnectAnswer = 0x04,
  kDisconnectComplete = 0x05,
  kNoOperation = 0x10,
  kRequestMemoryRegion = 0x13,
  kMemoryRegionAvailable = 0x14,
  kGet = 0x15,  // Get, FetchOp, FetchOp_Complete: told apart by the function bits
  kRequestToSend = 0x16,
  kRequestAnswer = 0x17,
  kRequestToReceive = 0x18,
  kClearToSend = 0x1a,
  kData = 0x1b,
  kRequestState = 0x1c,
  kRequestStateResponse = 0x1d,
  kEnd = 0x1e,
  kEndAck = 0x1f,
};
inline constexpr unsigned kOpShift = 11;
inline constexpr std::uint16_t kFlagsMask = 0x07ff;

// Bits of the 16-bit Op/Flags word.
// protocol: 3.5
namespace flag {
inline constexpr std::uint16_t kReserved = 0x0001;   // set: syntax error [P]
inline constexpr std::uint16_t kAppend = 0x0002;     // [P]
inline constexpr std::uint16_t kReject = 0x0004;     // [S]
inline constexpr std::uint16_t kLast = 0x0008;       // [S]
inline constexpr std::uint16_t kOrder = 0x0010;      // [S]
inline constexpr std::uint16_t kSendState = 0x0020;  // [S]
inline constexpr std::uint16_t kInterrupt = 0x0040;  // [S]
inline constexpr std::uint16_t kSilent = 0x0080;     // [S]
inline constexpr std::uint16_t kFunction = 0x0700;   // GET only [S]
}  // namespace flag
inline constexpr unsigned kFunctionShift = 8;

// protocol: 3.6
enum class Function : std::uint8_t {
  kGet = 0,
  kFetchIncrement = 1,
  kFetchDecrement = 2,
  kFetchClear = 3,
  kFetchAdd = 4,        // [P]
  kCompareAndSwap = 5,  // [P]
  kFetchOpComplete = 7,
};

// Byte positions inside the Schedule Header [S].
// protocol: 3.1
namespace at {
inline constexpr std::size_t kOpFlags = 0;
inline constexpr std::size_t kParam = 2;
inline constexpr std::size_t kDPort = 4;
inline constexpr std::size_t kSPort = 6;
inline constexpr std::size_t kDKey = 8;
inline constexpr std::size_t kCksum = 12;
inline constexpr std::size_t kMx = 14;  // also EtherType (RC), Max_Block (RTS)
inline constexpr std::size_t kBufx = 16;
inline constexpr std::size_t kOffset = 20;
inline constexpr std::size_t kSync = 24;  // also F_Offset, T_len high half
inline constexpr std::size_t kBNum = 28;  // also T_len low half
inline constexpr std::size_t kDId = 32;
inline constexpr std::size_t kSId = 36;  // also Opaque
}  // namespace at

// Legal powers of two, as exponents [P]. Values outside never reach a shift instruction.
// protocol: 3.11, 3.12
inline constexpr unsigned kMinBufsize = 8, kMaxBufsize = 30;
inline constexpr unsigned kMinMaxStu = 8, kMaxMaxStu = 16;
inline constexpr unsigned kMinBlocksize = 8, kMaxBlocksize = 31;
inline constexpr unsigned kMaxStusOfBlockLog2 = 15;  // Blocksize <= log2(STU size) + this

// protocol: 3.15
inline constexpr std::uint32_t kNoId = 0xffffffff;  // "no id", "no Block": never a real id
inline constexpr std::uint32_t kMaxPort = 0xffff;

}  // namespace stp::wire
