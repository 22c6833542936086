// SPDX-License-Identifier: BSD-3-Clause
// A simulated host: the loop that drives its Node, the ends of its connections with the programs
// that use them, and the lies of one that violates the protocol.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "dpdk_port/link/crossing.h"
#include "stp/channel/layout.h"
#include "stp/channel/rings.h"
#include "stp/node/node.h"
#include "tools/sim/memory.h"
#include "tools/sim/network.h"

namespace stp::sim {

class End;

// A user program at one end of a connection. Its End calls these functions.
class Application {
 public:
  virtual ~Application() = default;
  // The connection is established. `end` lives until gone().
  virtual void opened(End& end, const VcInfo& info, Time now) = 0;
  virtual void receive(const ReceivedEntry& entry, Time now) = 0;
  virtual void work(Time now) = 0;  // called after receive(), for all other work
  // Sends all requests, as far as there is room. Returns true if there were some.
  virtual bool send(UserChannel& to, Time now);
  // The next request, for a program that leaves sending to send(). False: there is none.
  virtual bool transmit(SendEntry&, Time) { return false; }
  [[nodiscard]] virtual Time next_deadline() const = 0;
  virtual void expire(Time now) = 0;
  [[nodiscard]] virtual bool wants_close() const = 0;
  // The connection has ended. `error`: 0 if this side closed it, else a negative errno. Only gone()
  // is called after it.
  virtual void ended(int error, Time now) = 0;
  virtual void gone() = 0;  // the Node has released the connection
  virtual void lost() = 0;  // the host went down: all memory of the program is lost
};

class Host;

// One end of a connection: the channel's memory, and the loop that runs the user program when the
// Node wakes it or its deadline has come.
class End {
 public:
  End(Host& host, std::uint64_t cookie, const ChannelGeometry& geometry)
      : host_(host), cookie_(cookie), channel_(geometry.size()) {}

  [[nodiscard]] std::byte* channel() const { return channel_.data(); }
  [[nodiscard]] VcId id() const { return id_; }
  [[nodiscard]] Host& host() const { return host_; }
  [[nodiscard]] Application* application() const { return application_; }
  [[nodiscard]] UserChannel& ring() { return user_; }
  [[nodiscard]] std::uint32_t taken() const { return user_.taken(); }
  [[nodiscard]] std::uint32_t cts_repeated() const { return user_.cts_repeated(); }
  [[nodiscard]] unsigned path_block() const { return user_.path_block(); }
  [[nodiscard]] std::uint32_t steps() const { return user_.steps(); }

  void attach(VcId id, Application& application);
  // The program looks at its connection after `delay`.
  void wake(Time delay);
  // Closes without waiting for queued operations.
  void abort();

 private:
  void run();
  bool end_if_over(Time now);
  void serve(Time now);
  void close(bool at_once, int error, Time now);

  Host& host_;
  std::uint64_t cookie_;
  Memory channel_;
  VcId id_ = kNoneId;
  UserChannel user_;
  Application* application_ = nullptr;
  bool opened_ = false, closed_ = false;
  Time next_run_ = kNever;
};

// A host that violates the protocol: changes fields of the frames that its Node sends, and sends
// old frames again.
class Liar {
 public:
  Liar(Rate lies, Dice dice) : lies_(lies), dice_(dice) {}

  // Whether it changed the frame.
  bool mutate(Frame& frame);
  // Remembers values of other hosts' frames, which make more plausible lies.
  void overhear(const Frame& frame);
  // Returns an old frame to send again, or an empty one.
  Frame replay();

 private:
  static constexpr std::size_t kKept = 32;
  void change_field(Frame& frame);
  void change_length(Frame& frame);
  static void repair_checksum(Frame& frame);
  [[nodiscard]] std::uint32_t invent(std::uint32_t truth);
  void keep(const Frame& frame);

  Rate lies_;
  Dice dice_;
  std::vector<Frame> kept_;
  std::vector<std::uint32_t> words_;
  std::size_t next_kept_ = 0, next_word_ = 0;
};

inline constexpr std::uint32_t kUport = 3000;  // of the first Node behind an address; then 3001...

struct HostConfig {
  NodeConfig node;
  EndpointConfig endpoint;
  Time reaction = 0;  // the longest time from a wake-up until the user program runs
  Rate lies = 0;
  std::size_t longest_out = ~std::size_t{0}, longest_in = ~std::size_t{0};  // as Faults::longest
  // The loop that drives the Node never reports that it is idle, as if it had other work.
  bool never_idle = false;
  // The loop shares its core: it is scheduled out `count` times, for shortest..longest, after it
  // has run for at most `every`.
  struct Pauses {
    unsigned count = 0;
    Time every = 0, shortest = 0, longest = 0;
  };
  Pauses pauses{};
};

// A Node, the loop that drives it, and the user programs with their memory. A Machine
// has one of them, or several behind one address.
class Host {
 public:
  // Called for an incoming connection. Returns the program that serves it.
  using Accept = std::function<Application&(Host&, End&, const VcInfo&)>;

  // Where it stands among the Nodes of its machine.
  struct Place {
    unsigned node = 0;
    bool one_queue = false;             // the link has one queue: the first Node sends for all
    std::function<void()> wake_others;  // they have frames, or room for more
  };

  Host(Run& run, const HostConfig& config, Place place, Accept accept);
  Host(const Host&) = delete;
  Host& operator=(const Host&) = delete;

  [[nodiscard]] Run& run() const { return run_; }
  [[nodiscard]] Node& node() { return *node_; }
  [[nodiscard]] const HostConfig& config() const { return config_; }
  [[nodiscard]] bool lies() const { return liar_.has_value(); }
  [[nodiscard]] bool up() const { return up_; }
  // How often the host was booted. Actions on the clock from an earlier life are ignored.
  [[nodiscard]] unsigned life() const { return life_; }
  [[nodiscard]] std::uint32_t uport() const { return kUport + place_.node; }
  // Frames that it gave to other Nodes of the machine.
  [[nodiscard]] std::uint64_t handed_over() const { return seat_ ? seat_->counters().given : 0; }

  void plug_in(Uplink& uplink);
  void receive(const Frame& frame);
  void poke();  // the Node has new work
  void go_down();
  // `crossing`: leads to the other Nodes of the machine; nullptr: there are none.
  void boot(const std::shared_ptr<port::Crossing>& crossing);
  // Called when all connections are gone. Releases everything else and checks that nothing is left.
  void retire();

  // Returns nullptr if the Node has no room. `out` holds what identifies the connection at the
  // peer.
  End* connect(const MacAddr& peer, std::uint32_t uport, Application& application, VcInfo& out);
  // Opens a connectionless endpoint for one program. It is closed with the program's End.
  void open_port(Application& application);
  [[nodiscard]] End* find(std::uint64_t cookie) const;

  // Maps memory at free Bufx entries. The memory is kept until the Node has released it.
  RegionId map(EndpointId endpoint, Direction direction, const std::shared_ptr<Memory>& memory,
               unsigned copies, std::uint32_t& bufx);
  void unmap(RegionId region);

 private:
  struct Mapping {
    std::shared_ptr<Memory> memory;
    Direction direction;
    std::uint32_t bufx, count;
  };
  void settle();
  void look_again();
  void plan_pause();
  void resume();
  void take(const Frame& frame);
  bool hand_over(const Frame& frame);
  void take_over();
  void drain_events();
  void handle(const Event& event);
  void accept_all();
  void close_unused_ports();
  void send();
  bool send_own();
  bool send_for_another();
  void give_to_first();
  Frame sent(Frame frame);
  void set_timer();
  std::uint64_t new_end();
  void stock();
  std::uint32_t free_bufx(Direction direction, std::uint32_t count) const;

  Run& run_;
  HostConfig config_;
  const Place place_;
  Accept accept_;
  Dice keys_, dice_;
  std::optional<Liar> liar_;
  std::optional<port::Seat> seat_;  // none: the machine has no other Node
  std::unique_ptr<Node> node_;
  Uplink* uplink_ = nullptr;
  bool others_turn_ = false;
  EndpointId listener_ = kNoneId;
  std::vector<EndpointId> ports_;  // connectionless endpoints
  bool up_ = false, settling_ = false, retiring_ = false;
  bool paused_ = false;
  unsigned pauses_left_ = 0;
  std::deque<Frame> unread_;  // frames that arrived during a pause
  unsigned life_ = 0;
  std::uint64_t received_ = 0;  // frames
  Time timer_ = kNever;
  Frame head_;
  std::uint64_t next_cookie_ = 1;
  std::map<std::uint64_t, std::unique_ptr<End>> ends_;
  std::size_t stocked_ = 0;
  std::map<RegionId, Mapping> mappings_;
};

}  // namespace stp::sim
