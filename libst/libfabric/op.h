// SPDX-License-Identifier: BSD-3-Clause
// An operation of a program, from its call to its completion: one or more operations of the
// managed API, of which each names it as its context.
#pragma once

#include <sys/uio.h>

#include <array>
#include <cstdint>

#include "libst/libfabric/limits.h"
#include "libst/libfabric/staging.h"

namespace stp::fi {

class Ep;

// Which counter and which queue it belongs to.
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
  bool told = false;      // also where it succeeds
  bool injected = false;  // by fi_inject and the like: nothing is told of it
  unsigned parts = 0;     // of it that are under way
  int status = 0;
  std::size_t length = 0, overflow = 0;
  std::uint64_t data = 0;
  Span span;
  Span note;         // of a write with immediate data: the message that tells it
  Segments landing;  // where what arrives in `span` goes from there
};

}  // namespace stp::fi
