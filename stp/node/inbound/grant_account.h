// SPDX-License-Identifier: BSD-3-Clause
// The bytes that a connection granted by CTS and that have not arrived. They count in the sums of
// its owner and of the Node, which pacing uses.
#pragma once

#include <cstdint>

#include "stp/base/assert.h"

namespace stp {

// Over all connections of a Node.
struct NodeGrants {
  std::uint64_t bytes = 0;
  bool look_again = false;  // a held CTS may go now, whatever `bytes` is
};

class GrantAccount {
 public:
  GrantAccount() = default;
  GrantAccount(NodeGrants& node, std::uint64_t& owner) : node_(&node), owner_(&owner) {}

  void grant(std::uint64_t bytes) {
    outstanding_ += bytes;
    if (counts_) add(bytes);
  }
  // `bytes` have arrived or will not arrive.
  void settle(std::uint64_t bytes) {
    STP_ASSERT(bytes <= outstanding_, "no more is settled than was granted");
    outstanding_ -= bytes;
    if (counts_) take(bytes);
    if (outstanding_ == 0) counts_ = true;
  }
  // The peer is silent: removes the outstanding bytes from the sums until something arrives.
  void write_off() {
    if (counts_) take(outstanding_);
    counts_ = outstanding_ == 0;
  }
  void arrived() {
    if (counts_) return;
    add(outstanding_);
    counts_ = true;
  }
  [[nodiscard]] std::uint64_t outstanding() const { return outstanding_; }

 private:
  void add(std::uint64_t bytes) const {
    node_->bytes += bytes;
    *owner_ += bytes;
  }
  void take(std::uint64_t bytes) const {
    STP_ASSERT(bytes <= *owner_ && *owner_ <= node_->bytes,
               "a connection's grants are in its owner's sum, and these in the Node's");
    node_->bytes -= bytes;
    *owner_ -= bytes;
    if (*owner_ == 0) node_->look_again = true;
  }

  NodeGrants* node_ = nullptr;
  std::uint64_t* owner_ = nullptr;
  std::uint64_t outstanding_ = 0;
  bool counts_ = true;
};

}  // namespace stp
