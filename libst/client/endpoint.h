// SPDX-License-Identifier: BSD-3-Clause
// The object behind st_create and st_endpoint: one endpoint of the service, with its connections
// and regions.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "libst/client/handle_table.h"
#include "libst/client/names.h"
#include "libst/client/options.h"
#include "libst/client/tries.h"
#include "stp/base/mutex.h"
#include "stp/node/node.h"

struct st_ehandle;

namespace stp::client {

// The memory and the Mx of an endpoint. With it st_tx rejects at once what the Node would reject
// later. The Node does not rely on it. Thread-safe.
struct BufxInterval {
  std::uint32_t first = 0, count = 0;
  [[nodiscard]] bool contains(std::uint32_t bufx) const { return bufx - first < count; }
};

class Mappings {
 public:
  void add(RegionId region, Direction direction, BufxInterval interval);
  // Also removes every Mx on the region.
  void remove(RegionId region);

  void add_mx(std::uint16_t mx, RegionId region, VcId vc);
  // Whether `vc` may use `mx`.
  [[nodiscard]] bool owns_mx(VcId vc, std::uint16_t mx) const;
  void remove_mx(std::uint16_t mx);
  void remove_mx_of(VcId vc);

  // Whether `length` bytes (not 0) from (bufx, offset) on are mapped for sending.
  [[nodiscard]] bool can_send(std::uint32_t bufx, std::uint32_t offset, std::uint32_t length,
                              unsigned bufsize) const;
  // Whether `vc` may let its peer write to `bufx` through `mx`.
  [[nodiscard]] bool can_grant(VcId vc, std::uint16_t mx, std::uint32_t bufx) const;

 private:
  struct MxRecord {
    RegionId region;
    VcId vc;  // kNoneId: any connection of the endpoint
    BufxInterval interval;
  };
  struct RegionRecord {
    Direction direction;
    BufxInterval interval;
  };
  [[nodiscard]] const MxRecord* find_mx(VcId vc, std::uint16_t mx) const
      STP_THREAD_SAFETY(requires_shared_capability(mutex_));

  [[nodiscard]] bool find_transmit(std::uint32_t bufx, std::uint64_t last) const;

  // The interval of transmit memory found last, first << 32 | count; 0: none. Most lookups hit it
  // and need no lock.
  mutable std::atomic<std::uint64_t> found_{0};
  mutable SharedMutex mutex_;
  std::unordered_map<RegionId, RegionRecord> regions_ STP_GUARDED_BY(mutex_);
  std::map<std::uint32_t, std::uint32_t> transmit_
      STP_GUARDED_BY(mutex_);  // first Bufx -> count; none overlap
  std::unordered_map<std::uint16_t, MxRecord> mxs_ STP_GUARDED_BY(mutex_);
};

class Connection;

// Functions return 0 or a negative errno. Thread-safe. The handle table owns an Endpoint; its
// connections and regions keep it alive, too.
class Endpoint : public std::enable_shared_from_this<Endpoint> {
 public:
  static constexpr Kind kKind = Kind::kEndpoint;

  // `name`: where st_listen will listen, or the Port of a connectionless endpoint. nullopt: the
  // endpoint will not listen, or gets any Port.
  static int open(const std::optional<Name>& name, bool connectionless,
                  std::shared_ptr<Endpoint>& out);
  Endpoint(std::shared_ptr<Backend> backend, std::uint32_t uport, bool connectionless)
      : backend_(std::move(backend)), uport_(uport), connectionless_(connectionless) {}
  ~Endpoint();
  Endpoint(const Endpoint&) = delete;
  Endpoint& operator=(const Endpoint&) = delete;

  // Options of this side only.
  [[nodiscard]] std::uint32_t get_option(const OptionRule& rule) const;
  int set_option(const OptionRule& rule, std::uint32_t value);

  int listen();
  int accept(Handle& out);
  // Returns the next connection that a peer asks for, before it is accepted or rejected.
  int inspect(Time deadline, Handle& out, VcFacts& peer);
  // `answer`: nullptr, or filled with information about the peer when it has accepted or refused.
  // Where the host has several addresses, it goes on to the next one if nobody answers.
  int connect(const Name& peer, const OptionPayload& option, Handle& out, VcFacts* answer);
  // Connectionless endpoints: returns the Port and opens it on the first call.
  int open_port(Handle& out);
  int get_connectionless(const OptionRule& rule, std::uint32_t& value);
  // `mx`: nullptr, or set to an Mx that is valid on every connection.
  int map(Direction direction, std::vector<MutableBytes> memory, std::uint32_t base, Handle& out,
          std::uint16_t* mx);
  // An event of the endpoint.
  struct Occurrence {
    Handle connection = 0;  // 0: a connection waits to be accepted
    int reason = 0;         // why `connection` has ended
  };
  int next_occurrence(Time deadline, Occurrence& out);
  int flush();
  // Two steps. begin_end, before the handle is retired: wakes the threads that wait here, and waits
  // until its connections have sent what is queued. -EINTR: a signal handler ran, and nothing has
  // ended. -EBADF: another thread deletes it. end, after the handle has been retired: ends all
  // connections and regions of the endpoint.
  struct ClosingOne {
    std::shared_ptr<Connection> connection;
    Handle handle = 0;
    bool at_once = false;
  };
  using Closing = std::vector<ClosingOne>;
  int begin_end(Closing& closing);
  void end(const Closing& closing);

  [[nodiscard]] Backend& backend() const { return *backend_; }
  [[nodiscard]] ipc::WireConfig config() const;
  [[nodiscard]] Mappings& mappings() { return mappings_; }
  [[nodiscard]] EndpointId id() const { return id_; }
  [[nodiscard]] bool connectionless() const { return connectionless_; }
  // In one order with a connection's: a close that goes on sees that the endpoint has ended, or its
  // st_delete sees the connection.
  [[nodiscard]] bool ended() const { return ended_.load(); }
  // Call when a connection or region of the endpoint has ended.
  void forget(Handle child);

 private:
  [[nodiscard]] int not_connectionless() const;
  template <typename Child>
  int publish(const std::shared_ptr<Child>& child, Handle& out);
  struct Asked {
    MacAddr mac;
    std::uint32_t uport;
  };
  int connect_to(const Asked& whom, const OptionPayload& option, Time deadline, Handle& out,
                 VcFacts* answer);
  int connect_to_one_of(Tries tries, std::uint32_t uport, const OptionPayload& option,
                        Time patience, Handle& out, VcFacts* answer);
  int ask_for(const Asked& whom, const OptionPayload& option, std::shared_ptr<Connection>& out);
  int await_answer(const std::shared_ptr<Connection>& connection, const MacAddr& mac, Time deadline,
                   Tries* tries, Handle& out, VcFacts* answer);
  bool take_end(Occurrence& out) const;
  int backlog(std::uint64_t& out) const;
  int wait_for_peer(Time deadline, std::shared_ptr<Connection>& out);
  int hand_out(const std::shared_ptr<Connection>& connection, Handle& out);
  [[nodiscard]] std::vector<Handle> children() const;
  // It is not deleted after all.
  void go_on(const Closing& closing);

  const std::shared_ptr<Backend> backend_;
  const std::uint32_t uport_;  // 0: none
  const bool connectionless_;
  EndpointId id_ = kNoneId;
  Mappings mappings_;
  std::atomic<bool> ended_{false}, listening_{false};
  Mutex opening_{LockRank::kOpening};  // held while the Port is opened
  std::atomic<Handle> port_{0};        // 0: not open yet
  mutable Mutex mutex_{LockRank::kEndpoint};
  ipc::WireConfig config_ STP_GUARDED_BY(mutex_){};
  std::unordered_set<Handle> children_ STP_GUARDED_BY(mutex_);
};

// st_create and st_endpoint.
int make_endpoint(const char* str, bool connectionless, st_ehandle** out);

// The object behind st_map: user memory bound to Bufx entries. Functions return 0 or a negative
// errno. Thread-safe.
class Region {
 public:
  static constexpr Kind kKind = Kind::kRegion;

  Region(std::shared_ptr<Endpoint> endpoint, RegionId id, Direction direction,
         std::shared_ptr<void> keep)
      : endpoint_(std::move(endpoint)), id_(id), direction_(direction), keep_(std::move(keep)) {}

  // Allocates an Mx on the region, for `vc` or (kNoneId) for every connection of the endpoint.
  int allocate_mx(VcId vc, std::uint16_t& out);
  // Call after the handle has been retired. Waits, without a timeout, until the link no longer uses
  // the memory.
  int unmap();

  [[nodiscard]] const Endpoint& endpoint() const { return *endpoint_; }
  [[nodiscard]] Direction direction() const { return direction_; }
  void set_handle(Handle handle) { handle_ = handle; }

 private:
  const std::shared_ptr<Endpoint> endpoint_;
  const RegionId id_;
  const Direction direction_;
  const std::shared_ptr<void> keep_;
  Handle handle_ = 0;
};

}  // namespace stp::client
