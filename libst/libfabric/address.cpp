// SPDX-License-Identifier: BSD-3-Clause
#include "libst/libfabric/address.h"

#include <arpa/inet.h>
#include <net/if.h>
#include <netdb.h>
#include <rdma/fabric.h>
#include <rdma/fi_errno.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <memory>

#include "dpdk_port/link/interfaces.h"
#include "libst/libfabric/domain.h"
#include "libst/libfabric/provider.h"
#include "libst/libfabric/queues.h"

namespace stp::fi {
namespace {

constexpr std::array<std::uint8_t, 12> kMapped{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

bool is_link_local(const Address& address) {
  return address.ip[0] == 0xfe && (address.ip[1] & 0xc0) == 0x80;
}

// The mark of a UDP port in sin_zero, which many programs leave as it is on their stack, and that
// in sin6_flowinfo, whose first 4 bits are 0 else.
constexpr std::uint32_t kMark = 0x5354'5055, kMark6 = 0xf571;  // "STPU"
constexpr unsigned kPortBits = 16;

struct MarkedPort {
  std::uint32_t mark;
  std::uint16_t port, zero;  // in network order, as the mark
};
static_assert(sizeof(MarkedPort) == sizeof(sockaddr_in::sin_zero));

std::uint16_t udp_port_of(const sockaddr_in& four) {
  MarkedPort read;
  std::memcpy(&read, four.sin_zero, sizeof read);
  return read.mark == htonl(kMark) && read.zero == 0 ? ntohs(read.port) : std::uint16_t{0};
}

void mark_udp_port(sockaddr_in& four, std::uint16_t port) {
  const MarkedPort marked{.mark = htonl(kMark), .port = htons(port), .zero = 0};
  if (port != 0) std::memcpy(four.sin_zero, &marked, sizeof marked);
}

std::uint16_t udp_port_of(const sockaddr_in6& six) {
  const auto info = ntohl(six.sin6_flowinfo);
  return info >> kPortBits == kMark6 ? static_cast<std::uint16_t>(info) : std::uint16_t{0};
}

void mark_udp_port(sockaddr_in6& six, std::uint16_t port) {
  if (port != 0) six.sin6_flowinfo = htonl(kMark6 << kPortBits | port);
}

Address read_ipv6(const sockaddr_in6& six) {
  Address out;
  std::memcpy(out.ip.data(), &six.sin6_addr, out.ip.size());
  // Other addresses need no interface, so theirs must not depend on it.
  if (is_link_local(out)) out.scope = six.sin6_scope_id;
  out.port = ntohs(six.sin6_port);
  out.udp_port = udp_port_of(six);
  return out;
}

}  // namespace

Address Address::of(std::uint32_t ipv4, std::uint16_t port) {
  Address out;
  std::ranges::copy(kMapped, out.ip.begin());
  const auto in_order = htonl(ipv4);
  std::memcpy(&out.ip[kMapped.size()], &in_order, sizeof in_order);
  out.port = port;
  return out;
}

std::optional<std::uint32_t> Address::ipv4() const {
  if (!std::equal(kMapped.begin(), kMapped.end(), ip.begin())) return std::nullopt;
  std::uint32_t in_order = 0;
  std::memcpy(&in_order, &ip[kMapped.size()], sizeof in_order);
  return ntohl(in_order);
}

bool Address::is_any() const {
  if (const auto four = ipv4()) return *four == INADDR_ANY;
  return std::ranges::all_of(ip, [](std::uint8_t octet) { return octet == 0; });
}

bool Address::is_loopback() const {
  if (const auto four = ipv4()) return *four >> 24 == IN_LOOPBACKNET;
  return std::memcmp(ip.data(), &in6addr_loopback, ip.size()) == 0;
}

std::size_t HashAddress::operator()(const Address& address) const {
  constexpr std::uint64_t kOdd = 0x9e37'79b9'7f4a'7c15;
  std::array<std::uint64_t, 2> words{};
  std::memcpy(words.data(), address.ip.data(), sizeof words);
  const auto ports = std::uint32_t{address.udp_port} << 16 | address.port;
  const auto rest = std::uint64_t{address.scope} << 32 | ports;
  return ((words[0] * kOdd ^ words[1]) * kOdd ^ rest) * kOdd;
}

std::size_t address_size(std::uint32_t format) {
  return format == FI_SOCKADDR_IN6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in);
}

bool read_address(const void* from, std::size_t length, Address& out) {
  sa_family_t family = AF_UNSPEC;
  if (from == nullptr || length < sizeof(sockaddr_in)) return false;
  std::memcpy(&family, from, sizeof family);
  if (family == AF_INET) {
    sockaddr_in four{};
    std::memcpy(&four, from, sizeof four);
    out = Address::of(ntohl(four.sin_addr.s_addr), ntohs(four.sin_port));
    out.udp_port = udp_port_of(four);
    return true;
  }
  if (family != AF_INET6 || length < sizeof(sockaddr_in6)) return false;
  sockaddr_in6 six{};
  std::memcpy(&six, from, sizeof six);
  out = read_ipv6(six);
  return true;
}

Address address_or_any(const void* from, std::size_t length) {
  Address read;
  return read_address(from, length, read) ? read : Address{};
}

sockaddr_in6 in_format(const Address& address, std::uint32_t format) {
  sockaddr_in6 six{};
  if (format == FI_SOCKADDR_IN6) {
    six.sin6_family = AF_INET6;
    std::memcpy(&six.sin6_addr, address.ip.data(), address.ip.size());
    six.sin6_port = htons(address.port);
    six.sin6_scope_id = address.scope;
    mark_udp_port(six, address.udp_port);
    return six;
  }
  sockaddr_in four{};
  four.sin_family = AF_INET;
  four.sin_addr.s_addr = htonl(address.ipv4().value_or(INADDR_ANY));
  four.sin_port = htons(address.port);
  mark_udp_port(four, address.udp_port);
  std::memcpy(&six, &four, sizeof four);
  return six;
}

int tell_address(const Address& address, std::uint32_t format, void* to, std::size_t* length) {
  if (length == nullptr) return -FI_EINVAL;
  const auto told = in_format(address, format);
  const auto size = address_size(format);
  const auto room = std::min(*length, size);
  if (room != 0 && to != nullptr) std::memcpy(to, &told, room);
  const auto fits = *length >= size;
  *length = size;
  return fits ? 0 : -FI_ETOOSMALL;
}

std::string peer_name(const Address& address) {
  std::array<char, INET6_ADDRSTRLEN> host{};
  std::string name;
  if (const auto four = address.ipv4()) {
    const auto in_order = htonl(*four);
    name = ::inet_ntop(AF_INET, &in_order, host.data(), host.size());
  } else {
    name = std::string("[") + ::inet_ntop(AF_INET6, address.ip.data(), host.data(), host.size());
    std::array<char, IF_NAMESIZE> interface {};
    if (address.scope != 0 && ::if_indextoname(address.scope, interface.data()) != nullptr)
      name.append("%").append(interface.data());
    name += "]";
  }
  if (address.udp_port != 0) name += "/" + std::to_string(address.udp_port);
  return name + ":" + std::to_string(address.port);
}

bool is_own(const Address& address) {
  for (const auto* at : port::AllAddresses()) {
    Address found;
    if (!read_address(at->ifa_addr, kByFamily, found)) continue;
    if (found.ip == address.ip && found.scope == address.scope) return true;
  }
  return false;
}

std::optional<Address> own_ipv6(const std::string& interface) {
  for (const auto* at : port::AllAddresses()) {
    if (at->ifa_addr->sa_family != AF_INET6) continue;
    if ((at->ifa_flags & IFF_UP) == 0 || (!interface.empty() && interface != at->ifa_name))
      continue;
    Address found;
    if (!read_address(at->ifa_addr, kByFamily, found)) continue;
    if (!is_link_local(found) && !found.is_loopback()) return found;
  }
  return std::nullopt;
}

std::optional<std::uint16_t> parse_port(const char* text) {
  std::uint16_t port = 0;
  const auto* const end = text + std::strlen(text);
  const auto parsed = std::from_chars(text, end, port);
  if (parsed.ec == std::errc() && parsed.ptr == end) return port;
  return std::nullopt;
}

static std::optional<Address> first_of(const std::vector<Address>& all) {
  return all.empty() ? std::nullopt : std::optional(all.front());
}

UdpTarget::UdpTarget(const std::string& link) {
  const auto colon = link.find_first_of(":,");
  is_udp = link.substr(0, colon) == "udp";
  is_ip = link.substr(0, colon) == "ip";
  if ((!is_udp && !is_ip) || colon == std::string::npos || link[colon] == ',') return;
  auto target = link.substr(colon + 1, link.find(',') - colon - 1);
  if (target.empty()) return;
  const bool brackets = target.starts_with('[') && target.ends_with(']');
  if (brackets) target = target.substr(1, target.size() - 2);
  // The resolver takes 1.2.3 for 1.2.0.3.
  in_addr four{};
  if (!brackets && ::inet_pton(AF_INET, target.c_str(), &four) == 1)
    address = first_of(resolve(target, AF_INET, true));
  else
    address = first_of(resolve(target, AF_INET6, true));
  if (address) return;
  interface = port::name_of_interface(target);
  is_nothing = brackets || port::index_of_interface(target) == 0;
}

std::vector<Address> resolve(const std::string& node, int family, bool numeric) {
  if (const auto slash = node.rfind('/'); slash != std::string::npos) {
    const auto port = parse_port(node.c_str() + slash + 1);
    if (!port || *port == 0) return {};
    auto all = resolve(node.substr(0, slash), family, numeric);
    for (auto& each : all) each.udp_port = *port;
    return all;
  }
  if (family == AF_UNSPEC) {
    auto four = resolve(node, AF_INET, numeric);
    return !four.empty() ? four : resolve(node, AF_INET6, numeric);
  }
  // As in names of peers: an IPv6 address, with its interface.
  const bool brackets = node.starts_with('[') && node.ends_with(']');
  if (brackets && family == AF_INET) return {};
  const auto host = brackets ? node.substr(1, node.size() - 2) : node;
  addrinfo wanted{};
  wanted.ai_family = family;
  wanted.ai_flags = numeric || brackets ? AI_NUMERICHOST : 0;
  addrinfo* found = nullptr;
  if (::getaddrinfo(host.c_str(), nullptr, &wanted, &found) != 0) return {};
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owned(found, ::freeaddrinfo);
  std::vector<Address> all;
  for (const auto* each = found; each != nullptr && all.size() < kMostAddresses;
       each = each->ai_next) {
    Address next;
    if (read_address(each->ai_addr, each->ai_addrlen, next) &&
        std::ranges::find(all, next) == all.end())
      all.push_back(next);
  }
  return all;
}

std::vector<std::byte> pack_request(const Address& own, const void* data, std::size_t length,
                                    std::uint32_t magic) {
  const auto four = own.ipv4();
  const auto version = kCmVersion + (four ? 0 : kCmIpv6) + (own.udp_port == 0 ? 0 : kCmUdpPort);
  const CmHead head{.magic = htonl(magic),
                    .ipv4 = htonl(four.value_or(INADDR_ANY)),
                    .port = htons(own.port),
                    .version = htons(static_cast<std::uint16_t>(version))};
  std::vector<std::byte> packed(sizeof head);
  std::memcpy(packed.data(), &head, sizeof head);
  const auto append = [&packed](const void* from, std::size_t size) {
    const auto* const bytes = static_cast<const std::byte*>(from);
    packed.insert(packed.end(), bytes, bytes + size);
  };
  if (!four) append(own.ip.data(), own.ip.size());
  const auto udp_port = htons(own.udp_port);
  if (own.udp_port != 0) append(&udp_port, sizeof udp_port);
  if (length != 0) append(data, length);
  return packed;
}

std::vector<std::byte> cm_data_of(stm_connection_t connection) {
  std::vector<std::byte> data(STM_PRIVATE_DATA);
  const auto length = stm_private_data(connection, data.data(), data.size());
  data.resize(length > 0 ? static_cast<std::size_t>(length) : 0);
  return data;
}

std::optional<Address> unpack_request(std::vector<std::byte>& data, std::uint32_t magic) {
  CmHead head{};
  if (data.size() < sizeof head) return std::nullopt;
  std::memcpy(&head, data.data(), sizeof head);
  const auto more = ntohs(head.version) - kCmVersion;
  if (head.magic != htonl(magic) || more < 0 || more > kCmIpv6 + kCmUdpPort) return std::nullopt;
  auto peer = Address::of(ntohl(head.ipv4), ntohs(head.port));
  std::uint16_t udp_port = 0;
  const auto ip = (more & kCmIpv6) != 0 ? peer.ip.size() : 0;
  const auto rest = (more & kCmUdpPort) != 0 ? sizeof udp_port : 0;
  if (data.size() < sizeof head + ip + rest) return std::nullopt;
  std::memcpy(peer.ip.data(), data.data() + sizeof head, ip);
  std::memcpy(&udp_port, data.data() + sizeof head + ip, rest);
  peer.udp_port = ntohs(udp_port);
  data.erase(data.begin(), data.begin() + static_cast<std::ptrdiff_t>(sizeof head + ip + rest));
  return peer;
}

const char* why_other_kind(const std::vector<std::byte>& data, std::uint32_t magic) {
  std::uint32_t first = 0;
  if (data.size() < sizeof first) return nullptr;
  std::memcpy(&first, data.data(), sizeof first);
  if (first != htonl(magic)) return nullptr;
  return magic == kCmMagic
             ? "it is one of FI_EP_MSG, as ofi_rxm has, and this is FI_EP_RDM of stp itself: both "
               "programs leave ofi_rxm out (FI_PROVIDER=^ofi_rxm), or none"
             : "it is FI_EP_RDM of stp itself, and this is one of FI_EP_MSG, as ofi_rxm has: both "
               "programs leave ofi_rxm out (FI_PROVIDER=^ofi_rxm), or none";
}

// ---- address vectors ----

namespace {

Av& av_of(fid_av* av) {
  return *static_cast<Av*>(av);
}

const char* describe(fid_av* av, const void* address, char* buffer, std::size_t* length) {
  Address read;
  if (length == nullptr || !read_address(address, address_size(av_of(av).format()), read))
    return nullptr;
  const auto text = (read.ipv4() ? "fi_sockaddr_in://" : "fi_sockaddr_in6://") + peer_name(read);
  const auto room = *length;
  *length = text.size() + 1;
  if (buffer == nullptr || room == 0) return nullptr;
  const auto copied = std::min(room - 1, text.size());
  std::memcpy(buffer, text.data(), copied);
  buffer[copied] = '\0';
  return buffer;
}

fi_ops av_object_calls{
    .size = sizeof(fi_ops),
    .close = [](fid_t id) { return guarded([&] { return object_of<Av, fid_av>(id).close(); }); },
    .bind =
        [](fid_t id, fid_t other, std::uint64_t flags) {
          return guarded([&] { return object_of<Av, fid_av>(id).bind(other, flags); });
        },
    .control = refuse,
    .ops_open = refuse,
    .tostr = refuse,
    .ops_set = refuse,
};

// Newer libfabrics have calls for authorization keys, too. They are left empty.
fi_ops_av av_calls = [] {
  fi_ops_av calls{};
  calls.size = sizeof calls;
  calls.insert = [](fid_av* av, const void* addresses, std::size_t count, fi_addr_t* out,
                    std::uint64_t flags, void* context) {
    return guarded([&] { return av_of(av).insert(addresses, count, out, flags, context); });
  };
  calls.insertsvc = [](fid_av* av, const char* node, const char* service, fi_addr_t* out,
                       std::uint64_t flags, void* context) {
    return guarded(
        [&] { return av_of(av).insert_names(node, 1, service, 1, out, flags, context); });
  };
  calls.insertsym = [](fid_av* av, const char* node, std::size_t nodes, const char* service,
                       std::size_t services, fi_addr_t* out, std::uint64_t flags, void* context) {
    return guarded([&] {
      return av_of(av).insert_names(node, nodes, service, services, out, flags, context);
    });
  };
  calls.remove = [](fid_av* av, fi_addr_t* addresses, std::size_t count, std::uint64_t flags) {
    return guarded([&] { return av_of(av).remove(addresses, count, flags); });
  };
  calls.lookup = [](fid_av* av, fi_addr_t address, void* out, std::size_t* length) {
    return guarded([&] { return av_of(av).lookup(address, out, length); });
  };
  calls.straddr = describe;
  calls.av_set = refuse;
  return calls;
}();

// The host that many behind `first`, as libfabric numbers those of a job.
Address further(Address first, std::size_t many) {
  for (auto octet = first.ip.rbegin(); octet != first.ip.rend() && many != 0; ++octet) {
    many += *octet;
    *octet = static_cast<std::uint8_t>(many);
    many >>= 8;
  }
  return first;
}

}  // namespace

Av::Av(Domain& domain, void* context, bool by_event)
    : fid_av{.fid = {.fclass = FI_CLASS_AV, .context = context, .ops = &av_object_calls},
             .ops = &av_calls},
      domain_(domain),
      link_(domain.link()),
      by_event_(by_event) {
  domain_.use();
}

int Av::open(Domain& domain, fi_av_attr* attr, void* context, fid_av*& out) {
  if (attr == nullptr) return -FI_EINVAL;
  if ((attr->flags & ~(FI_SYMMETRIC | FI_EVENT)) != 0) return -FI_EBADFLAGS;
  if (attr->name != nullptr) {
    inform(FI_LOG_AV, "address vectors are not shared by name");
    return -FI_ENOSYS;
  }
  if (attr->rx_ctx_bits != 0) return -FI_ENOSYS;
  if (attr->type != FI_AV_UNSPEC && attr->type != FI_AV_MAP && attr->type != FI_AV_TABLE)
    return -FI_EINVAL;
  if (attr->type == FI_AV_UNSPEC) attr->type = FI_AV_TABLE;
  std::unique_ptr<Av> av(new Av(domain, context, (attr->flags & FI_EVENT) != 0));
  // A wish; the vector grows as needed.
  constexpr std::size_t kMostReserved = 65'536;
  av->places_.reserve(std::min(attr->count, kMostReserved));
  out = av.release();
  return 0;
}

std::uint32_t Av::format() const {
  return domain_.format();
}

int Av::close() {
  {
    const LinkLock lock(link_.mutex());
    if (users_ != 0) return -FI_EBUSY;
    Eq::unbind(eq_, &fid);
  }
  domain_.unuse();
  delete this;
  return 0;
}

fi_addr_t Av::add(const Address& address) {
  ++version_;
  fi_addr_t number = places_.size();
  if (free_.empty()) {
    places_.push_back(address);
    count_ = places_.size();
  } else {
    number = free_.back();
    free_.pop_back();
    places_[number] = address;
  }
  ++numbers_.try_emplace(address, Number{.number = number, .since = version_}).first->second.times;
  return number;
}

int Av::bind(fid_t other, std::uint64_t flags) {
  if (other->fclass != FI_CLASS_EQ || !by_event_) return -FI_EINVAL;
  const LinkLock lock(link_.mutex());
  return Eq::bind(eq_, other, flags);
}

fi_addr_t Av::insert_one(const void* address) {
  Address read;
  const auto good =
      read_address(address, address_size(format()), read) && !read.is_any() && read.port != 0;
  return good ? add(link_.canonical(read)) : FI_ADDR_NOTAVAIL;
}

// With FI_EVENT the insertion is done when the call returns, too, and told by events alone.
int Av::insert(const void* addresses, std::size_t count, fi_addr_t* out, std::uint64_t flags,
               void* context) {
  if ((flags & ~static_cast<std::uint64_t>(FI_MORE | FI_SYNC_ERR)) != 0) return -FI_EBADFLAGS;
  if (by_event_ && (flags & FI_SYNC_ERR) != 0) return -FI_EBADFLAGS;
  if (addresses == nullptr && count != 0) return -FI_EINVAL;
  auto* const errors = (flags & FI_SYNC_ERR) != 0 ? static_cast<int*>(context) : nullptr;
  const LinkLock lock(link_.mutex());
  if (by_event_ && eq_ == nullptr) return -FI_ENOEQ;
  std::size_t inserted = 0, first_wrong = count;
  auto all_told = true;
  for (std::size_t i = 0; i < count; ++i) {
    const auto number =
        insert_one(static_cast<const std::byte*>(addresses) + i * address_size(format()));
    const auto good = number != FI_ADDR_NOTAVAIL;
    if (out != nullptr) out[i] = number;
    if (errors != nullptr) errors[i] = good ? 0 : FI_EINVAL;
    if (good) {
      ++inserted;
      continue;
    }
    first_wrong = std::min(first_wrong, i);
    all_told = all_told && (!by_event_ || eq_->tell_not_inserted(&fid, context, i));
  }
  if (inserted != count)
    inform(FI_LOG_AV, std::to_string(count - inserted) + " of " + std::to_string(count) +
                          " are no addresses to send to; the first is number " +
                          std::to_string(first_wrong) +
                          (all_told ? "" : ". The event queue is full: it does not tell of all"));
  if (!by_event_) return static_cast<int>(inserted);
  eq_->tell_inserted(&fid, context, inserted);
  return 0;
}

int Av::insert_names(const char* node, std::size_t nodes, const char* service, std::size_t services,
                     fi_addr_t* out, std::uint64_t flags, void* context) {
  if (node == nullptr || service == nullptr) return -FI_EINVAL;
  // Each is one number, by which receives name the peer.
  const auto first =
      first_of(resolve(node, format() == FI_SOCKADDR_IN6 ? AF_UNSPEC : AF_INET, false));
  const auto port = parse_port(service);
  if (!first || !port) {
    inform(FI_LOG_AV, std::string("no address: ").append(node).append(":").append(service));
    return -FI_EINVAL;
  }
  constexpr std::size_t kMost = 65'536;
  if (nodes > kMost || services > kMost || nodes * services > kMost) return -FI_EINVAL;
  std::vector<std::byte> all(nodes * services * address_size(format()));
  auto* at = all.data();
  for (std::size_t i = 0; i < nodes; ++i)
    for (std::size_t k = 0; k < services; ++k) {
      auto each = further(*first, i);
      each.port = static_cast<std::uint16_t>(*port + k);
      auto size = address_size(format());
      tell_address(each, format(), at, &size);
      at += size;
    }
  return insert(all.data(), nodes * services, out, flags, context);
}

// It is in the vector elsewhere, mostly behind that place.
fi_addr_t Av::another(const Address& address, fi_addr_t than) const {
  auto found =
      std::find(places_.begin() + static_cast<std::ptrdiff_t>(than), places_.end(), address);
  if (found == places_.end()) found = std::ranges::find(places_, address);
  return static_cast<fi_addr_t>(found - places_.begin());
}

int Av::remove(const fi_addr_t* addresses, std::size_t count, std::uint64_t flags) {
  if (flags != 0) return -FI_EBADFLAGS;
  const LinkLock lock(link_.mutex());
  for (std::size_t i = 0; i < count; ++i)
    if (at(addresses[i]).port == 0) return -FI_EINVAL;
  for (std::size_t i = 0; i < count; ++i) {
    const auto number = addresses[i];
    const auto address = at(number);
    if (address.port == 0) continue;  // named twice
    ++version_;
    places_[number] = {};
    free_.push_back(number);
    auto& known = numbers_.at(address);
    if (--known.times == 0)
      numbers_.erase(address);
    else if (known.number == number)
      known.number = another(address, number);
  }
  return 0;
}

int Av::lookup(fi_addr_t address, void* out, std::size_t* length) {
  const LinkLock lock(link_.mutex());
  const auto found = at(address);
  if (found.port == 0) return -FI_EINVAL;
  const auto error = tell_address(found, format(), out, length);
  return error == -FI_ETOOSMALL ? 0 : error;  // the length says that it is cut
}

}  // namespace stp::fi
