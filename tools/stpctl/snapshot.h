// SPDX-License-Identifier: BSD-3-Clause
// Reads the state of a link from its daemon.
#pragma once

#include <chrono>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "libst/ipc/requests.h"
#include "libst/os/unique_fd.h"
#include "stp/node/node.h"

namespace stp::stpctl {

// A connection to one link of stpd. If the daemon cannot be reached, does not answer within the
// patience (Silence), or is of another version, the functions throw Failure.
class DaemonClient {
 public:
  explicit DaemonClient(std::string socket,
                        std::chrono::milliseconds patience = std::chrono::seconds(10));

  // Sends a request to a shard of the link and waits for the reply. Returns its result: 0 or a
  // negative errno, and then `reply` stays as it is.
  template <ipc::Asked R>
  int ask(const R& request, typename R::Reply& reply, unsigned shard = 0,
          std::span<const int> fds = {}) {
    ipc::ReplyMessage answer;
    const auto result = exchange(ipc::RequestMessage(request, shard), answer, fds);
    if (result == 0) reply = answer.as<R>();
    return result;
  }

  [[nodiscard]] const std::string& socket() const { return path_; }

 private:
  int exchange(const ipc::RequestMessage& request, ipc::ReplyMessage& reply,
               std::span<const int> fds);
  // Throws Silence. After a signal it waits a tenth of the patience: nobody who has pressed Ctrl-C
  // waits for a daemon that is stopped.
  void await_answer() const;
  [[nodiscard]] std::string silence(bool was_interrupted = false) const;

  std::string path_;
  std::chrono::milliseconds patience_;
  os::UniqueFd socket_;
};

// Reads the state of a link from its daemon. Lists are read entry by entry while the daemon works,
// so entries are from slightly different times. The functions throw Failure.

// Totals of one shard. Those of a link are the sums over its shards.
struct ShardTotals {
  unsigned connections = 0, regions = 0;
};

struct LinkReport {
  std::string socket, name, device, driver, mac;
  std::optional<std::string> address;
  unsigned mtu = 0, max_stu = 0;
  bool up = false;
  std::string state;  // port::LinkState in words
  unsigned clients = 0, connections = 0, regions = 0;
  bool administrator = false;          // this user may see objects of other users
  std::string trouble;                 // and the remedy; "": none
  std::string steering;                // what brings frames to the shards; "": there is one
  std::vector<ShardTotals> shards{1};  // several: the link has queues=
  [[nodiscard]] bool is_divided() const { return shards.size() > 1; }
};

struct Owner {
  unsigned pid = 0, uid = 0;
};

struct Connection {
  Owner owner;
  VcState state = VcState::kOpen;
  int error = 0;
  bool passive = false, connectionless = false;
  // By this side's program, or by the peer. nullopt: not known yet, or there is nothing to accept.
  std::optional<bool> accepted;
  std::optional<bool> yields;  // congestion is controlled on its way; nullopt: not known
  unsigned shard = 1;          // from 1 on
  unsigned uport = 0, local_port = 0, peer_port = 0;
  std::string peer;  // 10.0.0.5/8181, or what peer_mac is
  std::string peer_mac;
  std::optional<unsigned> max_stu;  // exponent: the smaller of both sides'
  unsigned slots = 0, credit = 0;
  std::optional<Time> round_trip;  // nullopt: not measured yet
  VcTraffic traffic;
};

// In us. "-": not measured yet.
inline std::string round_trip_text(const Connection& c) {
  return c.round_trip ? std::to_string(*c.round_trip / kMicrosecond) : "-";
}

struct Region {
  Owner owner;
  std::uint64_t id = 0, bytes = 0;
  Direction direction = Direction::kTransmit;
  unsigned shard = 1;
  unsigned base = 0, count = 0, bufsize = 0, mx_count = 0;
  bool unmapping = false;
};

struct User {
  unsigned uid = 0;
  bool trusted = false;  // limited only by the totals
  struct Budget {
    std::string name;
    std::uint64_t used = 0;
    std::optional<std::uint64_t> most;  // nullopt: not limited
  };
  std::vector<Budget> budgets;
};

struct CounterValue {
  std::string name;
  std::uint64_t value = 0;              // of all shards
  std::vector<std::uint64_t> shards{};  // by shard; empty: it counts for the link as a whole
};

LinkReport read_link(DaemonClient& daemon);
// `link`: as read before from the same daemon.
std::vector<Connection> read_connections(DaemonClient& daemon, const LinkReport& link);
std::vector<Region> read_regions(DaemonClient& daemon, const LinkReport& link);
std::vector<User> read_users(DaemonClient& daemon, const LinkReport& link);
std::vector<CounterValue> read_counters(DaemonClient& daemon, const LinkReport& link);

}  // namespace stp::stpctl
