// SPDX-License-Identifier: BSD-3-Clause
// An operation of a program, from its call to its completion. It consists of one or more operations
// of the managed API, which have it as their context.
#pragma once

#include <sys/uio.h>

#include <array>
#include <cstdint>

#include "libst/libfabric/limits.h"
#include "libst/libfabric/staging.h"

namespace stp::fi {

class Ep;

// Selects the counter and the queue of the operation.
enum class Direction : std::uint8_t { kSend, kReceive, kRead, kWrite };

struct Segments {
  std::array<iovec, kSegments> iov{};
  std::array<void*, kSegments> desc{};
  std::size_t count = 0;
  std::size_t length = 0;  // of all
};

struct Op {
  Ep* ep = nullptr;
  void* context = nullptr;
  std::uint64_t flags = 0;  // of its completion: FI_SEND | FI_MSG and the like
  Direction direction = Direction::kSend;
  bool told = false;      // report success, too
  bool injected = false;  // by fi_inject and similar calls: report nothing
  unsigned parts = 0;     // parts under way
  int status = 0;
  std::size_t length = 0, overflow = 0;
  std::uint64_t data = 0;
  Span span;
  Span note;         // of a write with immediate data: the message that reports it
  Segments landing;  // the destination of the data that arrives in `span`
};

}  // namespace stp::fi
