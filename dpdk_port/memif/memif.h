// SPDX-License-Identifier: BSD-3-Clause
// One side of a memif: shared memory to one other process. One thread, the owner, looks after it.
// Other threads may use rings of their own between enter() and leave(), so that no memory goes
// while one looks at it. The peer is not trusted: what it says and writes is checked, and whoever
// breaks the rules is disconnected.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "dpdk_port/link/crossing.h"
#include "dpdk_port/memif/control_socket.h"
#include "dpdk_port/memif/handshake.h"
#include "dpdk_port/memif/waking.h"
#include "stp/base/mutex.h"
#include "stp/types.h"

namespace stp::port::memif {

// The socket of the memif servers of this process that share one path, each with an id of its own.
// It hears from each client which of them it wants. May be used by several threads.
class Listener {
 public:
  // That of the path; it is made where this process has none. nullptr: `error` says why.
  static std::shared_ptr<Listener> at(const std::string& path, std::string& error);
  ~Listener();
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  // `shards`: those of the link with that id. False: another link of this process serves that id.
  bool serve(std::uint32_t id, unsigned shards);
  void stop(std::uint32_t id);
  // A client that wants this id; empty: none. Also hears the others.
  ControlSocket take(std::uint32_t id, Time now);
  [[nodiscard]] const std::shared_ptr<Closer>& closer() const { return closer_; }

 private:
  // Clients that have not said what they want yet: so many, and each for so long.
  static constexpr std::size_t kNewcomers = 8;
  static constexpr Time kPatience = 2 * kSecond;
  struct Served {
    unsigned shards = 1;
    ControlSocket wanted;  // a client; empty: none
  };
  struct Newcomer {
    ControlSocket socket;
    Time since = 0;
  };

  Listener(std::string path, FileDescriptor socket);
  void accept(Time now) STP_REQUIRES(mutex_);
  // False: it is a newcomer no more.
  bool hear(Newcomer& newcomer, Time now) STP_REQUIRES(mutex_);

  const std::string path_;
  const std::shared_ptr<Closer> closer_ = std::make_shared<Closer>();
  ControlSocket socket_;
  struct stat file_ {};  // which file of that path is its own
  Mutex mutex_{LockRank::kListener};
  std::vector<Newcomer> newcomers_ STP_GUARDED_BY(mutex_);
  std::map<std::uint32_t, Served> served_ STP_GUARDED_BY(mutex_);  // by id
};

class Memif {
 public:
  // nullptr: `error` says why. A client whose server is not there is made, and looks for it.
  static std::unique_ptr<Memif> open(const Settings& settings, std::string& error);
  ~Memif();
  Memif(const Memif&) = delete;
  Memif& operator=(const Memif&) = delete;

  // Looks after the connection. Often; it does something once in a while. Only the owner calls
  // this, and what follows up to broken().
  void tend(Time now) {
    if (now >= look_at_) look(now);
  }
  // Where it is not: why, as far as is known.
  [[nodiscard]] const std::string& obstacle() const { return obstacle_; }
  // How often a client has looked for its server after the first time.
  [[nodiscard]] std::uint64_t sought() const { return sought_; }
  // Peers that were disconnected because they broke the rules.
  [[nodiscard]] std::uint64_t broken() const { return broken_; }

  // Descriptors and memory of peers that are still being closed.
  [[nodiscard]] std::size_t closing() const { return closer_->waiting(); }

  // Wakes the peer, and is woken by it, where there is one ring each way.
  [[nodiscard]] Waking& waking() { return waking_; }

  // Open while it is connected. The users are the other threads.
  [[nodiscard]] Gate& gate() { return gate_; }
  [[nodiscard]] bool connected() const { return gate_.is_open(); }
  // Where it is connected: the rings to fill and to empty.
  [[nodiscard]] std::vector<Sender>& senders() { return peer_->senders(); }
  [[nodiscard]] std::vector<Receiver>& receivers() { return peer_->receivers(); }

  static constexpr Time kLook = kMillisecond, kLookAtHandshake = 100 * kMicrosecond;
  static constexpr Time kSeek = 100 * kMillisecond, kPatience = 5 * kSecond;

 private:
  explicit Memif(const Settings& settings) : settings_(settings) {}
  void look(Time now);
  void begin(Time now);
  void go_on(Time now);
  void drop(Time now);
  void refuse_others(Time now);

  const Settings settings_;
  std::shared_ptr<Listener> listener_;
  std::shared_ptr<Closer> closer_;  // a server's is that of its listener
  std::unique_ptr<Handshake> peer_;
  std::weak_ptr<MemoryWork> work_;  // of an earlier peer, whose thread still waits
  Waking waking_;
  Gate gate_;
  bool modest_ = false;  // a client: ask for few rings
  std::string obstacle_;
  Time look_at_ = 0, begin_at_ = 0, refuse_at_ = 0, began_at_ = 0;
  std::uint64_t sought_ = 0, broken_ = 0;
  bool looked_ = false;
};

}  // namespace stp::port::memif
