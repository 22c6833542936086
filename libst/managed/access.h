// SPDX-License-Identifier: BSD-3-Clause
// A part of registered memory that peers may access by its key.
#pragma once

#include <map>

#include "libst/managed/memory.h"

namespace stp::managed {

class Connection;

class Access {
 public:
  static constexpr client::Kind kKind = client::Kind::kAccess;

  struct Terms {
    MutableBytes bytes;
    unsigned access = 0;
    std::uint64_t address = 0;
    const Connection* only = nullptr;  // nullptr: any connection
    std::uint64_t group = 0;           // 0: any; else only connections of that group
  };
  Access(std::shared_ptr<Memory> memory, const Terms& terms, std::uint32_t key)
      : memory_(std::move(memory)), terms_(terms), key_(key) {}

  [[nodiscard]] const Terms& terms() const { return terms_; }
  [[nodiscard]] bool permits(const Connection& connection, std::uint64_t group) const {
    if (terms_.only != nullptr && terms_.only != &connection) return false;
    return terms_.group == 0 || terms_.group == group;
  }
  [[nodiscard]] std::uint32_t key() const { return key_; }
  [[nodiscard]] const std::shared_ptr<Domain>& domain() const { return memory_->domain(); }
  [[nodiscard]] Memory& memory() const { return *memory_; }

  // Under the domain's mutex. Grants the peer of a connection on `endpoint` access. Returns 0 or a
  // negative errno.
  int landing(EndpointId endpoint, Landing& out);
  // Ends the access of all peers.
  void revoke();
  [[nodiscard]] bool revoked() const { return revoked_; }

 private:
  const std::shared_ptr<Memory> memory_;
  const Terms terms_;
  const std::uint32_t key_;
  std::map<EndpointId, std::uint16_t> mxs_;
  bool revoked_ = false;
};

}  // namespace stp::managed
