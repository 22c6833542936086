// SPDX-License-Identifier: BSD-3-Clause
// The limits of the provider, in libfabric's terms. fi_getinfo reports them and the objects enforce
// them.
#pragma once

#include <rdma/fabric.h>

#include <cstddef>
#include <cstdint>

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
inline constexpr std::size_t kCmData = 512;
inline constexpr std::size_t kKeySize = 8, kCqDataSize = 8;

inline constexpr std::uint64_t kTxCaps = FI_MSG | FI_RMA | FI_ATOMIC | FI_SEND | FI_READ | FI_WRITE;
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
inline constexpr std::uint64_t kRdmTxCaps =
    FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC | FI_SEND | FI_READ | FI_WRITE;
inline constexpr std::uint64_t kRdmRxCaps = FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC | FI_RECV |
                                            FI_REMOTE_READ | FI_REMOTE_WRITE | FI_DIRECTED_RECV |
                                            FI_MULTI_RECV | FI_SOURCE | FI_RMA_EVENT;
inline constexpr std::uint64_t kRdmCaps = kRdmTxCaps | kRdmRxCaps | kDomainCaps;
inline constexpr std::uint64_t kRdmRxOpFlags = FI_COMPLETION | FI_MULTI_RECV;
inline constexpr std::uint64_t kOrder = FI_ORDER_SAS;
// FI_MR_BASIC, which newer headers have as a deprecated name.
inline constexpr int kMrBasic = 1;
inline constexpr int kMrMode = FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
// "STP" and the version of the protocol between endpoints (ep.h).
inline constexpr std::uint32_t kProtocol = 0x53545000;
inline constexpr std::uint32_t kProtocolVersion = 1;
// The same of endpoints of FI_EP_RDM (rdm/wire.h).
inline constexpr std::uint32_t kRdmProtocol = 0x53545200;

}  // namespace stp::fi
