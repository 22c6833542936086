// SPDX-License-Identifier: BSD-3-Clause
// A completion queue. It grows with the number of posted operations, so it loses no completion.
#pragma once

#include <rdma/fi_domain.h>
#include <rdma/fi_eq.h>

#include <deque>
#include <vector>

#include "libst/libfabric/link.h"
#include "libst/libfabric/wait.h"

namespace stp::fi {

class Domain;

struct Completion {
  void* context = nullptr;
  std::uint64_t flags = 0;
  std::size_t length = 0;
  void* buffer = nullptr;
  std::uint64_t data = 0;
  std::uint64_t tag = 0;
  fi_addr_t source = FI_ADDR_NOTAVAIL;
  int error = 0;  // libfabric's, positive; 0: success
  int status = 0;
  std::size_t overflow = 0;
};

class Cq : public fid_cq {
 public:
  static int open(Domain& domain, const fi_cq_attr& attr, void* context, fid_cq*& out);

  // ---- under the link's mutex ----
  void push(const Completion& completion);
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
  [[nodiscard]] bool can_wait() const { return wait_obj_ != FI_WAIT_NONE; }
  int open_wait();
  std::byte* write(const Completion& completion, std::byte* to) const;
  ssize_t take(void* buffer, std::size_t count, fi_addr_t* sources);

  Domain& domain_;
  Link& link_;
  const fi_cq_format format_;
  const fi_wait_obj wait_obj_;
  std::deque<Completion> completions_;
  Wait wait_;
  bool signaled_ = false;
  unsigned users_ = 0;
};

}  // namespace stp::fi
