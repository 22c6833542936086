// SPDX-License-Identifier: BSD-3-Clause
// What the provider offers, compared with a program's hints, and the flags of an endpoint's calls.
#pragma once

#include <rdma/fabric.h>

#include <cstdint>
#include <string>

namespace stp::fi {

// What endpoints of one type offer.
struct Offer {
  fi_ep_type type;
  std::uint64_t caps, tx_caps, rx_caps;
  std::uint64_t tx_op_flags, rx_op_flags;
  std::size_t inject_most;
  std::uint32_t protocol;
};
extern const Offer kMsgOffer, kRdmOffer;

// Whether programs with those hints have to support the provider's memory registration modes.
[[nodiscard]] bool needs_mr_mode(const Offer& offer, const fi_info& hints);
// Returns the reason why the hints cannot be met; empty: they can.
[[nodiscard]] std::string why_not(const Offer& offer, std::uint32_t version, const fi_info* hints);

// The flags that an endpoint's calls without a flags argument have: FI_GETOPSFLAG, FI_SETOPSFLAG.
struct OpFlags {
  std::uint64_t tx = 0, rx = 0;

  explicit OpFlags(const fi_info& info);
  // FI_GETOPSFLAG or FI_SETOPSFLAG; `argument` as in fi_control. -FI_ENOSYS: another command.
  int control(int command, void* argument, const Offer& offer);
};

}  // namespace stp::fi
