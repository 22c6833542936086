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
  int bind_cntr(fid_t other, std::uint64_t flags);
  // The queues and counters may be closed.
  void release();

  [[nodiscard]] bool has_queue() const { return tx_cq_ != nullptr || rx_cq_ != nullptr; }
  [[nodiscard]] bool has_counter() const;
  [[nodiscard]] Cq* rx_cq() const { return rx_cq_; }
  // Whether the success of an operation with those flags is told, too.
  [[nodiscard]] bool tells(Direction direction, std::uint64_t flags) const;
  void complete(const Op& op);

 private:
  Cq* tx_cq_ = nullptr;
  Cq* rx_cq_ = nullptr;
  std::array<Cntr*, 4> counters_{};  // by Direction
  bool tx_selective_ = false, rx_selective_ = false;
};

}  // namespace stp::fi
