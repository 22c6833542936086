// SPDX-License-Identifier: BSD-3-Clause
// Events of an EVD. Numbers and statuses are those of both DAT interfaces.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

namespace stp::udapl {

enum class EventNumber : std::uint32_t {
  kNone = 0,
  kDtoCompletion = 0x00001,
  kRmrBindCompletion = 0x01001,
  kConnectionRequest = 0x02001,
  kEstablished = 0x04001,
  kPeerRejected = 0x04002,
  kNonPeerRejected = 0x04003,
  kAcceptCompletionError = 0x04004,
  kDisconnected = 0x04005,
  kBroken = 0x04006,
  kTimedOut = 0x04007,
  kUnreachable = 0x04008,
  kEvdOverflow = 0x08001,
  kIaCatastrophic = 0x08002,
  kEpBroken = 0x08003,
  kProviderInternalError = 0x08005,
  kSoftware = 0x10001,
};

enum class DtoStatus : std::uint32_t {
  kSuccess = 0,
  kFlushed = 1,
  kLocalLength = 2,
  kLocalProtection = 4,
  kRemoteAccess = 6,
  kRemoteResponder = 7,
  kTransport = 8,
  kReceiverNotReady = 9,
};

enum class Dto : std::uint8_t { kSend, kRdmaWrite, kRdmaRead, kReceive, kBind };

// Why an asynchronous error: of an EP, of an SRQ, of an EVD, of an IA.
enum class AsyncReason : std::uint8_t {
  kOther,
  kSoftHighWatermark,
  kLowWatermark,
  kOverflow,
  kCatastrophic
};

class Srq;

struct Event {
  EventNumber number = EventNumber::kNone;
  bool notify = true;      // unblocks a waiter, triggers the CNO
  void* handle = nullptr;  // EP, RMR, service point, or what the error is of
  // DTO, bind
  Dto dto = Dto::kSend;
  DtoStatus status = DtoStatus::kSuccess;
  AsyncReason reason = AsyncReason::kOther;
  std::uint64_t cookie = 0;
  std::uint64_t length = 0;
  // connection: the requester's view of what the peer sent along; request: its CR and qualifier
  const std::byte* private_data = nullptr;
  std::size_t private_size = 0;
  void* cr = nullptr;
  std::uint64_t conn_qual = 0;
  void* pointer = nullptr;  // software
  // A buffer of that SRQ: it counts as outstanding until the event is taken.
  std::shared_ptr<Srq> srq;
};

}  // namespace stp::udapl
