// SPDX-License-Identifier: BSD-3-Clause
// What the provider offers, in libfabric's terms: its limits, which the objects enforce, compared
// with a program's hints, and listed by fi_getinfo. And the flags of an endpoint's calls.
#pragma once

#include <rdma/fabric.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "libst/libfabric/address.h"

namespace stp::fi {

// Messages up to this length are copied into a buffer of the receiving endpoint. Longer ones are
// announced and read into the memory of the receive.
inline constexpr std::size_t kShortMost = 17 * 1024;
// Space after a short message for its immediate data.
inline constexpr std::size_t kTrailer = 8;
inline constexpr std::size_t kBuffer = kShortMost + kTrailer;
// Such a message, with immediate data, needs no round trip in the managed API.
inline constexpr std::size_t kInjectMost = 4064;
// The same of FI_EP_RDM, where a header comes first.
inline constexpr std::size_t kRdmInjectMost = 4048;
inline constexpr std::size_t kMostMessage = std::size_t{1} << 32;
inline constexpr std::size_t kSegments = 4;
inline constexpr std::size_t kTxSize = 1024, kRxSize = 1024;
inline constexpr std::size_t kMostTxSize = 16'384, kMostRxSize = 65'536;
// A program that posts without an end hears -FI_EAGAIN. Before that it need not, where nothing is
// copied: a receive, and a message that the peer reads where the program has it, take some hundred
// bytes of the provider. MPI posts as many as it is asked for, and waits for nothing meanwhile.
inline constexpr std::size_t kMostPosted = std::size_t{1} << 18;
inline constexpr std::size_t kCmData = 512;
inline constexpr std::size_t kKeySize = 8, kCqDataSize = 8;

inline constexpr std::uint64_t kTxCaps =
    FI_MSG | FI_RMA | FI_ATOMIC | FI_SEND | FI_READ | FI_WRITE | FI_FENCE;
inline constexpr std::uint64_t kRxCaps =
    FI_MSG | FI_RMA | FI_ATOMIC | FI_RECV | FI_REMOTE_READ | FI_REMOTE_WRITE;
inline constexpr std::uint64_t kDomainCaps = FI_LOCAL_COMM | FI_REMOTE_COMM;
inline constexpr std::uint64_t kCaps = kTxCaps | kRxCaps | kDomainCaps;
inline constexpr std::uint64_t kTxOpFlags =
    FI_COMPLETION | FI_INJECT | FI_INJECT_COMPLETE | FI_TRANSMIT_COMPLETE | FI_DELIVERY_COMPLETE;
// Of one call that sends, reads or writes.
inline constexpr std::uint64_t kTxCallFlags = kTxOpFlags | FI_REMOTE_CQ_DATA | FI_FENCE | FI_MORE;
inline constexpr std::uint64_t kRxOpFlags = FI_COMPLETION;
// Of endpoints of FI_EP_RDM.
inline constexpr std::uint64_t kRdmTxCaps = kTxCaps | FI_TAGGED;
inline constexpr std::uint64_t kRdmRxCaps = FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC | FI_RECV |
                                            FI_REMOTE_READ | FI_REMOTE_WRITE | FI_DIRECTED_RECV |
                                            FI_MULTI_RECV | FI_SOURCE | FI_RMA_EVENT;
inline constexpr std::uint64_t kRdmCaps = kRdmTxCaps | kRdmRxCaps | kDomainCaps;
inline constexpr std::uint64_t kRdmRxOpFlags = FI_COMPLETION | FI_MULTI_RECV;
inline constexpr std::uint64_t kOrder = FI_ORDER_SAS;
// FI_MR_BASIC, which newer headers have as a deprecated name.
inline constexpr int kMrBasic = 1;
inline constexpr int kMrMode = FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
// "STP" and the version of the protocol between endpoints (wire.h).
inline constexpr std::uint32_t kProtocol = 0x53545000;
inline constexpr std::uint32_t kProtocolVersion = 1;
// The same of endpoints of FI_EP_RDM.
inline constexpr std::uint32_t kRdmProtocol = 0x53545200;

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

  OpFlags() = default;
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
  bool may_have_udp_ports = false;  // its stations
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
