// SPDX-License-Identifier: BSD-3-Clause
// Endpoints of clients, with their connections, the channels that carry them, and their regions.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <utility>

#include "dpdk_port/dpdk/turn_clock.h"
#include "libst/host/bells.h"
#include "libst/host/budgets.h"
#include "libst/host/client.h"
#include "libst/host/service.h"

namespace stp::host {

// Connections of clients, and the channels that carry them: each is made within the quotas and
// budgets of its client, belongs to one endpoint, and is released when the Node no longer uses it.
// A listening endpoint has a stock of channels for connections to come. The state is in each
// client's ChannelTable and in the counts of its Endpoints.
class Connections {
 public:
  Connections(Node& node, Allowances& allow, const Offers& offers, Leftovers& leftovers,
              Wakes& wakes, port::TurnClock& clock)
      : node_(node),
        allow_(allow),
        offers_(offers),
        leftovers_(leftovers),
        wakes_(wakes),
        clock_(clock) {}

  // Requests. They return 0 or a negative errno.
  int connect(Client& client, const ask::Connect& request, Attachments& attachments,
              ipc::GivenChannel& given);
  int accept(Client& client, EndpointId id, Attachments& attachments, ask::Accept::Reply& reply);
  int backlog(Client& client, EndpointId id, std::uint64_t& out) const;
  int decide(Client& client, const ask::Decide& request);
  int open_port(Client& client, EndpointId id, Attachments& attachments, ipc::GivenChannel& given);
  int info(Client& client, VcId vc, ipc::VcFacts& facts) const;
  int close(Client& client, const ask::Close& request);
  // The client has mapped the channel that it was offered, and its pages are kept: uses that one.
  // -EINPROGRESS: much waits in the present one. Call it again; others have their turn in between.
  int mapped(Client& client, VcId vc);

  // Fills the stock of a listening endpoint. After an error, fewer connections can wait. That of a
  // program in another process grows by one channel; next_low() names it until it is full. Each may
  // wait for threads that map memory of programs, and the link waits meanwhile.
  int restock(Client& client, EndpointId id, Endpoint& endpoint);
  // The same, and -ENOMEM if the system has no memory.
  int restock_within_memory(Client& client, EndpointId id, Endpoint& endpoint);
  // The next endpoint to restock, in turn. nullopt: there is none.
  std::optional<EndpointId> next_low() {
    return low_.empty() ? std::nullopt : std::optional(take_low());
  }
  // Releases the stock, and disconnects the connections that nobody has accepted.
  void drop_backlog(Client& client, EndpointId id, Endpoint& endpoint);
  // Disconnects the connection of this channel, if there is one, on behalf of a client that leaves.
  void give_up(Client& client, Bell number);
  // Several channels are kicked next, `first + n` if bit n is set: where there are many, brings
  // what their requests use into the caches.
  void fetch_ahead(const Client& client, Bell first, std::uint64_t bits) const {
    if (client.channels.numbers() >= kManyChannels) [[unlikely]]
      fetch_many_ahead(client, first, bits);
  }
  // Returns true if the transmit queue of the channel has new entries.
  bool kick(const Client& client, Bell number);
  // The Node no longer uses the channel of `vc`. Returns its endpoint if the channel was released;
  // kNoneId: it is in the stock again.
  EndpointId gone(Client& owner, VcId vc, Bell number);

 private:
  // Where there are fewer, the caches hold what they use anyway.
  static constexpr std::uint32_t kManyChannels = 256;
  void fetch_many_ahead(const Client& client, Bell first, std::uint64_t bits) const;
  EndpointId take_low();
  int make_channel(Client& client, EndpointId id, Bell& out);
  int make_offer(const Client& client, std::size_t size, std::shared_ptr<ipc::SharedMemory>& out);
  static std::unique_ptr<Channel> take_out(Client& client, Bell number);
  // A channel that goes again, unless it is put to use.
  struct Unused {
    ~Unused() {
      if (number) take_out(client, *number);
    }
    Client& client;
    std::optional<Bell> number;
  };
  // Makes a channel and calls `open(memory, cookie, vc)`, which gives it to the Node.
  template <typename Open>
  int open(Client& client, EndpointId id, Attachments& attachments, ipc::GivenChannel& given,
           Open&& open);
  int stock(Client& client, EndpointId id, Endpoint& endpoint, Bell number);
  int take(Client& client, EndpointId id, Endpoint& endpoint, Bell& out);
  void put_to_use(Client& client, VcId vc, Bell number);
  static void set_closing(Client& client, Channel& channel);

  Node& node_;
  Allowances& allow_;
  const Offers& offers_;
  Leftovers& leftovers_;
  Wakes& wakes_;
  port::TurnClock& clock_;
  // Of each user, each once (Endpoint::low); some may have ended. Users take turns.
  std::map<uid_t, std::deque<EndpointId>> low_;
  uid_t restocked_ = 0;  // whose turn was the last one
};

ipc::VcFacts facts_of(VcId vc, const VcInfo& info);

// Endpoints of clients: whose each one is, who may listen on which port, and when an endpoint that
// its client has closed can be erased: with the last of its channels and regions.
class Endpoints {
 public:
  Endpoints(Node& node, Allowances& allow, Connections& connections, Leftovers& leftovers)
      : node_(node), allow_(allow), connections_(connections), leftovers_(leftovers) {}

  void set_port_rules(PortRules rules) { rules_ = std::move(rules); }

  // Requests. They return 0 or a negative errno.
  int open(Client& client, const ask::OpenEndpoint& request, ask::OpenEndpoint::Reply& reply);
  int configure(Client& client, const ask::Configure& request, ipc::WireConfig& became);
  int config(Client& client, EndpointId id, ipc::WireConfig& out) const;
  int close(Client& client, EndpointId id);
  int listen(Client& client, const ask::Listen& request);
  int unlisten(Client& client, EndpointId id);

  // 0: the endpoint is nobody's, or no longer.
  [[nodiscard]] ClientId owner_of(EndpointId id) const;
  // From now on the client's requests do not find the endpoint. Its connections end later.
  void end(Client& client, EndpointId id, Endpoint& endpoint);
  // Call when one of its objects has gone.
  void erase_if_ended(Client& client, EndpointId id);

 private:
  [[nodiscard]] bool may_listen(const Client& client, std::uint32_t on) const;
  // -EACCES, with the reason in the reply.
  int no_rule(const Client& client, std::uint32_t port);

  Node& node_;
  Allowances& allow_;
  Connections& connections_;
  Leftovers& leftovers_;
  PortRules rules_;
  std::map<EndpointId, ClientId> owners_;
};

// Regions: memory of clients that the Node reads and writes, and the Mx that let peers do so. A
// region is mapped within the quotas and budgets of its client. It keeps the memory mapped until
// the Node no longer uses it. Its id stays known until the client has been told that it has gone.
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
