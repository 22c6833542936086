// SPDX-License-Identifier: BSD-3-Clause
#include "libst/libfabric/hints.h"

#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>

#include <array>

#include "libst/libfabric/limits.h"

namespace stp::fi {
namespace {

std::string flags_beyond(const char* name, std::uint64_t asked, std::uint64_t offered,
                         fi_type type) {
  auto beyond = asked & ~offered;
  if (beyond == 0) return {};
  std::array<char, 512> text{};
  fi_tostr_r(text.data(), text.size(), &beyond, type);
  return std::string(name).append(" asks for what is not offered: ").append(text.data());
}

std::string above(const char* name, std::size_t asked, std::size_t most) {
  if (asked <= most) return {};
  return std::string(name) + " is " + std::to_string(asked) + ", at most " + std::to_string(most);
}

// The first that is not empty.
template <std::size_t N>
std::string first(const std::array<std::string, N>& reasons) {
  for (const auto& reason : reasons)
    if (!reason.empty()) return reason;
  return {};
}

std::string why_not(const Offer& offer, const fi_tx_attr& tx) {
  return first(std::array{
      flags_beyond("tx_attr->caps", tx.caps, offer.caps, FI_TYPE_CAPS),
      flags_beyond("tx_attr->op_flags", tx.op_flags, offer.tx_op_flags, FI_TYPE_OP_FLAGS),
      flags_beyond("tx_attr->msg_order", tx.msg_order, kOrder, FI_TYPE_MSG_ORDER),
      above("tx_attr->inject_size", tx.inject_size, offer.inject_most),
      above("tx_attr->size", tx.size, kMostTxSize),
      above("tx_attr->iov_limit", tx.iov_limit, kSegments),
      above("tx_attr->rma_iov_limit", tx.rma_iov_limit, 1)});
}

std::string why_not(const Offer& offer, const fi_rx_attr& rx) {
  return first(std::array{
      flags_beyond("rx_attr->caps", rx.caps, offer.caps, FI_TYPE_CAPS),
      flags_beyond("rx_attr->op_flags", rx.op_flags, offer.rx_op_flags, FI_TYPE_OP_FLAGS),
      flags_beyond("rx_attr->msg_order", rx.msg_order, kOrder, FI_TYPE_MSG_ORDER),
      above("rx_attr->total_buffered_recv", rx.total_buffered_recv, 0),
      above("rx_attr->size", rx.size, kMostRxSize),
      above("rx_attr->iov_limit", rx.iov_limit, kSegments)});
}

std::string why_not(const Offer& offer, const fi_ep_attr& ep) {
  if (ep.type != FI_EP_UNSPEC && ep.type != offer.type) return "endpoints of another type";
  if (ep.protocol != FI_PROTO_UNSPEC && ep.protocol != offer.protocol) return "another protocol";
  if (ep.protocol_version > kProtocolVersion) return "a later version of the protocol";
  const auto may_share = offer.type == FI_EP_MSG && ep.rx_ctx_cnt == FI_SHARED_CONTEXT;
  if (ep.rx_ctx_cnt > 1 && !may_share) return "one receive context each";
  if (ep.tx_ctx_cnt > 1) return "one transmit context each, not shared";
  if (ep.auth_key_size != 0) return "no authorization keys";
  return first(std::array{above("ep_attr->max_msg_size", ep.max_msg_size, kMostMessage),
                          above("ep_attr->msg_prefix_size", ep.msg_prefix_size, 0),
                          above("ep_attr->max_order_raw_size", ep.max_order_raw_size, 0),
                          above("ep_attr->max_order_war_size", ep.max_order_war_size, 0),
                          above("ep_attr->max_order_waw_size", ep.max_order_waw_size, 0)});
}

std::string why_not(const Offer& offer, std::uint32_t version, const fi_info& hints,
                    const fi_domain_attr& domain) {
  if (domain.control_progress == FI_PROGRESS_AUTO || domain.data_progress == FI_PROGRESS_AUTO)
    return "progress is FI_PROGRESS_MANUAL";
  if (version < FI_VERSION(1, 5)) {
    if (domain.mr_mode != 0 && domain.mr_mode != kMrBasic) return "mr_mode is FI_MR_BASIC";
  } else if (needs_mr_mode(offer, hints) && domain.mr_mode != kMrBasic &&
             (domain.mr_mode & kMrMode) != kMrMode) {
    return "mr_mode needs FI_MR_VIRT_ADDR, FI_MR_ALLOCATED and FI_MR_PROV_KEY";
  }
  if (domain.auth_key_size != 0) return "no authorization keys";
  return first(std::array{flags_beyond("domain_attr->caps", domain.caps, kDomainCaps, FI_TYPE_CAPS),
                          above("domain_attr->mr_key_size", domain.mr_key_size, kKeySize),
                          above("domain_attr->cq_data_size", domain.cq_data_size, kCqDataSize),
                          above("domain_attr->mr_iov_limit", domain.mr_iov_limit, 1)});
}

}  // namespace

const Offer kMsgOffer{.type = FI_EP_MSG,
                      .caps = kCaps,
                      .tx_caps = kTxCaps,
                      .rx_caps = kRxCaps,
                      .tx_op_flags = kTxOpFlags,
                      .rx_op_flags = kRxOpFlags,
                      .inject_most = kInjectMost,
                      .protocol = kProtocol};
const Offer kRdmOffer{.type = FI_EP_RDM,
                      .caps = kRdmCaps,
                      .tx_caps = kRdmTxCaps,
                      .rx_caps = kRdmRxCaps,
                      .tx_op_flags = kTxOpFlags,
                      .rx_op_flags = kRdmRxOpFlags,
                      .inject_most = kRdmInjectMost,
                      .protocol = kRdmProtocol};

// Only who may access memory of peers, or let them access its own, needs them.
bool needs_mr_mode(const Offer& offer, const fi_info& hints) {
  return offer.type == FI_EP_MSG || hints.caps == 0 || (hints.caps & (FI_RMA | FI_ATOMIC)) != 0;
}

std::string why_not(const Offer& offer, std::uint32_t version, const fi_info* hints) {
  if (hints == nullptr) return {};
  if (hints->addr_format != FI_FORMAT_UNSPEC && hints->addr_format != FI_SOCKADDR &&
      hints->addr_format != FI_SOCKADDR_IN)
    return "addresses are of FI_SOCKADDR_IN";
  std::string reason;
  if (hints->ep_attr != nullptr) reason = why_not(offer, *hints->ep_attr);
  if (reason.empty()) reason = flags_beyond("caps", hints->caps, offer.caps, FI_TYPE_CAPS);
  if (reason.empty() && hints->tx_attr != nullptr) reason = why_not(offer, *hints->tx_attr);
  if (reason.empty() && hints->rx_attr != nullptr) reason = why_not(offer, *hints->rx_attr);
  if (reason.empty() && hints->domain_attr != nullptr)
    reason = why_not(offer, version, *hints, *hints->domain_attr);
  return reason;
}

// ---- op flags

OpFlags::OpFlags(const fi_info& info)
    : tx(info.tx_attr != nullptr ? info.tx_attr->op_flags : 0),
      rx(info.rx_attr != nullptr ? info.rx_attr->op_flags : 0) {}

int OpFlags::control(int command, void* argument, const Offer& offer) {
  if (command != FI_GETOPSFLAG && command != FI_SETOPSFLAG) return -FI_ENOSYS;
  if (argument == nullptr) return -FI_EINVAL;
  auto& flags = *static_cast<std::uint64_t*>(argument);
  const auto of_tx = (flags & FI_TRANSMIT) != 0;
  if (of_tx == ((flags & FI_RECV) != 0)) return -FI_EINVAL;
  auto& known = of_tx ? tx : rx;
  if (command == FI_GETOPSFLAG) {
    flags = known;
    return 0;
  }
  const auto wanted = flags & ~(FI_TRANSMIT | FI_RECV);
  if ((wanted & ~(of_tx ? offer.tx_op_flags : offer.rx_op_flags)) != 0) return -FI_EBADFLAGS;
  known = wanted;
  return 0;
}

}  // namespace stp::fi
