// SPDX-License-Identifier: BSD-3-Clause
// Joins user programs to a Node through rings, the same inside a process and inside stpd: only who
// drives differs. All of a Service happens under its drive lock: whoever holds it may poll the
// link and handle requests.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "dpdk_port/port.h"
#include "libst/service/admin.h"
#include "libst/service/budget.h"
#include "libst/service/drive_lock.h"
#include "libst/service/memory_guard.h"
#include "libst/service/messages.h"
#include "libst/service/port_rules.h"
#include "libst/service/quotas.h"
#include "libst/service/shared_memory.h"

namespace stp::service {

// What goes along with a request or a reply beside its fixed part.
struct Attachments {
  // kMap: the pieces of memory in this process, and what keeps them mapped (may be null where the
  // user's own memory is meant). Released once the Node has let go of them.
  std::vector<MutableBytes> pieces;
  std::shared_ptr<void> keep;
  // What claim_region() reserved for them, and the bytes that stpd maps: all of the segments.
  Reservation place;
  std::uint64_t mapped_bytes = 0;
  // Reply of kConnect, kAccept: the channel. Reply of kHello: the client page.
  std::shared_ptr<SharedMemory> memory;
};

// What a region takes of its user's budgets, before any of it is made.
struct RegionClaim {
  Reservation place, bytes, mappings;
  std::shared_ptr<Torn> torn;  // to be set where its owner takes memory away that is in use
};

// The link is in another state than before.
struct LinkChange {
  port::LinkState state = port::LinkState::kUnknown;
  std::string trouble;            // and the remedy; "": none
  std::uint64_t passed_over = 0;  // changes before it that nobody asked for in time
};

// What 10 Gbit/s bring in 300 us at an MTU of 1500, and 100 Gbit/s in 250 us at one of 9000: many
// round trips of a machine room, and little for a switch that has some MB of buffers.
inline constexpr std::uint64_t kGrantedStus = 384;

class Service {
 public:
  // `granted`: bytes that all clients together have granted by CTS and not received, at most
  // (NodeConfig::granted_limit). nullopt: what kGrantedStus STUs of the link hold, all of its
  // shards together.
  explicit Service(std::unique_ptr<port::Port> port,
                   std::optional<std::uint64_t> granted = std::nullopt);
  ~Service();

  [[nodiscard]] DriveLock& lock();

  // ---- under the drive lock ----
  // 0: no memory for its page (errno tells). `privileged`: may choose Keys. It is nobody's: held by
  // the totals only.
  ClientId add_client(bool privileged);
  // A program of somebody's. 0: its user has as many as it may (errno EDQUOT, `why` says it), or
  // there is no memory. `operating`: in a place that is kept for operators.
  ClientId add_client(const ClientIdentity& identity, bool operating, std::string& why);
  // For whom its connections and regions are shown, what it is shown itself, and whose budgets pay
  // for what it makes from now on.
  void identify(ClientId client, const ClientIdentity& identity);
  // Whatever the client has: connections are disconnected on the wire, regions unmapped,
  // endpoints closed, a bounded part of it in each turn. Its memory is let go as the last frames
  // leave.
  void remove_client(ClientId client);
  // Clients that have anything left, removed ones whose last frames are still on their way too.
  [[nodiscard]] std::size_t client_count() const;
  // Clients that were removed for what they did to their memory: their sockets are to be closed.
  std::optional<ClientId> next_expelled();
  // An eventfd that is readable while there may be one. Needs no lock.
  [[nodiscard]] int expelled_fd() const;
  // All of these hold for what is asked from now on: what a client has it keeps.
  void set_quotas(const Quotas& quotas);
  // What of this process its clients may use up, all together.
  void set_process_totals(std::uint64_t mappings, std::uint64_t files);
  void set_port_rules(PortRules rules);
  // Who has what.
  [[nodiscard]] const Budgets& budgets() const;
  // Before the memory of a kMap request is mapped, `bytes` of it in all: whether it would be taken,
  // and a part of what it takes of its user's budgets. 0 or why not, as in handle()'s reply.
  int claim_region(ClientId client, const Request& request, std::uint64_t bytes, RegionClaim& out,
                   Reply& reply);
  // Channels are made of files below this one only; -EMFILE where there is none.
  void reserve_files_from(int first);
  void handle(ClientId client, const Request& request, Attachments& attachments, Reply& reply);
  // As if `bell` had rung at the client's page: there is something in that channel's queue.
  void kick(ClientId client, std::uint32_t bell);
  // What the Node is told.
  Time now();
  // One turn: bells, link, timers, events. Frames and requests moved; 0 means idle.
  unsigned poll();
  // Before sleeping: asks clients to ring the bell; false when something came in meanwhile.
  bool prepare_to_sleep();
  void woke_up();
  [[nodiscard]] Time next_deadline() const;
  [[nodiscard]] port::Port& port();
  [[nodiscard]] Node& node();
  // The changes since it was opened, in their order; the first one tells of a link that was not up.
  std::optional<LinkChange> next_link_change();
  // What `counters` gives stands behind the link's counters in kStats.
  void add_counters(std::function<std::vector<port::PortCounter>()> counters);
  [[nodiscard]] std::vector<port::PortCounter> all_counters() const;

  // The eventfd that `client` writes while the service sleeps, for it to be given; made when first
  // asked for. 0 or a negative errno. Under the drive lock.
  int bell_of(ClientId client, int& out);
  // How often a client that rang all the time for nothing was not listened to for a while.
  [[nodiscard]] std::uint64_t silenced_bells() const;

  // Between prepare_to_sleep() and woke_up(), without the lock, by one thread: until a client has
  // rung, somebody of this process has written bell(), `wake_fd` is readable (-1: there is none),
  // or `length` has passed.
  void sleep(int wake_fd, Time length);
  // An eventfd that is never handed out. Needs no lock.
  [[nodiscard]] int bell() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace stp::service
