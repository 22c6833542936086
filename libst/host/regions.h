// SPDX-License-Identifier: BSD-3-Clause
// Regions: memory of clients that the Node reads and writes, and the Mx that let peers do so. A
// region is mapped within the quotas and budgets of its client. It keeps the memory mapped until
// the Node no longer uses it. Its id stays known until the client has been told that it has gone.
#pragma once

#include <map>
#include <optional>
#include <utility>

#include "libst/host/attachments.h"
#include "libst/host/budgets.h"
#include "libst/host/client.h"

namespace stp::host {

class Regions {
 public:
  Regions(Node& node, Allowances& allow, Leftovers& leftovers)
      : node_(node), allow_(allow), leftovers_(leftovers) {}

  // Call before the memory of a kMap request, `bytes` in all, is mapped: checks whether the request
  // would succeed, and reserves a part of what it takes. Returns 0 or a negative errno, as do the
  // following requests.
  int claim(Client& client, const ask::Map& request, std::uint64_t bytes, std::size_t files,
            RegionClaim& out);
  int map(Client& client, const ask::Map& request, Attachments& attachments,
          ask::Map::Reply& reply);
  int alloc_mx(Client& client, const ask::AllocMx& request, ask::AllocMx::Reply& reply);
  int free_mx(Client& client, const ask::FreeMx& request);
  // -EINPROGRESS: frames on their way out read the region, which stays mapped.
  int settle(Client& client, RegionId id) const;

  // From now on frames use neither the region nor its Mx, but those on their way may still read it.
  // Does nothing if the region is unmapped already.
  void start_unmap(RegionId id, Region& region);
  // The Node no longer uses the region. Returns its endpoint. The client may still ask about it,
  // unless the client or the endpoint ends.
  EndpointId gone(Client& owner, RegionId id);
  // The client may not ask about the region any more, which has gone.
  static void forget(Client& client, RegionId id);

  // 0: the Node uses no such region.
  [[nodiscard]] ClientId owner_of(RegionId id) const;
  // Counts the regions that the Node uses.
  [[nodiscard]] std::size_t count() const { return owners_.size(); }
  // Returns the next of them after `id`, and its owner.
  [[nodiscard]] std::optional<std::pair<RegionId, ClientId>> after(RegionId id) const;

 private:
  int check(Client& client, const ask::Map& request, std::uint64_t bytes, std::uint64_t mapped);
  int reserve(const Client& client, const Attachments& attachments, Region& made,
              Reservation& tables);
  void settle_tables(Client& client, EndpointId id, Endpoint& endpoint);

  Node& node_;
  Allowances& allow_;
  Leftovers& leftovers_;
  std::map<RegionId, ClientId> owners_;  // of the regions that the Node uses
};

}  // namespace stp::host
