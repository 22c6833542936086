// SPDX-License-Identifier: BSD-3-Clause
// Receives that a program has posted, on one endpoint or shared by several (Srx). The provider
// matches them itself, not the managed API: a short message lands in memory of the provider.
#pragma once

#include <rdma/fi_endpoint.h>

#include <deque>

#include "libst/libfabric/endpoint.h"
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

// A shared receive context: receives for all endpoints bound to it.
class Domain;
class FabricLink;

class Srx final : public MessageEnd {
 public:
  static int open(Domain& domain, const fi_rx_attr* attr, void* context, fid_ep*& out);

  // ---- under the link's mutex ----
  Receives& receives() { return receives_; }
  void use() { ++users_; }
  void unuse() { --users_; }

  int close();
  ssize_t receive(const Inbound& inbound) override;

 private:
  Srx(Domain& domain, const fi_rx_attr* attr, void* context);

  Domain& domain_;
  FabricLink& link_;
  Receives receives_;
  unsigned users_ = 0;
};

}  // namespace stp::fi
