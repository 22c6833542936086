// SPDX-License-Identifier: BSD-3-Clause
// A completion queue. It grows with the number of posted operations, so it loses no completion.
#pragma once

#include <rdma/fi_domain.h>
#include <rdma/fi_eq.h>

#include <cstddef>
#include <utility>
#include <vector>

#include "libst/libfabric/link.h"
#include "libst/libfabric/wait.h"

namespace stp::fi {

// A queue of places that are used again: it grows, and takes no memory for each entry.
template <class T>
class Ring {
 public:
  [[nodiscard]] bool empty() const { return count_ == 0; }
  // The new last one, with what an earlier one has left there.
  T& add() {
    if (count_ == places_.size()) grow();
    return places_[(first_ + count_++) & (places_.size() - 1)];
  }
  [[nodiscard]] T& front() { return places_[first_]; }
  void pop_front() {
    first_ = (first_ + 1) & (places_.size() - 1);
    --count_;
  }

 private:
  void grow() {
    constexpr std::size_t kLeast = 64;
    std::vector<T> larger(places_.empty() ? kLeast : 2 * places_.size());
    for (std::size_t i = 0; i < count_; ++i)
      larger[i] = std::move(places_[(first_ + i) & (places_.size() - 1)]);
    places_ = std::move(larger);
    first_ = 0;
  }

  std::vector<T> places_;  // a power of two
  std::size_t first_ = 0, count_ = 0;
};

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
