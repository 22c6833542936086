// SPDX-License-Identifier: BSD-3-Clause
// A fabric: a link that is open.
#pragma once

#include <rdma/fabric.h>

#include <atomic>
#include <memory>

#include "libst/libfabric/link.h"

namespace stp::fi {

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

}  // namespace stp::fi
