// SPDX-License-Identifier: BSD-3-Clause
// A domain: owns queues, counters, memory and endpoints.
#pragma once

#include <rdma/fi_domain.h>

#include <atomic>

#include "libst/libfabric/fabric.h"

namespace stp::fi {

class Domain : public fid_domain {
 public:
  static int open(Fabric& fabric, const fi_info& info, void* context, fid_domain*& out);

  [[nodiscard]] Link& link() const { return fabric_.link(); }
  [[nodiscard]] std::uint32_t api_version() const { return fabric_.api_version; }
  void use() { ++users_; }
  void unuse() { --users_; }
  int close();

 private:
  Domain(Fabric& fabric, void* context);

  Fabric& fabric_;
  std::atomic<unsigned> users_{0};
};

}  // namespace stp::fi
