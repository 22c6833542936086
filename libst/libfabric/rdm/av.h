// SPDX-License-Identifier: BSD-3-Clause
// An address vector: numbers for the addresses of peers, in the order of insertion.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <rdma/fi_domain.h>

#include <unordered_map>
#include <vector>

#include "libst/libfabric/address.h"

namespace stp::fi {
class Domain;
class Link;
}  // namespace stp::fi

namespace stp::fi::rdm {

// An address as one number: IPv4 and port. 0: none.
using Place = std::uint64_t;

[[nodiscard]] inline Place place_of(const sockaddr_in& address) {
  return Place{ntohl(address.sin_addr.s_addr)} << 16 | ntohs(address.sin_port);
}
[[nodiscard]] inline sockaddr_in address_of(Place place) {
  return make_address(static_cast<std::uint32_t>(place >> 16), static_cast<std::uint16_t>(place));
}

class Av : public fid_av {
 public:
  static int open(Domain& domain, fi_av_attr* attr, void* context, fid_av*& out);

  // ---- under the link's mutex ----
  // 0: there is none.
  [[nodiscard]] Place at(fi_addr_t address) const {
    return address < places_.size() ? places_[address] : 0;
  }
  // FI_ADDR_NOTAVAIL: it is not in the vector.
  [[nodiscard]] fi_addr_t find(Place place) const {
    const auto found = numbers_.find(place);
    return found != numbers_.end() ? found->second : FI_ADDR_NOTAVAIL;
  }
  void use() { ++users_; }
  void unuse() { --users_; }

  int close();
  int insert(const void* addresses, std::size_t count, fi_addr_t* out, std::uint64_t flags,
             void* context);
  int insert_names(const char* node, std::size_t nodes, const char* service, std::size_t services,
                   fi_addr_t* out, std::uint64_t flags, void* context);
  int remove(const fi_addr_t* addresses, std::size_t count, std::uint64_t flags);
  int lookup(fi_addr_t address, void* out, std::size_t* length);

 private:
  Av(Domain& domain, void* context);
  fi_addr_t add(Place place);

  Domain& domain_;
  Link& link_;
  std::vector<Place> places_;
  std::vector<fi_addr_t> free_;
  std::unordered_map<Place, fi_addr_t> numbers_;
  unsigned users_ = 0;
};

}  // namespace stp::fi::rdm
