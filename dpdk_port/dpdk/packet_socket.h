// SPDX-License-Identifier: BSD-3-Clause
// A packet socket bound to a Linux interface, for `iface:` links, with two rings of frames shared
// with the kernel. The rings are the kernel's memory and do not count as locked memory.
#pragma once

#include <rte_mbuf.h>

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>

#include "dpdk_port/link/interface_watch.h"
#include "dpdk_port/link/owners.h"
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

}  // namespace stp::port
