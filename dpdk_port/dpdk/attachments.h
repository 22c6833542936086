// SPDX-License-Identifier: BSD-3-Clause
// User memory that frames refer to. Each attachment holds the token that says whose memory it is,
// until the driver has let go of the frame. Nothing is allocated after construction.
#pragma once

#include <rte_mbuf.h>

#include <array>
#include <span>
#include <string>

#include "dpdk_port/dpdk/mbuf_pool.h"
#include "dpdk_port/link/loopback.h"
#include "stp/node/node.h"

namespace stp::port {

class Attachments {
 public:
  // Drivers we attach for let go of a frame inside the transmit call, so those of one burst are
  // out at most.
  static constexpr unsigned kCapacity = kBurst;
  static constexpr std::size_t kMaxLength = 65'535;  // of attached memory, in an mbuf

  Attachments() = default;
  Attachments(const Attachments&) = delete;
  Attachments& operator=(const Attachments&) = delete;

  // False: rte_errno. Until then attach() fails.
  bool open(const std::string& name);

  // Chains `memory` to the frame. False: not possible now; copy instead.
  bool attach(rte_mbuf* head, Bytes memory, const TxToken& token);

  // Tokens whose frames have gone, since the last call. Valid until attach() is called again.
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
  MbufPool pool_;  // mbufs without room of their own
};

}  // namespace stp::port
