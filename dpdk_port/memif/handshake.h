// SPDX-License-Identifier: BSD-3-Clause
// How two sides agree on their memory and their rings, and what they then have. One of these for
// each connection of the control socket.
//
// The client makes the rings, so it has to know how many there should be: as many each way as the
// shards of the two sides multiplied, so that each shard has a ring to each of the other side's
// (link/crossing.h says which). A server of this implementation, whose hello has the name "stp",
// permits kMost times as many rings as it has shards: so the client knows that number, or a greater
// one if the server has several links. Of another server it does not, and makes as many rings as it
// has shards itself. If a server ends that, the client is modest when it asks again: of this
// implementation it then wants as many rings as it has shards, of another one ring each way. A
// server takes what its client makes.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "dpdk_port/memif/closer.h"
#include "dpdk_port/memif/control_socket.h"
#include "dpdk_port/memif/ring.h"
#include "dpdk_port/memif/waking.h"
#include "stp/node/shards.h"

namespace stp::port::memif {

// Work on memory files that a peer shares, each in a thread of its own: the kernel makes whoever
// maps or seals a file wait for others who work on it, and a peer can do that for as long as it
// likes (as by taking pages out of a file that it has mapped very often).
//
// When both sides have mapped a file, it is sealed (Linux 5.1): then nobody can take a page of it
// away, so that this side never waits when it uses the memory.
class MemoryWork {
 public:
  // Maps memory of the peer, and seals it. nullptr: there is no thread for it.
  static std::shared_ptr<MemoryWork> map(SharedDescriptor file, std::uint64_t size);
  // Seals this side's memory, which the peer has mapped. It uses a copy of the descriptor.
  static std::shared_ptr<MemoryWork> seal(const SharedDescriptor& file);

  // The members below are final. Whoever does not want to wait for that lets go of this object: the
  // thread has it until it ends.
  [[nodiscard]] bool done() const { return done_.load(std::memory_order_acquire); }
  Region region;
  std::string error;  // why there is none

  // Only begin() makes one.
  explicit MemoryWork(SharedDescriptor file) : file_(std::move(file)) {}

 private:
  template <typename Work>
  static std::shared_ptr<MemoryWork> begin(SharedDescriptor file, Work work);
  SharedDescriptor file_;
  std::atomic<bool> done_{false};
};

// The most rings each way of a server with so many shards.
constexpr unsigned most_rings(unsigned shards) {
  return shards * Shards::kMost;
}

struct Settings {
  std::string socket;
  bool serves = false;  // makes the socket
  std::uint32_t id = 0;
  unsigned log2_ring = 10;  // the client's choice, as is the next. Less where rings are many
  std::uint32_t buffer = 2048;
  unsigned shards = 1;  // of this side: 1 to Shards::kMost
};

class Handshake {
 public:
  enum class Progress { kWaits, kConnected, kEnded };
  static constexpr std::size_t kMostRegions = 16;

  // The client's, on a socket that has just been connected. `modest`: see above.
  static std::unique_ptr<Handshake> ask(ControlSocket socket, const Settings& settings,
                                        bool modest = false);
  // The server's, with a client that has said which interface it wants.
  static std::unique_ptr<Handshake> answer(ControlSocket socket, const Settings& settings);

  // Deals with what the peer has said. After kConnected: with its end.
  Progress go_on();
  // Why it ended.
  [[nodiscard]] const std::string& reason() const { return reason_; }
  // This side ends it, and says why.
  void end(const std::string& reason);
  // Memory of the peer that is being mapped or sealed; expires when that has been done.
  [[nodiscard]] std::weak_ptr<MemoryWork> work() const { return work_; }

  // After kConnected: the rings to fill and to empty, at least one of each.
  [[nodiscard]] std::vector<Sender>& senders() { return senders_; }
  [[nodiscard]] std::vector<Receiver>& receivers() { return receivers_; }
  [[nodiscard]] bool broken() const;
  // The same: how this side, or the peer, is woken. None where there are several rings.
  [[nodiscard]] SleepSign sleep_sign(bool of_peer) const;

  Handshake(ControlSocket socket, const Settings& settings)
      : socket_(std::move(socket)), settings_(settings) {}

 private:
  enum Which : std::size_t { kClientRings, kServerRings, kWays };

  void hear();
  bool end_work();
  bool obey(const Message& message, SharedDescriptor attached);
  bool fail(const std::string& reason);
  // The client's part.
  bool greet(const Hello& hello);
  void choose_rings(const Hello& hello);
  [[nodiscard]] std::size_t ring_room() const;
  [[nodiscard]] std::size_t memory_of(Which way) const;
  void shorten_rings();
  bool make_memory(std::string& error);
  bool send_next();
  int next_message(Message& message) const;
  // The server's part.
  bool add_region(const AddRegion& said, SharedDescriptor file);
  bool add_ring(const AddRing& said, SharedDescriptor bell);
  bool connect();

  ControlSocket socket_;
  Settings settings_;
  bool modest_ = false;
  bool connected_ = false;
  std::string reason_;
  std::shared_ptr<MemoryWork> work_;  // under way: no message is read until it has been done
  // The client's messages: init, region, a ring each, connect.
  static constexpr std::size_t kBeforeRings = 2;
  std::size_t sent_ = 0;
  std::array<unsigned, kWays> wanted_{1, 1};  // the client's rings
  [[nodiscard]] std::size_t messages() const {
    return kBeforeRings + wanted_[kClientRings] + wanted_[kServerRings] + 1;
  }
  SharedDescriptor file_;
  // Of each way, those of the first ring: they wake who empties it.
  std::array<SharedDescriptor, kWays> bells_;
  Regions regions_;
  std::array<std::vector<Ring>, kWays> rings_;
  std::vector<Sender> senders_;
  std::vector<Receiver> receivers_;
};

}  // namespace stp::port::memif
