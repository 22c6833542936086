// SPDX-License-Identifier: BSD-3-Clause
// A UDP socket of a link: opened, with what the kernel offers for it, and what it has told of
// datagrams that did not arrive.
#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <memory>
#include <string>

#include "dpdk_port/link/internet_address.h"
#include "stp/types.h"

namespace stp::port {

// The longest datagrams, and headers before them, of IP and UDP.
inline constexpr std::size_t kLongestDatagram = 65'487;
inline constexpr unsigned kIpv4Headers = 20 + 8, kIpv6Headers = 40 + 8;

struct UdpErrors {
  std::uint64_t too_long = 0;  // datagrams that the interface does not carry
  std::uint64_t refused = 0;   // datagrams that the kernel did not send
  std::uint64_t reports = 0;   // errors that hosts and routers have reported (ICMP)
  std::uint64_t floods = 0;    // times that they came faster than they could be read
};

class UdpSocket {
 public:
  // How long a fault is told after it was last seen.
  static constexpr Time kTold = 10 * kSecond;
  // How long the kernel keeps reports to itself after a flood of them.
  static constexpr Time kMuted = kSecond;

  // nullptr: `error` names the fault and the remedy.
  static std::unique_ptr<UdpSocket> open(const LinkConfig& config, std::string& error);
  ~UdpSocket();
  UdpSocket(const UdpSocket&) = delete;
  UdpSocket& operator=(const UdpSocket&) = delete;

  [[nodiscard]] int fd() const { return fd_; }
  [[nodiscard]] int family() const { return family_; }
  // Ours. Bound to all addresses of the host: the one that its packets to elsewhere have, or none.
  [[nodiscard]] const InternetAddress& address() const { return address_; }
  [[nodiscard]] bool is_any() const { return any_; }           // bound to all addresses
  [[nodiscard]] unsigned longest() const { return longest_; }  // bytes of a datagram
  [[nodiscard]] bool segments() const { return segments_; }    // UDP_SEGMENT
  [[nodiscard]] bool joins() const { return joins_; }          // UDP_GRO
  [[nodiscard]] std::size_t receive_bytes() const { return receive_bytes_; }

  // The device or the kernel cannot do it after all.
  void stop_segmenting() { segments_ = false; }

  // A call on the socket has failed with `error`, after as many tries before. True: make it again,
  // because the error may be that of an earlier datagram, of which the kernel tells once, in place
  // of what any later call would have done. This reads such reports, and after some tries it mutes
  // them. False: the error is that of the call itself.
  // protocol: 13.8
  bool is_of_earlier(int error, int tries, Time now);
  // Reports are heard again when their time has come. Once per turn.
  void hear_again(Time now) {
    if (muted_until_ != kNever && now >= muted_until_) mute(false, kNever);
  }
  void count_too_long(std::size_t bytes, Time now);
  void count_refused(std::size_t datagrams, const InternetAddress& to, int error, Time now);

  [[nodiscard]] const UdpErrors& errors() const { return errors_; }
  // "" if none was seen lately. `too_long`: about datagrams that are too long for the way.
  [[nodiscard]] std::string trouble(Time now) const;
  [[nodiscard]] bool has_long_trouble(Time now) const { return is_told(long_, now); }

 private:
  struct Fault {
    std::string text;
    Time seen = kNever;
  };
  static bool is_told(const Fault& fault, Time now) {
    return fault.seen != kNever && now - fault.seen < kTold;
  }

  UdpSocket(int fd, int family) : fd_(fd), family_(family) {}
  void set_options();
  std::string bind(const LinkConfig& config, const InternetAddress& to, std::uint16_t port);
  std::string find_longest(const LinkConfig& config, const std::string& interface);
  void read_reports(Time now);
  void note_report(const msghdr& message, Time now);
  void mute(bool on, Time until);

  const int fd_;
  const int family_;
  InternetAddress address_;
  bool any_ = false;
  unsigned longest_ = 0;
  bool segments_ = false, joins_ = false;
  std::size_t receive_bytes_ = 0;
  Time muted_until_ = kNever;  // kNever: reports are heard
  UdpErrors errors_;
  Fault long_, other_;
};

}  // namespace stp::port
