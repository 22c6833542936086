// SPDX-License-Identifier: BSD-3-Clause
// What the provider offers: compared with a program's hints, and listed by fi_getinfo. And
// the flags of an endpoint's calls.
#pragma once

#include <rdma/fabric.h>

#include <cstdint>
#include <string>
#include <vector>

#include "libst/libfabric/address.h"

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

// ---- fi_getinfo: finds links, and lists the endpoints on them. Opens no link. ----

// Finds the links that a program may use, without opening one.
struct LinkFacts {
  std::string text;            // as in STP_LINK
  std::uint32_t ipv4 = 0;      // host order; 0: known only when the link is open
  unsigned prefix_length = 0;  // 0: unknown
  // What addresses its endpoints may have: of FI_SOCKADDR_IN, of FI_SOCKADDR_IN6. One of stpd may
  // have the latter, so they are listed if they are asked for.
  bool four = true, six = false, six_if_asked = false;
};

// The link of FI_STP_LINK or STP_LINK. Without them, each stpd, and each interface where this
// program may open raw sockets. The log lists what is left out, with the reason.
std::vector<LinkFacts> find_links();
// The link that anybody may open, for where none of these will do: one over UDP.
LinkFacts link_for_anybody();

// Whether a station with that address may be on the link. True if nothing is known.
[[nodiscard]] bool may_reach(const LinkFacts& link, const Address& address);

// Returns 0 and a list, or -FI_ENODATA: the log has the reason.
int list_info(std::uint32_t version, const char* node, const char* service, std::uint64_t flags,
              const fi_info* hints, fi_info** info);

// The fi_info of a connection request from `peer`: a copy of `like` with the request's handle.
// nullptr: no memory.
fi_info* info_of_request(const fi_info& like, const Address& own, const Address& peer,
                         fid_t handle);

}  // namespace stp::fi
