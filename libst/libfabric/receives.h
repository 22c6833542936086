// SPDX-License-Identifier: BSD-3-Clause
// Receives that a program has posted, on one endpoint or shared by several (Srx). The provider
// matches them itself, not the managed API: a short message lands in memory of the provider.
#pragma once

#include <rdma/fi_endpoint.h>

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
inline std::size_t length_of(const iovec* iov, std::size_t count) {
  std::size_t length = 0;
  for (std::size_t i = 0; i < count; ++i) length += iov[i].iov_len;
  return length;
}
Segments one_segment(const void* buffer, std::size_t length, void* desc);
// The segments without their first `length` bytes.
Segments without(const Segments& segments, std::size_t length);
// Cuts the segments to their first `length` bytes.
Segments shortened(const Segments& segments, std::size_t length);
void scatter(const std::byte* from, const Segments& to, std::size_t length);
inline void scatter(const std::byte* from, const Segments& to) {
  scatter(from, to, to.length);
}
void gather(const Segments& from, std::byte* to);

// A shared receive context: receives for all endpoints bound to it.
class Domain;
class FabricLink;

class Srx : public fid_ep {
 public:
  static int open(Domain& domain, const fi_rx_attr* attr, void* context, fid_ep*& out);

  // ---- under the link's mutex ----
  Receives& receives() { return receives_; }
  void use() { ++users_; }
  void unuse() { --users_; }

  int close();
  ssize_t post(PostedReceive&& receive);

 private:
  Srx(Domain& domain, const fi_rx_attr* attr, void* context);

  Domain& domain_;
  FabricLink& link_;
  Receives receives_;
  unsigned users_ = 0;
};

}  // namespace stp::fi
