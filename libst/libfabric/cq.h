// SPDX-License-Identifier: BSD-3-Clause
// A completion queue. It grows with the number of posted operations, so it loses no completion.
#pragma once

#include <rdma/fi_domain.h>
#include <rdma/fi_eq.h>

#include <cstddef>

#include "libst/libfabric/link.h"
#include "libst/libfabric/ring.h"
#include "libst/libfabric/wait.h"

namespace stp::fi {

class Domain;

struct Completion {
  fi_cq_tagged_entry entry{};  // other formats are the beginning of it
  fi_addr_t source = FI_ADDR_NOTAVAIL;
  int error = 0;  // libfabric's, positive; 0: success
  int status = 0;
  std::size_t overflow = 0;
};

class Cq : public fid_cq {
 public:
  static int open(Domain& domain, const fi_cq_attr& attr, void* context, fid_cq*& out);

  // ---- under the link's mutex ----
  // The caller fills in all of it, and calls wake().
  Completion& add() { return completions_.add(); }
  void wake() { wait_.wake(); }
  void use() { ++users_; }
  void unuse() { --users_; }
  // -FI_EAGAIN: read the queue first. 0: the program may sleep.
  int try_wait();

  int close();
  int control(int command, void* argument);
  ssize_t read(void* buffer, std::size_t count, fi_addr_t* sources);
  ssize_t read_error(fi_cq_err_entry& entry);
  ssize_t wait_and_read(void* buffer, std::size_t count, fi_addr_t* sources, int timeout);
  int signal();

 private:
  Cq(Domain& domain, const fi_cq_attr& attr, void* context);
  ssize_t take(void* buffer, std::size_t count, fi_addr_t* sources);

  Domain& domain_;
  Link& link_;
  const fi_cq_format format_;
  const std::size_t entry_size_;
  Ring<Completion> completions_;
  Wait wait_;
  bool signaled_ = false;
  unsigned users_ = 0;
};

}  // namespace stp::fi
