// SPDX-License-Identifier: BSD-3-Clause
// The device of a link: a packet socket for `iface:`, shared memory for `memif:`, else an ethdev.
// Finds or makes the ethdev, configures it by its capabilities, starts it, and finally stops and
// closes it. One thread owns it, that of the first shard. The others use their DeviceShare only.
#pragma once

#include <rte_dev.h>
#include <rte_ethdev.h>
#include <rte_flow.h>
#include <rte_mbuf.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <future>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "dpdk_port/dpdk/device_share.h"
#include "dpdk_port/link/crossing.h"
#include "dpdk_port/link/device_plan.h"
#include "dpdk_port/link/interfaces.h"
#include "dpdk_port/link/owners.h"
#include "dpdk_port/memif/memif.h"
#include "stp/types.h"

struct tpacket2_hdr;

namespace stp::port {

struct PacketCounters {
  std::uint64_t received = 0, sent = 0;
  std::uint64_t missed = 0;     // frames lost because the receive ring was full
  std::uint64_t too_long = 0;   // received frames that fit no slot or no mbuf
  std::uint64_t no_buffer = 0;  // turns without a free mbuf
  std::uint64_t refused = 0;    // frames that the kernel refused to send
};

// A packet socket bound to a Linux interface, for `iface:` links, with two rings of frames shared
// with the kernel. The rings are the kernel's memory and do not count as locked memory.
class PacketSocket {
 public:
  struct Config {
    std::string interface;
    std::size_t room = 0;  // of the longest frame
    MacAddr mac;           // receives frames for this address, whatever the interface's own is
    bool qdisc = false;    // frames pass the queueing discipline, where tc and tcpdump are
  };
  // nullptr: `error` says what failed, and the remedy if there is one.
  static std::unique_ptr<PacketSocket> open(const Config& config, std::string& error);
  ~PacketSocket();
  PacketSocket(const PacketSocket&) = delete;
  PacketSocket& operator=(const PacketSocket&) = delete;

  // Like rte_eth_tx_burst and rte_eth_rx_burst.
  std::uint16_t send(rte_mbuf** mbufs, std::uint16_t count);
  std::uint16_t receive(rte_mempool* pool, rte_mbuf** mbufs, std::uint16_t count);

  // Handles frames that the kernel has not taken, and an interface that goes down or comes back.
  // Call often; it acts once per kLook.
  void tend(Time now) {
    if (now >= look_at_) look(now);
  }

  [[nodiscard]] int fd() const { return fd_; }
  // The frames that the receive ring holds.
  [[nodiscard]] std::size_t capacity() const { return rx_slots_; }
  [[nodiscard]] const PacketCounters& counters();
  // The interface is present and up, as far as is known.
  [[nodiscard]] bool runs() const { return !down_; }
  [[nodiscard]] const InterfaceWatch& interface() const { return watch_; }
  // Why an interface that is up is not in use; "": it is not up.
  [[nodiscard]] const std::string& obstacle() const { return obstacle_; }
  // The interface came back with another MAC address than before: peers that ask for it will find
  // the new one.
  [[nodiscard]] bool address_changed() const { return address_changed_; }
  // Length of the shortest frame that the kernel refuses and has not sent since; 0: none.
  [[nodiscard]] std::size_t refused_length() const { return refused_length_; }

  static constexpr Time kLook = kMillisecond;
  // How long the kernel may refuse a frame before it is dropped together with all frames at least
  // as long. A busy device takes it sooner.
  static constexpr Time kRefused = 10 * kMillisecond;
  // While shorter frames pass, longer ones are tried again after kFirstProbe, with back-off
  // doubling up to kLastProbe.
  static constexpr Time kFirstProbe = 100 * kMillisecond, kLastProbe = kSecond;
  // Interval of attempts to use an interface that is up again.
  static constexpr Time kSeek = 100 * kMillisecond;
  static constexpr Time kTendOwner = 100 * kMillisecond;

 private:
  explicit PacketSocket(const Config& config) : config_(config), watch_(config.interface) {}
  bool make_rings(std::string& error);
  [[nodiscard]] bool set_filter() const;
  bool bind_to_interface(std::string& error);

  void look(Time now);
  void look_at_interface(Time now);
  void seek();
  void go_down();
  [[nodiscard]] bool has_carrier() const;
  void kick();
  void look_at_refused(Time now);
  bool skip(std::size_t first);
  void forget_refusal();
  bool admit(std::size_t length);
  [[nodiscard]] std::size_t first_waiting() const;
  [[nodiscard]] std::size_t next_tx(std::size_t slot) const {
    return slot + 1 == tx_slots_ ? 0 : slot + 1;
  }
  [[nodiscard]] tpacket2_hdr* rx(std::size_t slot) const;
  [[nodiscard]] tpacket2_hdr* tx(std::size_t slot) const;

  static constexpr std::size_t kNone = std::numeric_limits<std::size_t>::max();

  const Config config_;
  InterfaceWatch watch_;
  int fd_ = -1;
  std::byte* rings_ = nullptr;
  std::size_t slot_size_ = 0, rx_slots_ = 0, tx_slots_ = 0;
  std::size_t rx_at_ = 0, tx_at_ = 0;

  std::unique_ptr<InterfaceOwner> owner_;
  int index_ = 0;  // of the interface in use
  std::string obstacle_;
  bool down_ = false, address_changed_ = false;
  std::optional<MacAddr> own_;               // the interface's first address
  bool waiting_ = false, refusing_ = false;  // frames remain in the ring; the kernel refused one
  Time look_at_ = 0, seek_at_ = 0, tend_owner_at_ = 0;
  std::size_t stuck_ = kNone;  // the frame that blocks the others, and since when
  Time stuck_since_ = 0;
  std::size_t watched_ = 0;    // frames of at least this length are watched
  std::size_t limit_ = kNone;  // frames of at least this length are not put into the ring
  std::size_t refused_length_ = 0;
  bool probed_ = false;  // a frame of that length was tried again
  Time probe_at_ = kNever, probe_pause_ = kFirstProbe;
  PacketCounters counters_;
};

struct MemifCounters {
  std::uint64_t received = 0, sent = 0;
  std::uint64_t too_long = 0;   // received frames that fit no mbuf
  std::uint64_t no_buffer = 0;  // turns without free mbufs
};

// A memif that takes and gives mbufs, as an ethdev does.
class MemifLink {
 public:
  // `settings.shards`: each has its counters and, by link/crossing.h, its rings.
  static std::unique_ptr<MemifLink> open(const memif::Settings& settings, std::string& error);

  // As rte_eth_tx_burst and rte_eth_rx_burst: nothing where nobody is connected. But all frames are
  // copied, so the mbufs of those that are sent stay with the caller, who also provides those that
  // are received into.
  std::uint16_t send(unsigned shard, rte_mbuf** mbufs, std::uint16_t count);
  // With `rests`: an mbuf may have only the head of a long frame, and the place of the same number
  // in `rests` says where the other bytes are. They stay there until release().
  std::uint16_t receive(unsigned shard, rte_mbuf** mbufs, Bytes* rests, std::uint16_t count);
  void release(unsigned shard);
  void tend(Time now) { memif_->tend(now); }
  [[nodiscard]] bool connected() const { return memif_->connected(); }
  // Where it is connected: the rings that the shard fills.
  [[nodiscard]] QueuesToSend rings_of(unsigned shard) {
    return queues_to_send(static_cast<unsigned>(memif_->senders().size()), parts_[shard].of);
  }

  [[nodiscard]] memif::Memif& memif() { return *memif_; }
  [[nodiscard]] const MemifCounters& counters(unsigned shard) const {
    return parts_[shard].counters;
  }
  // There were no mbufs to receive into.
  void count_no_buffer(unsigned shard) { ++parts_[shard].counters.no_buffer; }

 private:
  // What one shard's thread writes.
  struct alignas(kCacheLine) Part {
    PortShare of;
    unsigned next = 0;  // the ring to look at first
    MemifCounters counters;
  };
  MemifLink(std::unique_ptr<memif::Memif> memif, unsigned shards);
  static unsigned take(Part& part, memif::Receiver& receiver, rte_mbuf** mbufs, Bytes* rests,
                       unsigned count);

  std::unique_ptr<memif::Memif> memif_;
  std::vector<Part> parts_;
};

class Device {
 public:
  static std::unique_ptr<Device> open(const DeviceSpec& spec, std::string& error);
  ~Device();
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  // Of a shard: 0 to spec().shards - 1.
  [[nodiscard]] DeviceShare& share(unsigned shard) { return *shares_[shard]; }
  // Regular maintenance, with or without traffic. Call often.
  void tend(Time now) {
    if (memif_) return tend_memif(now);
    if (socket_) return socket_->tend(now);
    if (now >= look_at_ || news_.load(std::memory_order_relaxed) != 0) look(now);
  }
  // Of a memif: of that shard. Else of the device, for shard 0; others have none of their own.
  [[nodiscard]] rte_eth_stats statistics(unsigned shard) const;
  // Frames that the kernel refused to send.
  [[nodiscard]] std::uint64_t refused() const { return socket_ ? socket_->counters().refused : 0; }
  // As in Port. Values that are slow to read are those of the last tend().
  [[nodiscard]] LinkState state() const {
    if (memif_) return memif_->connected() ? LinkState::kUp : LinkState::kNoPeer;
    if (socket_) return state_of_socket();
    return spec_.bus == "pci" ? state_ : find_state();
  }
  [[nodiscard]] std::string trouble() const;
  // What brings frames to the shards, and why; "": there is one shard.
  [[nodiscard]] std::string steering();
  // A frame should arrive at the shard of its Port, as far as is known. Any shard may ask.
  [[nodiscard]] bool steers() const { return steers_.load(std::memory_order_relaxed); }
  // The speed of the line in Mbit/s; 0: not known.
  [[nodiscard]] unsigned megabits() const {
    return interface() != nullptr ? interface()->facts().megabits : megabits_;
  }
  // The watch of its kernel interface; nullptr: it has none.
  [[nodiscard]] const InterfaceWatch* interface() const {
    return socket_ ? &socket_->interface() : watch_.get();
  }

  // A number for names, unique among the devices of this process.
  [[nodiscard]] std::string number() const;
  [[nodiscard]] const DeviceSpec& spec() const { return spec_; }
  [[nodiscard]] const MacAddr& mac() const { return mac_; }
  [[nodiscard]] unsigned mtu() const { return mtu_; }
  [[nodiscard]] std::size_t receive_queue() const { return receive_queue_; }  // as in PortInfo
  [[nodiscard]] std::string driver() const { return driver_; }
  [[nodiscard]] bool chains() const { return chains_; }  // sends frames of several mbufs
  // When the transmit call of the driver returns, it has copied the frame or passed it to the
  // kernel. It keeps none of our mbufs between calls.
  [[nodiscard]] bool copies() const { return copies_; }
  // The hardware was removed: do not touch its queues.
  [[nodiscard]] bool is_gone() const { return gone_.load(std::memory_order_relaxed); }
  // The device is present and started: its queues may be used.
  [[nodiscard]] bool runs() const { return started_.load(std::memory_order_relaxed) && !is_gone(); }
  // The number of times that a memif client looked for its server.
  [[nodiscard]] std::uint64_t sought() const { return memif_ ? memif_->memif().sought() : 0; }
  // Readable while frames wait to be received; -1: the driver has none.
  [[nodiscard]] int wake_fd() const { return wake_fd_; }
  // The waking of a memif by its peer; nullptr: it is something else.
  [[nodiscard]] memif::Waking* waking() { return memif_ ? &memif_->memif().waking() : nullptr; }
  // From now on the peer of a memif wakes this thread. False: frames wait.
  bool prepare_to_sleep();
  // Of the shards that do not own it: open while they may use it.
  [[nodiscard]] Gate& gate() { return memif_ ? memif_->memif().gate() : gate_; }
  // As far as is known, inside the gate.
  [[nodiscard]] QueuesToSend queues_to_send(const PortShare& of) {
    return memif_ ? memif_->rings_of(of.index) : queues_of_ethdev(of);
  }

 private:
  friend class DeviceShare;  // uses the queues of whichever device there is

  // One shard sends on the first queue, which every peer has.
  [[nodiscard]] QueuesToSend queues_of_ethdev(const PortShare& of) const {
    return of.count == 1 ? QueuesToSend{0, 1} : port::queues_to_send(send_queues_, of);
  }

  explicit Device(const DeviceSpec& spec);
  bool open_ethdev(std::string& error);
  bool open_socket(std::string& error);
  bool open_memif(std::string& error);
  void tend_memif(Time now) {
    memif_->tend(now);
    if (spec_.shards > 1 && memif_is_steered() != steers())
      steers_.store(!steers(), std::memory_order_relaxed);
  }
  [[nodiscard]] bool memif_is_steered() {
    return memif_->connected() && memif_->memif().receivers().size() >= spec_.shards;
  }
  bool make_pool(DeviceShare& share, unsigned mbufs, std::size_t room, std::string& error);
  bool make_pools(std::string& error);
  bool claim_nic(std::string& error);
  bool probe(std::string& error);
  bool configure(std::string& error);
  // Queues.
  [[nodiscard]] DevicePlan plan(const rte_eth_dev_info& info) const;
  bool configure_queues(const rte_eth_dev_info& info, rte_eth_conf& conf, std::string& error);
  bool set_up_queues(const rte_eth_dev_info& info, std::string& error);
  void steer();
  bool own_port(std::string& error);
  bool take_mtu(std::string& error);
  bool take_mac(std::string& error);
  bool start(std::string& error);
  bool let_vlan_through(std::string& error);
  void find_wake_fd();
  void shut();
  void close();

  // State.
  [[nodiscard]] LinkState state_of_socket() const;
  [[nodiscard]] LinkState find_state() const;
  [[nodiscard]] unsigned find_speed() const;
  [[nodiscard]] std::string trouble_of_mtu() const;
  [[nodiscard]] std::string trouble_of_peer() const;
  [[nodiscard]] std::string steering_of_memif();
  void look(Time now);
  void watch_events();
  void unwatch_events();
  void let_go();
  bool has_let_go();
  void reset();
  bool come_back();
  static int on_event(std::uint16_t port, rte_eth_event_type event, void* device, void* result);
  static void on_removal(const char* name, rte_dev_event_type event, void* device);

  DeviceSpec spec_;
  std::uint16_t port_ = RTE_MAX_ETHPORTS;
  std::string driver_;
  MacAddr mac_;
  int wake_fd_ = -1;
  unsigned mtu_ = 0;
  std::size_t receive_queue_ = 0;
  bool chains_ = false, copies_ = false;
  bool filters_vlans_ = false;
  bool probed_ = false, promiscuous_ = false;
  // Bits set by the interrupt thread and not yet handled by the polling thread.
  enum News : unsigned { kLinkChanged = 1, kRemoved = 2, kNeedsReset = 4 };
  std::atomic<unsigned> news_{0};
  LinkState state_ = LinkState::kUnknown;
  unsigned megabits_ = 0;  // of a NIC
  Time look_at_ = 0, return_at_ = 0;
  std::atomic<bool> started_{false}, gone_{false};
  std::future<void> closing_;                      // of a NIC that has been removed
  std::unique_ptr<PciOwner> owner_;                // of a NIC under uio
  unsigned receive_queues_ = 1, send_queues_ = 0;  // of an ethdev, or the socket
  Steering steering_ = Steering::kNothing;
  std::string not_steered_;                              // why there are no rules, or fewer queues
  alignas(kCacheLine) std::atomic<bool> steers_{false};  // rarely written
  Gate gate_;
  std::vector<std::unique_ptr<DeviceShare>> shares_;  // each outlives the queues below
  std::unique_ptr<PacketSocket> socket_;
  std::unique_ptr<MemifLink> memif_;
  std::unique_ptr<InterfaceWatch> watch_;  // of an interface without a socket (af_xdp)
};

// DPDK's calls, for one device. Tests have others.
struct FlowCalls {
  std::function<int(const rte_flow_attr&, const rte_flow_item*, const rte_flow_action*,
                    rte_flow_error&)>
      validate;
  std::function<rte_flow*(const rte_flow_attr&, const rte_flow_item*, const rte_flow_action*,
                          rte_flow_error&)>
      create;
  std::function<void(rte_flow*)> destroy;
};
FlowCalls flow_calls_of(std::uint16_t dpdk_port);

// Asks a NIC to put each STP frame into the queue of the shard that its D_Port names, by rte_flow
// rules on the D_Port's last bits. So the number of queues has to be a power of two. Frames in SNAP
// form, and those that no rule matches, stay on the first queue.
// "": all rules are there. Else why they are not; then there is none.
std::string steer_by_port(const FlowCalls& calls, unsigned queues,
                          std::optional<std::uint16_t> vlan);

}  // namespace stp::port
