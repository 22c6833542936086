// SPDX-License-Identifier: BSD-3-Clause
// Where an endpoint reports what is done: its completion queues and counters. Under the link's
// mutex.
#pragma once

#include <rdma/fabric.h>

#include <array>

#include "libst/libfabric/op.h"

namespace stp::fi {

class Cntr;
class Cq;

class Reports {
 public:
  int bind_cq(fid_t other, std::uint64_t flags);
  // `accesses`: of peers may be counted, too.
  int bind_cntr(fid_t other, std::uint64_t flags, bool accesses);
  // The queues and counters may be closed.
  void release();

  [[nodiscard]] bool has_queue() const { return tx_cq_ != nullptr || rx_cq_ != nullptr; }
  [[nodiscard]] bool has_counter() const;
  // A peer has written, with immediate data.
  void tell_written(std::uint64_t length, std::uint64_t data, fi_addr_t source);
  // Whether the success of an operation with those flags is told, too.
  [[nodiscard]] bool tells(Direction direction, std::uint64_t flags) const;
  void complete(const Outcome& op);
  void count_access(bool reads);

 private:
  Cq* tx_cq_ = nullptr;
  Cq* rx_cq_ = nullptr;
  // By Direction; then reads and writes of peers.
  std::array<Cntr*, 6> counters_{};
  bool tx_selective_ = false, rx_selective_ = false;
};

}  // namespace stp::fi
