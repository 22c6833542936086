// SPDX-License-Identifier: BSD-3-Clause
// User memory attached to frames. Each attachment holds the token of the memory until the driver
// has released the frame. Allocates nothing after construction.
#pragma once

#include <rte_mbuf.h>

#include <array>
#include <span>
#include <string>

#include "dpdk_port/dpdk/mbuf_pool.h"
#include "dpdk_port/link/engine.h"
#include "stp/node/node.h"

namespace stp::port {

class Attachments {
 public:
  // The drivers that get attachments release a frame inside the transmit call, so at most one burst
  // is attached at a time.
  static constexpr unsigned kCapacity = kBurst;
  static constexpr std::size_t kMaxLength = 65'535;  // of attached memory, in an mbuf

  Attachments() = default;
  Attachments(const Attachments&) = delete;
  Attachments& operator=(const Attachments&) = delete;

  // False: see rte_errno. attach() fails until this has succeeded.
  bool open(const std::string& name);

  // Chains `memory` to the frame. False: not possible now; copy instead.
  bool attach(rte_mbuf* head, Bytes memory, const TxToken& token);

  // Tokens of the frames released since the last call. Valid until the next attach().
  std::span<const TxToken> take_released();

 private:
  struct Slot {
    rte_mbuf_ext_shared_info shared;
    Attachments* owner;
    TxToken token;
  };
  static void on_release(void* memory, void* slot);

  std::array<Slot, kCapacity> slots_;
  std::array<Slot*, kCapacity> free_;
  std::size_t free_count_ = 0;
  std::array<TxToken, kCapacity> released_;
  std::size_t released_count_ = 0;
  MbufPool pool_;  // mbufs without a buffer
};

}  // namespace stp::port
