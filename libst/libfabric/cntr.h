// SPDX-License-Identifier: BSD-3-Clause
// Counts completions and failed ones.
#pragma once

#include <rdma/fi_eq.h>

#include "libst/libfabric/link.h"
#include "libst/libfabric/wait.h"

namespace stp::fi {

class Domain;

class Cntr : public fid_cntr {
 public:
  static int open(Domain& domain, const fi_cntr_attr& attr, void* context, fid_cntr*& out);

  // ---- under the link's mutex ----
  void count(bool failed);
  void use() { ++users_; }
  void unuse() { --users_; }
  int try_wait();

  int close();
  int control(int command, void* argument);
  std::uint64_t read(bool errors);
  int set(bool errors, std::uint64_t value, bool add);
  int wait(std::uint64_t threshold, int timeout);

 private:
  Cntr(Domain& domain, const fi_cntr_attr& attr, void* context);

  Domain& domain_;
  Link& link_;
  std::uint64_t value_ = 0, errors_ = 0;
  Wait wait_;
  unsigned users_ = 0;
};

}  // namespace stp::fi
