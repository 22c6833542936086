// SPDX-License-Identifier: BSD-3-Clause
// An address vector: numbers for the addresses of peers, in the order of insertion.
#pragma once

#include <rdma/fi_domain.h>

#include <unordered_map>
#include <vector>

#include "libst/libfabric/address.h"

namespace stp::fi {
class Domain;
class Eq;
class FabricLink;
}  // namespace stp::fi

namespace stp::fi::rdm {

class Av : public fid_av {
 public:
  static int open(Domain& domain, fi_av_attr* attr, void* context, fid_av*& out);

  // ---- under the link's mutex ----
  // Its port is 0: there is none.
  [[nodiscard]] Address at(fi_addr_t address) const {
    return address < places_.size() ? places_[address] : Address{};
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
  // Inserts an address as programs give it.
  fi_addr_t insert_one(const void* address);

  Domain& domain_;
  FabricLink& link_;
  const bool by_event_;  // FI_EVENT: an event tells of each insertion
  Eq* eq_ = nullptr;
  std::vector<Address> places_;
  std::vector<fi_addr_t> free_;
  struct Number {
    fi_addr_t number;
    std::uint64_t since;  // the version
  };
  std::unordered_map<Address, Number, HashAddress> numbers_;
  std::uint64_t version_ = 1;
  unsigned users_ = 0;
};

}  // namespace stp::fi::rdm
