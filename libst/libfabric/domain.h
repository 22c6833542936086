// SPDX-License-Identifier: BSD-3-Clause
// A domain: owns queues, counters, memory and endpoints.
#pragma once

#include <rdma/fi_domain.h>

#include <atomic>
#include <unordered_map>

#include "libst/libfabric/fabric.h"

namespace stp::fi {

class Mr;

class Domain : public fid_domain {
 public:
  static int open(Fabric& fabric, const fi_info& info, void* context, fid_domain*& out);

  [[nodiscard]] Link& link() const { return fabric_.link(); }
  [[nodiscard]] std::uint32_t api_version() const { return fabric_.api_version; }
  void use() { ++users_; }
  void unuse() { --users_; }
  int close();

  // ---- under the link's mutex ----
  // Counters are bound to that memory.
  void watch(const Mr& region);
  void unwatch(const Mr& region);
  // A peer has read or written the memory of that key.
  void count_access(std::uint32_t key, bool reads) const;

 private:
  Domain(Fabric& fabric, void* context);

  Fabric& fabric_;
  std::atomic<unsigned> users_{0};
  std::unordered_map<std::uint64_t, const Mr*> watched_;  // by key
};

}  // namespace stp::fi
