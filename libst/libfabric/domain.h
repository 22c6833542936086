// SPDX-License-Identifier: BSD-3-Clause
// A fabric, which is an open link, and a domain, which owns queues, counters, memory and endpoints.
#pragma once

#include <rdma/fabric.h>
#include <rdma/fi_domain.h>

#include <atomic>
#include <memory>
#include <unordered_map>

#include "libst/libfabric/link.h"

namespace stp::fi {

// A fabric: a link that is open.
class Fabric : public fid_fabric {
 public:
  static int open(const fi_fabric_attr& attr, void* context, fid_fabric*& out);

  [[nodiscard]] Link& link() const { return *link_; }
  void use() { ++users_; }
  void unuse() { --users_; }

  int close();
  int try_wait(fid_t* objects, int count);

 private:
  Fabric(const fi_fabric_attr& attr, std::unique_ptr<Link> link, void* context);

  const std::unique_ptr<Link> link_;
  std::atomic<unsigned> users_{0};
};

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
