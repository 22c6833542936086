// SPDX-License-Identifier: BSD-3-Clause
// Receives that a program has posted, on one endpoint or shared by several (srx.h). The provider
// matches them itself, not the managed API: a short message lands in memory of the provider.
#pragma once

#include <deque>

#include "libst/libfabric/op.h"

namespace stp::fi {

class Ep;

struct PostedReceive {
  void* context = nullptr;
  std::uint64_t flags = 0;
  Segments segments;
};

struct Receives {
  std::size_t most = kRxSize;
  std::deque<PostedReceive> posted;
  std::deque<Ep*> hungry;  // endpoints with messages that found no receive

  // -FI_EAGAIN: the limit of posted receives is reached.
  int post(PostedReceive&& receive);
};

// Fills `out` from a call's arguments. -FI_EINVAL: too many segments.
int read_segments(const iovec* iov, void** desc, std::size_t count, Segments& out);
Segments one_segment(const void* buffer, std::size_t length, void* desc);
// Cuts the segments to their first `length` bytes.
Segments shortened(const Segments& segments, std::size_t length);
void scatter(const std::byte* from, const Segments& to, std::size_t length);
inline void scatter(const std::byte* from, const Segments& to) {
  scatter(from, to, to.length);
}
void gather(const Segments& from, std::byte* to);

}  // namespace stp::fi
