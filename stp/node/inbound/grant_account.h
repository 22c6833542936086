// SPDX-License-Identifier: BSD-3-Clause
// The bytes that a connection granted by CTS and that have not arrived. They are charged to the
// sums of its owner and of the Node, which pacing uses.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

#include "stp/base/assert.h"
#include "stp/node/inbound/path.h"

namespace stp {

// Over all connections of a Node.
struct NodeGrants {
  std::uint64_t charged = 0;
  std::uint64_t silent = 0;  // written off, and thus not in `charged`
  bool look_again = false;   // a held CTS may go now, whatever `charged` is
};

class GrantAccount {
 public:
  GrantAccount() = default;
  // A frame takes one place at the receiver, however short it is. So the bytes of a connection with
  // STUs of 2^n bytes are charged `shorter` times doubled where the longest have 2^(n + shorter).
  // protocol: 10.8
  // `path`: if there is one, the bytes are also charged to it, as they are.
  GrantAccount(NodeGrants& node, std::uint64_t& owner, unsigned shorter = 0,
               PathTable::Share path = nullptr)
      : node_(&node), owner_(&owner), path_(std::move(path)), shorter_(shorter) {}

  [[nodiscard]] std::uint64_t charge_of(std::uint64_t bytes) const { return bytes << shorter_; }

  void grant(std::uint64_t bytes) {
    counted_ += bytes;
    add(bytes);
  }
  // `bytes` have arrived or will not arrive.
  void settle(std::uint64_t bytes) {
    STP_ASSERT(bytes <= outstanding(), "no more is settled than was granted");
    const auto silent = std::min(bytes, silent_);
    leave_silence(silent);
    counted_ -= bytes - silent;
    take(bytes - silent);
  }
  // The peer is silent: moves the outstanding bytes from `charged` to `silent` until something
  // arrives. False: more than `most` would be silent.
  bool write_off(std::uint64_t most) {
    if (!forgotten_ && node_->silent + charge_of(counted_) > most) return false;
    if (!forgotten_) node_->silent += charge_of(counted_);
    take(counted_);
    silent_ += counted_;
    counted_ = 0;
    return true;
  }
  // The peer has been silent for so long that its bytes will not come: removes them from both sums
  // until something arrives.
  void forget() {
    take(counted_);
    silent_ += counted_;
    leave_sum(silent_ - counted_);
    counted_ = 0;
    forgotten_ = silent_ != 0;
  }
  void arrived() {
    if (silent_ == 0) return;
    const auto bytes = silent_;
    leave_silence(bytes);
    grant(bytes);
  }
  [[nodiscard]] std::uint64_t outstanding() const { return counted_ + silent_; }
  // nullptr: the way from the peer is not shared with others.
  [[nodiscard]] Path* path() const { return path_.get(); }

 private:
  void add(std::uint64_t bytes) const {
    node_->charged += charge_of(bytes);
    *owner_ += charge_of(bytes);
    if (path_ != nullptr) path_->grant(bytes);
  }
  void take(std::uint64_t bytes) const {
    STP_ASSERT(charge_of(bytes) <= *owner_ && *owner_ <= node_->charged,
               "a connection's grants are in its owner's sum, and these in the Node's");
    node_->charged -= charge_of(bytes);
    *owner_ -= charge_of(bytes);
    if (*owner_ == 0) node_->look_again = true;
    if (path_ != nullptr) path_->settle(bytes);
  }
  void leave_silence(std::uint64_t bytes) {
    leave_sum(bytes);
    silent_ -= bytes;
    if (silent_ == 0) forgotten_ = false;
  }
  void leave_sum(std::uint64_t bytes) const {
    if (forgotten_) return;
    STP_ASSERT(charge_of(bytes) <= node_->silent, "what is written off is in the Node's sum");
    node_->silent -= charge_of(bytes);
  }

  NodeGrants* node_ = nullptr;
  std::uint64_t* owner_ = nullptr;
  PathTable::Share path_;
  std::uint64_t counted_ = 0;  // in `charged`
  std::uint64_t silent_ = 0;   // in `silent`, or forgotten
  unsigned shorter_ = 0;
  bool forgotten_ = false;
};

}  // namespace stp
