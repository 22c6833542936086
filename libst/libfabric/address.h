// SPDX-License-Identifier: BSD-3-Clause
// Addresses, address vectors, and the data of a connection request.
#pragma once

#include <netinet/in.h>
#include <rdma/fi_domain.h>

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "libst/include/stp/managed.h"

namespace stp::fi {

class Domain;
class Eq;
class FabricLink;

// An address of an endpoint: one of a host, an upper-layer port of the link, and over UDP the
// host's UDP port. Programs have it in the format of their fi_info: FI_SOCKADDR_IN, or
// FI_SOCKADDR_IN6 where the link has IPv6. These have no field for a second port: one that is not
// the usual one stands, behind a mark, in sin_zero or sin6_flowinfo, of which nobody makes use.
struct Address {
  std::array<std::uint8_t, 16> ip{};  // an IPv4 address as ::ffff:10.0.0.5
  std::uint32_t scope = 0;            // the interface of a link-local IPv6 address, by its index
  std::uint16_t port = 0;             // host order
  std::uint16_t udp_port = 0;         // 0: the usual one of the link

  friend auto operator<=>(const Address&, const Address&) = default;
  // Each message that comes is compared with receives that name their sender.
  friend bool operator==(const Address& a, const Address& b) {
    static_assert(sizeof(Address) == 24);  // no padding
    return ((a.word(0) ^ b.word(0)) | (a.word(8) ^ b.word(8)) | (a.word(16) ^ b.word(16))) == 0;
  }

  static Address of(std::uint32_t ipv4, std::uint16_t port);  // host order
  [[nodiscard]] std::optional<std::uint32_t> ipv4() const;    // nullopt: it is IPv6
  [[nodiscard]] bool is_any() const;                          // 0.0.0.0 or ::
  [[nodiscard]] bool is_loopback() const;

 private:
  [[nodiscard]] std::uint64_t word(std::size_t at) const {
    std::uint64_t word = 0;
    std::memcpy(&word, reinterpret_cast<const std::byte*>(this) + at, sizeof word);
    return word;
  }
};

struct HashAddress {
  std::size_t operator()(const Address& address) const;
};

// Bytes of an address of that format.
[[nodiscard]] std::size_t address_size(std::uint32_t format);

// Of a call that gives no length: the address says by its family how long it is.
inline constexpr std::size_t kByFamily = sizeof(sockaddr_in6);
// False: neither a sockaddr_in nor a sockaddr_in6 of that many bytes.
[[nodiscard]] bool read_address(const void* from, std::size_t length, Address& out);
[[nodiscard]] Address address_or_any(const void* from, std::size_t length);

// In that format. Where FI_SOCKADDR_IN cannot hold the host, it is 0.0.0.0.
[[nodiscard]] sockaddr_in6 in_format(const Address& address, std::uint32_t format);

// As in fi_getname: copies as much as fits; -FI_ETOOSMALL if that is not all.
int tell_address(const Address& address, std::uint32_t format, void* to, std::size_t* length);

// "10.9.0.1:3000", "[2001:db8::5]/9001:3000", as stm_connect names a peer.
[[nodiscard]] std::string peer_name(const Address& address);

// Whether an interface of this host has it.
[[nodiscard]] bool is_own(const Address& address);

// The first IPv6 address of the interface, or if that is "" of this host, which hosts of other
// networks may reach. nullopt: there is none.
[[nodiscard]] std::optional<Address> own_ipv6(const std::string& interface);

// nullopt: it is no number of a port.
[[nodiscard]] std::optional<std::uint16_t> parse_port(const char* text);

// What stands behind the kind in the text of a link over UDP or IP: an address, an interface, or
// neither.
struct UdpTarget {
  bool is_udp = false, is_ip = false;
  std::optional<Address> address;
  std::string interface;    // as the kernel calls it
  bool is_nothing = false;  // neither an address nor an interface of this host

  explicit UdpTarget(const std::string& link);
  // The formats that its addresses may have.
  [[nodiscard]] bool has_ipv4() const { return (is_udp || is_ip) && (!address || address->ipv4()); }
  [[nodiscard]] bool has_ipv6() const { return address ? !address->ipv4() : is_udp; }
};

// The addresses of a host, of which a name may have several, in the resolver's order. `node`: the
// host, or host/9001 with its UDP port. `family`: AF_INET, AF_INET6, or AF_UNSPEC for IPv6
// addresses if there are no others.
inline constexpr std::size_t kMostAddresses = 8;
[[nodiscard]] std::vector<Address> resolve(const std::string& node, int family, bool numeric);

// The data of a connection request, as private data of the managed API: the requester's address,
// then the program's data.

inline constexpr std::uint32_t kCmMagic = 0x53544649;  // "STFI"

struct CmHead {
  std::uint32_t magic, ipv4;  // in network order, as all fields
  std::uint16_t port, version;
};
static_assert(sizeof(CmHead) == 12);
// What the version has beyond the first one: 1 if 16 bytes of an IPv6 address are behind the head,
// 2 if 2 bytes of a UDP port are behind that, because it is not 8181.
inline constexpr std::uint16_t kCmVersion = 1, kCmIpv6 = 1, kCmUdpPort = 2;

[[nodiscard]] std::vector<std::byte> pack_request(const Address& own, const void* data,
                                                  std::size_t length,
                                                  std::uint32_t magic = kCmMagic);

// The data that the peer of `connection` has sent.
[[nodiscard]] std::vector<std::byte> cm_data_of(stm_connection_t connection);

// Removes the header. nullopt: the requester is not an endpoint of this provider.
[[nodiscard]] std::optional<Address> unpack_request(std::vector<std::byte>& data,
                                                    std::uint32_t magic = kCmMagic);
// Why an endpoint rejects a request that unpack_request() has refused: it is of the other kind,
// whose requests begin with `magic`. nullptr: it is of neither.
const char* why_other_kind(const std::vector<std::byte>& data, std::uint32_t magic);

// Of FI_EP_RDM: numbers for the addresses of peers, in the order of insertion.
class Av : public fid_av {
 public:
  static int open(Domain& domain, fi_av_attr* attr, void* context, fid_av*& out);

  // ---- under the link's mutex ----
  // Its port is 0: there is none.
  [[nodiscard]] const Address& at(fi_addr_t address) const {
    return address < count_ ? places_[address] : kNowhere;
  }
  // FI_ADDR_NOTAVAIL: it is not in the vector.
  [[nodiscard]] fi_addr_t find(const Address& address) const {
    const auto found = numbers_.find(address);
    return found != numbers_.end() ? found->second.number : FI_ADDR_NOTAVAIL;
  }
  // The version with which it got into the vector; 0: it is not there.
  [[nodiscard]] std::uint64_t has_since(const Address& address) const {
    const auto found = numbers_.find(address);
    return found != numbers_.end() ? found->second.since : 0;
  }
  // Of the addresses that it has: another one after each change.
  [[nodiscard]] std::uint64_t version() const { return version_; }
  void use() { ++users_; }
  void unuse() { --users_; }

  // Of the addresses that programs give and get.
  [[nodiscard]] std::uint32_t format() const;
  int close();
  int bind(fid_t other, std::uint64_t flags);
  int insert(const void* addresses, std::size_t count, fi_addr_t* out, std::uint64_t flags,
             void* context);
  int insert_names(const char* node, std::size_t nodes, const char* service, std::size_t services,
                   fi_addr_t* out, std::uint64_t flags, void* context);
  int remove(const fi_addr_t* addresses, std::size_t count, std::uint64_t flags);
  int lookup(fi_addr_t address, void* out, std::size_t* length);

 private:
  Av(Domain& domain, void* context, bool by_event);
  fi_addr_t add(const Address& address);
  [[nodiscard]] fi_addr_t another(const Address& address, fi_addr_t than) const;
  // Inserts an address as programs give it.
  fi_addr_t insert_one(const void* address);

  Domain& domain_;
  FabricLink& link_;
  const bool by_event_;  // FI_EVENT: an event tells of each insertion
  Eq* eq_ = nullptr;
  static inline const Address kNowhere{};
  std::vector<Address> places_;
  std::size_t count_ = 0;  // of them
  std::vector<fi_addr_t> free_;
  struct Number {
    fi_addr_t number;
    std::uint64_t since;    // the version
    std::size_t times = 0;  // that it is in the vector
  };
  std::unordered_map<Address, Number, HashAddress> numbers_;
  std::uint64_t version_ = 1;
  unsigned users_ = 0;
};

}  // namespace stp::fi
