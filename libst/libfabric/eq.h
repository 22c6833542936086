// SPDX-License-Identifier: BSD-3-Clause
// An event queue: events of connections, and those that the program writes.
#pragma once

#include <rdma/fi_eq.h>

#include <deque>
#include <vector>

#include "libst/libfabric/link.h"
#include "libst/libfabric/wait.h"

namespace stp::fi {

class Fabric;

struct News {
  std::uint32_t event = 0;
  fid_t about = nullptr;
  fi_info* info = nullptr;       // of a FI_CONNREQ: the reader frees it
  std::vector<std::byte> bytes;  // the event as fi_eq_read returns it, or the data of an error
  int error = 0;                 // libfabric's, positive; 0: none
  int status = 0;
};

class Eq : public fid_eq {
 public:
  static int open(Fabric& fabric, const fi_eq_attr& attr, void* context, fid_eq*& out);
  ~Eq();

  // ---- under the link's mutex ----
  // An event of a connection: a fi_eq_cm_entry and those bytes.
  void tell(std::uint32_t event, fid_t about, fi_info* info, const std::vector<std::byte>& data);
  void tell_error(fid_t about, int status, std::vector<std::byte> data);
  // Whether it has events of it that were not read.
  [[nodiscard]] bool knows_of(fid_t about) const;
  // Reports no further events of it.
  void forget(fid_t about);
  // For an object that is bound to the event queue `other` and keeps it in `place` until it calls
  // unuse().
  static int bind(Eq*& place, fid_t other, std::uint64_t flags);
  void unuse() { --users_; }
  int try_wait();

  int close();
  int control(int command, void* argument);
  ssize_t read(std::uint32_t* event, void* buffer, std::size_t length, std::uint64_t flags);
  ssize_t read_error(fi_eq_err_entry& entry, std::uint64_t flags);
  ssize_t write(std::uint32_t event, const void* buffer, std::size_t length, std::uint64_t flags);
  ssize_t wait_and_read(std::uint32_t* event, void* buffer, std::size_t length, int timeout,
                        std::uint64_t flags);

 private:
  Eq(Fabric& fabric, const fi_eq_attr& attr, void* context);
  ssize_t take(std::uint32_t* event, void* buffer, std::size_t length, std::uint64_t flags);

  Fabric& fabric_;
  Link& link_;
  const bool writable_;
  const std::size_t size_;
  std::deque<News> news_;
  std::vector<std::byte> error_data_;  // of the error that was read last
  Wait wait_;
  unsigned users_ = 0;
};

}  // namespace stp::fi
