// SPDX-License-Identifier: BSD-3-Clause
// The endpoints of a Node and their owners. An endpoint ends only when nothing depends on it any
// more.
#pragma once

#include <map>

#include "stp/base/id_table.h"
#include "stp/node/common.h"
#include "stp/node/pacing.h"

namespace stp {

class EndpointTable {
 public:
  // They must outlive this.
  struct Uses {
    const NodeConfig& config;
    const PortTable& vcs;
    Pacing& pacing;
  };
  explicit EndpointTable(const Uses& uses) : use_(uses), endpoints_(uses.config.max_endpoints) {}

  // nullptr: ended, or never existed.
  [[nodiscard]] Endpoint* find(EndpointId id) const { return endpoints_.find(id); }
  // As Node::open_endpoint(), Node::configure() and Node::close_endpoint(), but the endpoint to
  // close must not listen.
  int open(const EndpointConfig& wanted, EndpointId& out, std::uint64_t owner);
  int configure(Endpoint& endpoint, const EndpointConfig& wanted);
  int close(Endpoint& endpoint);

 private:
  [[nodiscard]] int check(const EndpointConfig& wanted) const;

  Uses use_;
  std::map<std::uint64_t, Owner> owners_;  // those with endpoints
  IdTable<Endpoint> endpoints_;
};

}  // namespace stp
