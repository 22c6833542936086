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
#include "libst/service/drive_lock.h"
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
  // Reply of kConnect, kAccept: the channel. Reply of kHello: the client page.
  std::shared_ptr<SharedMemory> memory;
};

// What 10 Gbit/s bring in 300 us at an MTU of 1500, and 100 Gbit/s in 250 us at one of 9000: many
// round trips of a machine room, and little for a switch that has some MB of buffers.
inline constexpr std::uint64_t kGrantedStus = 384;

class Service {
 public:
  // `granted`: bytes that all clients together have granted by CTS and not received, at most
  // (NodeConfig::granted_limit). nullopt: what kGrantedStus STUs of the link hold.
  explicit Service(std::unique_ptr<port::Port> port,
                   std::optional<std::uint64_t> granted = std::nullopt);
  ~Service();

  [[nodiscard]] DriveLock& lock();

  // ---- under the drive lock ----
  // 0: no memory for its page (errno tells). `privileged`: may choose Keys.
  ClientId add_client(bool privileged);
  // For whom its connections and regions are shown, and what it is shown itself.
  void identify(ClientId client, const ClientIdentity& identity);
  // Whatever the client has: connections are disconnected on the wire, regions unmapped,
  // endpoints closed. Its memory is let go as the last frames leave.
  void remove_client(ClientId client);
  // Clients that have anything left, removed ones whose last frames are still on their way too.
  [[nodiscard]] std::size_t client_count() const;
  // Both hold for what is asked from now on: what a client has it keeps.
  void set_quotas(const Quotas& quotas);
  void set_port_rules(PortRules rules);
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
  // What `counters` gives stands behind the link's counters in kStats.
  void add_counters(std::function<std::vector<port::PortCounter>()> counters);
  [[nodiscard]] std::vector<port::PortCounter> all_counters() const;

  // An eventfd: written by clients while the service sleeps. Needs no lock.
  [[nodiscard]] int bell() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace stp::service
