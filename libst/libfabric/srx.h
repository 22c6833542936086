// SPDX-License-Identifier: BSD-3-Clause
// A shared receive context: receives for all endpoints bound to it.
#pragma once

#include <rdma/fi_endpoint.h>

#include "libst/libfabric/receives.h"

namespace stp::fi {

class Domain;
class Link;

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
  Link& link_;
  Receives receives_;
  unsigned users_ = 0;
};

}  // namespace stp::fi
