// SPDX-License-Identifier: BSD-3-Clause
// The simulated network: cables with faults, a switch, and a path that others use, too.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "tools/sim/run.h"

namespace stp::sim {

struct Frame : std::vector<std::byte> {
  using std::vector<std::byte>::vector;
  bool may_be_marked = false, marked = false;  // by a router (ECN)
};

struct LinkConfig {
  std::uint64_t bits_per_second = 10'000'000'000;
  Time latency = kMicrosecond;
};

// The faults of a link and their rates.
struct Faults {
  Rate loss = 0;
  Rate burst = 0;  // frames that begin a burst of loss
  Time burst_length = 0;
  Rate duplicate = 0;
  Rate reorder = 0;  // frames that later ones overtake
  Time reorder_by = 0;
  Rate delay = 0;  // frames that are delayed together with those behind them
  Time delay_by = 0;
  Rate corrupt = 0;
  std::size_t longest = ~std::size_t{0};  // longer frames are lost

  // False if a frame, or its duplicate, may arrive after one that was sent later.
  [[nodiscard]] bool keeps_order() const { return reorder == 0 && duplicate == 0; }
};

// One direction of a cable: carries one frame at a time at its bit rate and delivers it after its
// latency, unless a fault occurs.
class Wire {
 public:
  using Deliver = std::function<void(Frame)>;
  Wire(Run& run, const LinkConfig& link, const Faults& faults, Deliver deliver)
      : run_(run),
        dice_(run.dice.fork()),
        link_(link),
        faults_(faults),
        deliver_(std::move(deliver)) {}
  Wire(const Wire&) = delete;
  Wire& operator=(const Wire&) = delete;

  [[nodiscard]] bool busy() const { return busy_; }
  // Carries a frame of `size` bytes. Call only while not busy. When the wire has read the whole
  // frame, it calls `content` for the bytes (empty: nothing was sent) and then `idle`.
  void send(std::size_t size, std::function<Frame()> content, std::function<void()> idle);
  void cut(bool is_cut) { cut_ = is_cut; }

  // Time that `size` bytes of frame need, with preamble, FCS and gap.
  [[nodiscard]] Time duration(std::size_t size) const;

 private:
  void launch(Frame frame);
  void fly(Frame frame, Time arrival);
  [[nodiscard]] bool lost(const Frame& frame);

  Run& run_;
  Dice dice_;
  LinkConfig link_;
  Faults faults_;
  Deliver deliver_;
  bool busy_ = false, cut_ = false;
  Time burst_until_ = 0, last_arrival_ = 0;
};

// The cable that takes a machine's frames away. The machine's Nodes use it in turn.
class Uplink {
 public:
  explicit Uplink(Wire& wire) : wire_(wire) {}

  // `free`: called when the user may try to send. Users are numbered from 0 on.
  void add_user(std::function<void()> free) { users_.push_back(std::move(free)); }
  [[nodiscard]] bool busy() const { return wire_.busy(); }
  // As Wire::send. Afterwards the users are called one by one, this one last.
  void send(std::size_t user, std::size_t size, std::function<Frame()> content) {
    wire_.send(size, std::move(content), [this, user] {
      for (std::size_t i = 1; i <= users_.size(); ++i) users_[(user + i) % users_.size()]();
    });
  }

 private:
  Wire& wire_;
  std::vector<std::function<void()>> users_;
};

// A switch: forwards by MAC address. Each port has a queue of limited size and drops the frames
// that do not fit.
class Switch {
 public:
  Switch(Run& run, std::size_t buffer) : run_(run), buffer_(buffer) {}

  // Connects a host: frames for `mac` leave on a new wire that ends in `deliver`.
  Wire& add_port(const MacAddr& mac, const LinkConfig& link, const Faults& faults,
                 Wire::Deliver deliver);
  void forward(Frame frame);

 private:
  struct Port {
    std::unique_ptr<Wire> wire;
    std::deque<Frame> queue;
    std::size_t bytes = 0;
  };
  void drain(Port& port);

  Run& run_;
  std::size_t buffer_;
  std::map<MacAddr, Port> ports_;
};

struct BottleneckConfig {
  std::uint64_t bits_per_second = 100'000'000;
  Time delay = 10 * kMillisecond;  // of the path, one way, without the queue
  std::size_t queue = 1 << 20;     // bytes; what finds no room is dropped
  // Drops early, by the time that packets have waited (RFC 8289). `marks`: marks those that may be,
  // instead (ECN).
  bool codel = false, marks = false;
  Rate loss = 0;  // packets of either direction that are lost by chance
};

// One direction of a path through a network that others use, too: a router with a rate, a queue and
// a delay. Everything that passes has the number of its flow, by which its share is counted.
class Bottleneck {
 public:
  Bottleneck(Run& run, const BottleneckConfig& config) : run_(run), config_(config) {}
  Bottleneck(const Bottleneck&) = delete;
  Bottleneck& operator=(const Bottleneck&) = delete;

  // `arrive` is called when the packet is at the end of the path, and whether it was marked on the
  // way; never if it is dropped.
  using Arrive = std::function<void(bool marked)>;
  void send(unsigned flow, std::size_t size, Arrive arrive, bool may_be_marked = false);

  // Whether chance loses the next packet, of this direction or of the other one.
  [[nodiscard]] bool loses() { return dice_.chance(config_.loss); }

  // Forgets what was counted until now.
  void begin_counting();
  // What has happened since. use: part of the rate that was used, 0..1. delay: mean time in the
  // queue.
  [[nodiscard]] double use() const;
  [[nodiscard]] Time queueing_delay() const { return packets_ == 0 ? 0 : waited_ / packets_; }
  [[nodiscard]] std::uint64_t drops() const { return drops_; }
  [[nodiscard]] std::uint64_t dropped_bytes() const { return dropped_bytes_; }
  [[nodiscard]] std::uint64_t marks() const { return marks_; }
  // Bytes that have passed.
  [[nodiscard]] std::uint64_t bytes_of(unsigned flow) const;
  [[nodiscard]] const BottleneckConfig& config() const { return config_; }

 private:
  struct Packet {
    unsigned flow;
    std::size_t size;
    Time entered;
    Arrive arrive;
    bool may_be_marked;
  };
  // State of CoDel.
  struct Codel {
    Time above_since = kNever;  // packets have waited for too long since then
    bool dropping = false;
    Time next = 0;       // drop
    unsigned count = 0;  // drops since `dropping`
  };
  void serve();
  bool codel_refuses(const Packet& packet);
  Packet take();

  Run& run_;
  const BottleneckConfig config_;
  Dice dice_{1};  // of its own, so that a loss changes nothing else
  std::deque<Packet> queue_;
  std::size_t bytes_ = 0;  // in the queue
  bool busy_ = false;
  Codel codel_;
  Time since_ = 0, waited_ = 0;
  std::uint64_t packets_ = 0, drops_ = 0, dropped_bytes_ = 0, marks_ = 0;
  std::map<unsigned, std::uint64_t> passed_;  // bytes by flow
};

// Jain's index of fairness: 1 if all are equal, 1/n if one has everything.
double fairness(const std::vector<std::uint64_t>& shares);

}  // namespace stp::sim
