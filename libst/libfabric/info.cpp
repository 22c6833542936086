// SPDX-License-Identifier: BSD-3-Clause
#include "libst/libfabric/info.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <linux/capability.h>
#include <net/if.h>
#include <netinet/in.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <memory>
#include <optional>
#include <utility>

#include "dpdk_port/link/interfaces.h"
#include "libst/libfabric/ep.h"
#include "libst/libfabric/provider.h"

namespace stp::fi {
namespace {

// Objects of each kind, as nobody counts them.
constexpr std::size_t kMany = 1 << 16;

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

// Of an attribute that is a number with names.
std::string beyond(const char* name, int asked, int last) {
  if (asked >= 0 && asked <= last) return {};
  return std::string(name) + " is " + std::to_string(asked) + ", which is none of its values";
}

// The first that is not empty.
template <std::size_t N>
std::string first(const std::array<std::string, N>& reasons) {
  for (const auto& reason : reasons)
    if (!reason.empty()) return reason;
  return {};
}

// Neither kind of endpoint tells all that is done in one order: a read, say, overtakes a message.
std::string why_no_order(const char* name, std::uint64_t asked) {
  if (asked == 0) return {};
  return std::string(name) + " asks for an order of completions, and none is offered";
}

// What a context may ask for whose endpoint is asked for `caps`. Capabilities of the other
// direction are ignored, as libfabric's own providers do, and so are those that only say how.
std::uint64_t allowed(std::uint64_t caps, std::uint64_t own, std::uint64_t other) {
  constexpr auto kWhat = FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC | FI_SEND | FI_RECV | FI_READ |
                         FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE | FI_DIRECTED_RECV |
                         FI_RMA_EVENT;
  return caps | (other & ~own) | (own & ~kWhat) | kDomainCaps;
}

std::string why_not(const Offer& offer, std::uint64_t caps, const fi_tx_attr& tx) {
  return first(std::array{
      flags_beyond("tx_attr->caps", tx.caps, allowed(caps, offer.tx_caps, offer.rx_caps),
                   FI_TYPE_CAPS),
      flags_beyond("tx_attr->op_flags", tx.op_flags, offer.tx_op_flags, FI_TYPE_OP_FLAGS),
      flags_beyond("tx_attr->msg_order", tx.msg_order, kOrder, FI_TYPE_MSG_ORDER),
      why_no_order("tx_attr->comp_order", tx.comp_order),
      above("tx_attr->inject_size", tx.inject_size, offer.inject_most),
      above("tx_attr->size", tx.size, kMostTxSize),
      above("tx_attr->iov_limit", tx.iov_limit, kSegments),
      above("tx_attr->rma_iov_limit", tx.rma_iov_limit, 1)});
}

std::string why_not(const Offer& offer, std::uint64_t caps, const fi_rx_attr& rx) {
  return first(std::array{
      flags_beyond("rx_attr->caps", rx.caps, allowed(caps, offer.rx_caps, offer.tx_caps),
                   FI_TYPE_CAPS),
      flags_beyond("rx_attr->op_flags", rx.op_flags, offer.rx_op_flags, FI_TYPE_OP_FLAGS),
      flags_beyond("rx_attr->msg_order", rx.msg_order, kOrder, FI_TYPE_MSG_ORDER),
      why_no_order("rx_attr->comp_order", rx.comp_order),
      above("rx_attr->total_buffered_recv", rx.total_buffered_recv, 0),
      above("rx_attr->size", rx.size, kMostRxSize),
      above("rx_attr->iov_limit", rx.iov_limit, kSegments)});
}

std::string why_not(const Offer& offer, const fi_ep_attr& ep) {
  if (ep.type != FI_EP_UNSPEC && ep.type != offer.type) return "ep_attr->type is another one";
  if (ep.protocol != FI_PROTO_UNSPEC && ep.protocol != offer.protocol)
    return "ep_attr->protocol is another one";
  if (ep.protocol_version > kProtocolVersion) return "ep_attr->protocol_version is a later one";
  const auto may_share = offer.type == FI_EP_MSG && ep.rx_ctx_cnt == FI_SHARED_CONTEXT;
  if (ep.rx_ctx_cnt > 1 && !may_share) return "ep_attr->rx_ctx_cnt: an endpoint has one context";
  if (ep.tx_ctx_cnt > 1) return "ep_attr->tx_ctx_cnt: an endpoint has one context, not shared";
  if (ep.auth_key_size != 0) return "ep_attr->auth_key: there are no authorization keys";
  return first(std::array{above("ep_attr->max_msg_size", ep.max_msg_size, kMostMessage),
                          above("ep_attr->msg_prefix_size", ep.msg_prefix_size, 0),
                          above("ep_attr->max_order_raw_size", ep.max_order_raw_size, 0),
                          above("ep_attr->max_order_war_size", ep.max_order_war_size, 0),
                          above("ep_attr->max_order_waw_size", ep.max_order_waw_size, 0)});
}

std::string why_not(const Offer& offer, std::uint32_t version, const fi_info& hints,
                    const fi_domain_attr& domain) {
  if (domain.control_progress == FI_PROGRESS_AUTO || domain.data_progress == FI_PROGRESS_AUTO)
    return "domain_attr->control_progress and data_progress are FI_PROGRESS_MANUAL";
  if (version < FI_VERSION(1, 5)) {
    if (domain.mr_mode != 0 && domain.mr_mode != kMrBasic)
      return "domain_attr->mr_mode is FI_MR_BASIC";
  } else if (needs_mr_mode(offer, hints) && domain.mr_mode != kMrBasic &&
             (domain.mr_mode & kMrMode) != kMrMode) {
    return "domain_attr->mr_mode needs FI_MR_VIRT_ADDR, FI_MR_ALLOCATED and FI_MR_PROV_KEY";
  }
  if (domain.auth_key_size != 0) return "domain_attr->auth_key: there are no authorization keys";
  // What newer APIs compare, and those of several contexts ask for.
  const auto counts =
      version < FI_VERSION(1, 5)
          ? std::string()
          : first(std::array{above("domain_attr->cntr_cnt", domain.cntr_cnt, kMany),
                             above("domain_attr->mr_cnt", domain.mr_cnt, kMany),
                             above("domain_attr->max_err_data", domain.max_err_data, kCmData)});
  // Later APIs have one more (FI_PROGRESS_CONTROL_UNIFIED).
  constexpr int kLastProgress = FI_PROGRESS_MANUAL + 1;
  return first(
      std::array{beyond("domain_attr->threading", domain.threading, FI_THREAD_ENDPOINT),
                 beyond("domain_attr->control_progress", domain.control_progress, kLastProgress),
                 beyond("domain_attr->data_progress", domain.data_progress, kLastProgress),
                 beyond("domain_attr->resource_mgmt", domain.resource_mgmt, FI_RM_ENABLED),
                 beyond("domain_attr->av_type", domain.av_type, FI_AV_TABLE),
                 flags_beyond("domain_attr->caps", domain.caps, kDomainCaps, FI_TYPE_CAPS),
                 above("domain_attr->mr_key_size", domain.mr_key_size, kKeySize),
                 above("domain_attr->cq_data_size", domain.cq_data_size, kCqDataSize),
                 above("domain_attr->mr_iov_limit", domain.mr_iov_limit, 1),
                 above("domain_attr->max_ep_tx_ctx", domain.max_ep_tx_ctx, 1),
                 above("domain_attr->max_ep_rx_ctx", domain.max_ep_rx_ctx, 1), counts});
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

namespace {

// All that those hints ask for, and a primary capability without modifiers has all of these.
std::uint64_t with_modifiers(std::uint64_t caps) {
  constexpr auto kPrimary = FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC;
  constexpr auto kOut = FI_SEND | FI_READ | FI_WRITE;
  constexpr auto kIn = FI_RECV | FI_REMOTE_READ | FI_REMOTE_WRITE;
  if ((caps & kPrimary) == 0 || (caps & (kOut | kIn)) != 0) return caps;
  if ((caps & (FI_MSG | FI_TAGGED)) != 0) caps |= FI_SEND | FI_RECV;
  if ((caps & (FI_RMA | FI_ATOMIC)) != 0)
    caps |= FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE;
  return caps;
}

}  // namespace

std::string why_not(const Offer& offer, std::uint32_t version, const fi_info* hints) {
  if (hints == nullptr) return {};
  if (hints->addr_format != FI_FORMAT_UNSPEC && hints->addr_format != FI_SOCKADDR &&
      hints->addr_format != FI_SOCKADDR_IN && hints->addr_format != FI_SOCKADDR_IN6)
    return "addr_format: addresses are of FI_SOCKADDR_IN or FI_SOCKADDR_IN6";
  std::string reason;
  if (hints->ep_attr != nullptr) reason = why_not(offer, *hints->ep_attr);
  if (reason.empty()) reason = flags_beyond("caps", hints->caps, offer.caps, FI_TYPE_CAPS);
  // Those of a context are some of those of its endpoint.
  const auto caps = hints->caps != 0 ? with_modifiers(hints->caps) : offer.caps;
  if (reason.empty() && hints->tx_attr != nullptr) reason = why_not(offer, caps, *hints->tx_attr);
  if (reason.empty() && hints->rx_attr != nullptr) reason = why_not(offer, caps, *hints->rx_attr);
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

namespace {

constexpr char kSockets[] = "/run/stpd";

unsigned flags_of(const std::string& any_name) {
  return port::ask_for_interface(port::name_of_interface(any_name)).flags;
}

// `needed`: flags. One that is named may be without a carrier for the moment.
bool is_usable(unsigned flags, unsigned needed) {
  return (flags & needed) == needed && (flags & (IFF_LOOPBACK | IFF_POINTOPOINT)) == 0;
}

void take_address(const port::InterfaceAddress& address, LinkFacts& link) {
  link.ipv4 = address.ipv4;
  link.prefix_length = address.prefix_length;
}

std::vector<port::InterfaceAddress> addresses() {
  auto all = port::ipv4_addresses();
  if (!all) inform(FI_LOG_CORE, "the kernel does not tell the addresses of interfaces (rtnetlink)");
  return all ? std::move(*all) : std::vector<port::InterfaceAddress>{};
}

// "10.9.0.1/24"
bool parse_address(const std::string& text, LinkFacts& link) {
  const auto slash = text.find('/');
  in_addr address{};
  if (::inet_pton(AF_INET, text.substr(0, slash).c_str(), &address) != 1) return false;
  link.ipv4 = ntohl(address.s_addr);
  if (slash == std::string::npos) return true;
  const auto* const end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data() + slash + 1, end, link.prefix_length);
  return parsed.ec == std::errc() && parsed.ptr == end && link.prefix_length <= 32;
}

// The value of ",address=" in a link's text.
std::string address_option(const std::string& text) {
  constexpr std::string_view kOption = ",address=";
  const auto at = text.find(kOption);
  if (at == std::string::npos) return {};
  const auto from = at + kOption.size();
  return text.substr(from, text.find(',', from) - from);
}

// False: peers could not name it. The log says why.
bool describe(const std::string& text, LinkFacts& link) {
  link.text = text;
  const auto colon = text.find_first_of(":,");
  const auto kind = text.substr(0, colon);
  // These reach beyond one network.
  link.may_have_udp_ports = kind == "stpd" || kind == "udp";
  if (kind == "stpd") return link.six_if_asked = true;
  if (const UdpTarget target(text); target.is_udp || target.is_ip) {
    if (target.is_nothing) {
      inform(FI_LOG_CORE, "link " + text +
                              ": behind the colon stands neither an address (10.0.0.5, "
                              "[2001:db8::5]) nor an interface of this host");
      return false;
    }
    link.four = target.has_ipv4();
    link.six = target.has_ipv6();
    return true;
  }
  constexpr std::array<std::string_view, 5> kOthers{"loop", "iface", "memif", "vdev", "pci"};
  if (std::ranges::find(kOthers, kind) == kOthers.end()) {
    inform(FI_LOG_CORE,
           "link " + text + ": there is no kind '" + kind +
               "' of link: write stpd:, udp:, ip:, iface:, memif:, vdev:, pci: or loop");
    return false;
  }
  const auto given = address_option(text);
  if (!given.empty()) {
    if (parse_address(given, link)) return true;
    inform(FI_LOG_CORE, "link " + text + ": address= is not ADDRESS/PREFIX: " + given);
    return false;
  }
  if (kind == "loop") {
    link.ipv4 = INADDR_LOOPBACK;
    link.prefix_length = 8;
    return true;
  }
  if (kind != "iface" || colon == std::string::npos) {
    inform(FI_LOG_CORE, "link " + text + " has no IPv4 address: give it one (address=10.9.0.1/24)");
    return false;
  }
  const auto name = text.substr(colon + 1, text.find(',') - colon - 1);
  // Also by an alternative name.
  const auto index = port::index_of_interface(name);
  if (index != 0 && is_usable(flags_of(name), IFF_UP))
    for (const auto& each : addresses())
      if (each.index == index) return take_address(each, link), true;
  inform(FI_LOG_CORE, "link " + text + ": no such interface that is up and has an IPv4 address");
  return false;
}

bool may_open_raw_sockets() {
  __user_cap_header_struct head{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3]{};
  if (::syscall(SYS_capget, &head, data) != 0) return false;
  return (data[0].effective >> CAP_NET_RAW & 1U) != 0;
}

void find_daemons(std::vector<LinkFacts>& links) {
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(::opendir(kSockets), ::closedir);
  if (!folder) return;
  constexpr std::string_view kEnd = ".sock";
  while (const auto* const entry = ::readdir(folder.get())) {
    const std::string name = entry->d_name;
    const auto path = std::string(kSockets).append("/").append(name);
    if (!name.ends_with(kEnd)) continue;
    if (::access(path.c_str(), W_OK) == 0)
      links.push_back({.text = "stpd:" + path, .six_if_asked = true, .may_have_udp_ports = true});
    else
      inform(FI_LOG_CORE, path + ": this user may not connect to it");
  }
  std::ranges::sort(links, {}, &LinkFacts::text);
}

void find_interfaces(std::vector<LinkFacts>& links) {
  if (!may_open_raw_sockets()) {
    inform(FI_LOG_CORE, "interfaces are left out: CAP_NET_RAW is needed to use one without stpd");
    return;
  }
  std::vector<int> seen;  // an interface is one link, however many addresses it has
  for (const auto& each : addresses()) {
    std::array<char, IF_NAMESIZE> name{};
    if (std::ranges::find(seen, each.index) != seen.end() ||
        ::if_indextoname(static_cast<unsigned>(each.index), name.data()) == nullptr ||
        !is_usable(flags_of(name.data()), IFF_UP | IFF_RUNNING))
      continue;
    seen.push_back(each.index);
    LinkFacts link{.text = std::string("iface:") + name.data()};
    take_address(each, link);
    links.push_back(link);
  }
}

}  // namespace

std::vector<LinkFacts> find_links() {
  std::vector<LinkFacts> links;
  if (const auto named = parameters().link; !named.empty()) {
    if (LinkFacts link; describe(named, link)) links.push_back(link);
    return links;
  }
  find_daemons(links);
  find_interfaces(links);
  return links;
}

LinkFacts link_for_anybody() {
  return {.text = "udp:", .six = true, .may_have_udp_ports = true};
}

bool may_reach(const LinkFacts& link, const Address& address) {
  constexpr unsigned kBits = 32;
  const auto ipv4 = address.ipv4();
  if (!ipv4 || link.ipv4 == 0 || link.prefix_length == 0 || address.is_loopback()) return true;
  return ((link.ipv4 ^ *ipv4) >> (kBits - link.prefix_length)) == 0;
}

namespace {

using Info = std::unique_ptr<fi_info, decltype(&fi_freeinfo)>;

struct Names {
  std::optional<Address> source, destination;
};

// The family of addresses that the hints ask for. AF_UNSPEC: either.
int family_of(const fi_info* hints) {
  const auto format = hints != nullptr ? hints->addr_format : std::uint32_t{FI_FORMAT_UNSPEC};
  if (format == FI_SOCKADDR_IN) return AF_INET;
  return format == FI_SOCKADDR_IN6 ? AF_INET6 : AF_UNSPEC;
}

// Endpoints with IPv6 addresses may name hosts that have IPv4 only.
std::vector<Address> resolve(const char* node, const fi_info* hints, bool numeric) {
  const auto family = family_of(hints);
  auto found = fi::resolve(node, family, numeric);
  return !found.empty() || family != AF_INET6 ? found : fi::resolve(node, AF_INET, numeric);
}

// Empty: `out` has what is named, once for each address of the node. Else what is wrong with it.
std::string read_names(const char* node, const char* service, std::uint64_t flags,
                       const fi_info* hints, std::vector<Names>& all) {
  auto& out = all.emplace_back();
  const auto from_hints = [](const void* address, std::size_t length, std::optional<Address>& to) {
    return address == nullptr || read_address(address, length, to.emplace());
  };
  if (hints != nullptr && (!from_hints(hints->src_addr, hints->src_addrlen, out.source) ||
                           !from_hints(hints->dest_addr, hints->dest_addrlen, out.destination)))
    return "an address of the hints is neither a sockaddr_in nor a sockaddr_in6";
  if (node == nullptr && service == nullptr) return {};
  const auto port = service != nullptr ? parse_port(service) : std::uint16_t{0};
  if (!port) return std::string("a service is a port's number, not ") + service;
  const auto source = (flags & FI_SOURCE) != 0;
  std::vector<Address> named(1);
  if (node != nullptr) {
    named = resolve(node, hints, (flags & FI_NUMERICHOST) != 0);
    if (const auto* const slash = std::strrchr(node, '/');
        named.empty() && slash != nullptr && parse_port(slash + 1).value_or(0) == 0)
      return std::string(node) + ": a UDP port, 1 to 65535, stands after the slash";
    if (named.empty())
      return std::string(family_of(hints) == AF_INET ? "no IPv4 address is known of "
                                                     : "no address is known of ") +
             node + (std::strchr(node, '/') != nullptr ? " (HOST/UDP-PORT)" : "");
    if (source && named.front().udp_port != 0)
      return std::string(node) + ": a source has the UDP port of its link (port=)";
  }
  const auto like = out;
  all.assign(named.size(), like);
  for (std::size_t i = 0; i < named.size(); ++i) {
    named[i].port = *port;
    // A service alone is that of a listener.
    (source || node == nullptr ? all[i].source : all[i].destination) = named[i];
  }
  return {};
}

// Whether that is this link's. This host's own name may stand for 127.0.1.1.
bool is_source(const LinkFacts& link, const Address& source) {
  if (source.is_any() || source.is_loopback()) return true;
  const auto ipv4 = source.ipv4();
  return ipv4 ? link.ipv4 == 0 || *ipv4 == link.ipv4 : is_own(source);
}

bool is_ipv6(const std::optional<Address>& address) {
  return address && !address->is_any() && !address->ipv4();
}

// The formats of addresses to list for a link: those that the hints ask for, or that the names
// have; without either, all of the link.
std::vector<std::uint32_t> formats_of(const LinkFacts& link, const Names& names,
                                      const fi_info* hints) {
  const auto family = family_of(hints);
  const auto by_name = is_ipv6(names.source) || is_ipv6(names.destination);
  const auto asked = by_name || family == AF_INET6;
  std::vector<std::uint32_t> formats;
  if (link.four && !asked) formats.push_back(FI_SOCKADDR_IN);
  const auto has_ipv4_name = names.destination && !by_name && link.four;
  if (family != AF_INET && (link.six || (link.six_if_asked && asked)) && (asked || !has_ipv4_name))
    formats.push_back(FI_SOCKADDR_IN6);
  return formats;
}

std::string why_not(const LinkFacts& link, const Names& names, const fi_info* hints) {
  if (hints != nullptr && hints->fabric_attr != nullptr && hints->fabric_attr->name != nullptr &&
      link.text != hints->fabric_attr->name)
    return "another fabric is asked for";
  if (hints != nullptr && hints->domain_attr != nullptr && hints->domain_attr->name != nullptr &&
      link.text != hints->domain_attr->name)
    return "another domain is asked for";
  if (formats_of(link, names, hints).empty())
    return link.four ? "it has IPv4 addresses only: udp: and stpd: may have others"
                     : "it has an IPv6 address only";
  if (names.source && !is_source(link, *names.source)) return "it has another address";
  if (names.destination && !may_reach(link, *names.destination))
    return "the destination is not of its network";
  if (names.destination && names.destination->udp_port != 0 && !link.may_have_udp_ports)
    return "the destination has a UDP port, and stations of this link have none";
  return {};
}

// Returns the address in the format of `info`, and its length.
void* copy_of(const Address& address, const fi_info& info, std::size_t& length) {
  length = address_size(info.addr_format);
  auto* const copy = std::calloc(1, length);
  if (copy == nullptr) throw std::bad_alloc();
  tell_address(address, info.addr_format, copy, &length);
  return copy;
}

char* copy_of(const std::string& text) {
  auto* const copy = ::strdup(text.c_str());
  if (copy == nullptr) throw std::bad_alloc();
  return copy;
}

template <class T>
T asked_or(T asked, T otherwise) {
  return asked != 0 ? asked : otherwise;
}

void fill_contexts(const Offer& offer, fi_info& info, const fi_info* hints) {
  const auto* const tx = hints != nullptr ? hints->tx_attr : nullptr;
  const auto* const rx = hints != nullptr ? hints->rx_attr : nullptr;
  *info.tx_attr = {.caps = info.caps & offer.tx_caps,
                   .mode = 0,
                   .op_flags = tx != nullptr ? tx->op_flags : 0,
                   .msg_order = kOrder,
                   .comp_order = 0,
                   .inject_size = offer.inject_most,
                   .size = tx != nullptr ? asked_or(tx->size, kTxSize) : kTxSize,
                   .iov_limit = kSegments,
                   .rma_iov_limit = 1,
                   .tclass = 0};
  *info.rx_attr = {.caps = info.caps & offer.rx_caps,
                   .mode = 0,
                   .op_flags = rx != nullptr ? rx->op_flags : 0,
                   .msg_order = kOrder,
                   .comp_order = 0,
                   .total_buffered_recv = 0,
                   .size = rx != nullptr ? asked_or(rx->size, kRxSize) : kRxSize,
                   .iov_limit = kSegments};
}

// Fields of one bit: a tag is whatever the program makes of it.
constexpr std::uint64_t kAnyTag = 0xaaaa'aaaa'aaaa'aaaa;

void fill_endpoint(const Offer& offer, fi_ep_attr& ep, const fi_info* hints) {
  ep.type = offer.type;
  ep.protocol = offer.protocol;
  ep.mem_tag_format = offer.type == FI_EP_RDM ? kAnyTag : 0;
  ep.protocol_version = kProtocolVersion;
  ep.max_msg_size = kMostMessage;
  ep.tx_ctx_cnt = ep.rx_ctx_cnt = 1;
  if (hints != nullptr && hints->ep_attr != nullptr &&
      hints->ep_attr->rx_ctx_cnt == FI_SHARED_CONTEXT)
    ep.rx_ctx_cnt = FI_SHARED_CONTEXT;
}

int mr_mode_for(const Offer& offer, std::uint32_t version, const fi_info* hints) {
  if (version < FI_VERSION(1, 5)) return kMrBasic;
  // Registering memory for local use spares endpoints of FI_EP_MSG copies.
  const auto local = offer.type == FI_EP_MSG ? FI_MR_LOCAL : 0;
  if (hints == nullptr || hints->domain_attr == nullptr) return kMrMode | local;
  const auto asked = hints->domain_attr->mr_mode;
  if (asked == kMrBasic) return asked;
  return needs_mr_mode(offer, *hints) ? kMrMode | (asked & local) : asked & kMrMode;
}

void fill_domain(const Offer& offer, std::uint32_t version, fi_domain_attr& domain,
                 const LinkFacts& link, const fi_info* hints) {
  domain.name = copy_of(link.text);
  domain.threading = FI_THREAD_SAFE;
  domain.control_progress = domain.data_progress = FI_PROGRESS_MANUAL;
  domain.resource_mgmt = FI_RM_ENABLED;
  domain.av_type = hints != nullptr && hints->domain_attr != nullptr ? hints->domain_attr->av_type
                                                                     : FI_AV_UNSPEC;
  domain.mr_mode = mr_mode_for(offer, version, hints);
  domain.mr_key_size = kKeySize;
  domain.cq_data_size = kCqDataSize;
  domain.cq_cnt = domain.ep_cnt = domain.cntr_cnt = domain.mr_cnt = kMany;
  domain.tx_ctx_cnt = domain.rx_ctx_cnt = kMany;
  domain.max_ep_tx_ctx = domain.max_ep_rx_ctx = 1;
  domain.max_ep_srx_ctx = offer.type == FI_EP_MSG ? kMany : 0;
  domain.mr_iov_limit = 1;
  domain.max_err_data = kCmData;
  domain.caps = kDomainCaps;
}

// What peers call it. "::" if it has none.
Address own_ipv6_of(const LinkFacts& link) {
  const UdpTarget target(link.text);
  return target.address ? *target.address : own_ipv6(target.interface).value_or(Address{});
}

void fill_addresses(fi_info& info, const LinkFacts& link, const Names& names) {
  auto source = names.source.value_or(Address{});
  if (source.is_any() || (source.ipv4() && source.is_loopback())) {
    const auto port = source.port;
    source = info.addr_format == FI_SOCKADDR_IN6 ? own_ipv6_of(link) : Address::of(link.ipv4, 0);
    source.port = port;
  }
  info.src_addr = copy_of(source, info, info.src_addrlen);
  if (names.destination) info.dest_addr = copy_of(*names.destination, info, info.dest_addrlen);
}

Info describe(const Offer& offer, std::uint32_t version, const LinkFacts& link, const Names& names,
              std::uint32_t format, const fi_info* hints) {
  Info info(fi_allocinfo(), fi_freeinfo);
  if (!info) throw std::bad_alloc();
  // What is asked for, with what comes along unasked; without hints, all but what costs something.
  info->caps =
      hints != nullptr && hints->caps != 0 ? hints->caps | kDomainCaps : offer.caps & ~FI_RMA_EVENT;
  info->caps = with_modifiers(info->caps);
  fill_contexts(offer, *info, hints);
  fill_endpoint(offer, *info->ep_attr, hints);
  fill_domain(offer, version, *info->domain_attr, link, hints);
  info->addr_format = format;
  fill_addresses(*info, link, names);
  info->fabric_attr->name = copy_of(link.text);
  info->fabric_attr->api_version = version;
  return info;
}

// In the order in which they are appended.
class InfoList {
 public:
  void append(Info next) {
    auto* const added = next.get();
    if (last_ == nullptr)
      first_ = std::move(next);
    else
      last_->next = next.release();
    last_ = added;
  }
  [[nodiscard]] bool is_empty() const { return !first_; }
  fi_info* release() { return first_.release(); }

 private:
  Info first_{nullptr, fi_freeinfo};
  fi_info* last_ = nullptr;
};

}  // namespace

int list_info(std::uint32_t version, const char* node, const char* service, std::uint64_t flags,
              const fi_info* hints, fi_info** info) {
  std::vector<Names> all;
  auto reason = read_names(node, service, flags, hints, all);
  if (!reason.empty()) {
    inform(FI_LOG_CORE, reason);
    return -FI_ENODATA;
  }
  // An endpoint is to take its name over.
  auto* const pep = hints != nullptr ? Pep::of(hints->handle) : nullptr;
  if (pep != nullptr)
    for (auto& names : all) names.source = pep->name();
  std::vector<const Offer*> offers{&kMsgOffer, &kRdmOffer};
  std::erase_if(offers, [&](const Offer* offer) {
    const auto why = why_not(*offer, version, hints);
    if (!why.empty())
      inform(FI_LOG_CORE, (offer->type == FI_EP_MSG ? "FI_EP_MSG: " : "FI_EP_RDM: ") + why);
    return !why.empty();
  });
  if (offers.empty()) return -FI_ENODATA;
  InfoList list;
  // A program that does not reach a host at one of its addresses goes on with the next entry. Of
  // its own, one will do: those have the same destination, or none.
  const auto add = [&](const LinkFacts& link, const Offer& offer) {
    for (const auto& names : all) {
      if (reason = why_not(link, names, hints); !reason.empty()) {
        inform(FI_LOG_CORE, "link " + link.text + ": " + reason);
        continue;
      }
      for (const auto format : formats_of(link, names, hints)) {
        auto described = describe(offer, version, link, names, format, hints);
        if (pep != nullptr) described->handle = &pep->fid;
        list.append(std::move(described));
      }
      if (names.destination == all.back().destination) break;
    }
  };
  const auto links = find_links();
  for (const auto* const offer : offers)
    for (const auto& link : links) add(link, *offer);
  // Only then: of several links that are alike, programs may take any, and each process another.
  if (list.is_empty() && parameters().link.empty())
    for (const auto* const offer : offers) add(link_for_anybody(), *offer);
  if (list.is_empty()) {
    inform(FI_LOG_CORE, "no link will do: name one in FI_STP_LINK or STP_LINK, or start stpd");
    return -FI_ENODATA;
  }
  *info = list.release();
  return 0;
}

fi_info* info_of_request(const fi_info& like, const Address& own, const Address& peer,
                         fid_t handle) {
  Info info(fi_dupinfo(&like), fi_freeinfo);
  if (!info) throw std::bad_alloc();
  std::free(info->src_addr);
  std::free(info->dest_addr);
  info->src_addr = info->dest_addr = nullptr;
  info->src_addr = copy_of(own, *info, info->src_addrlen);
  info->dest_addr = copy_of(peer, *info, info->dest_addrlen);
  info->handle = handle;
  return info.release();
}

}  // namespace stp::fi
