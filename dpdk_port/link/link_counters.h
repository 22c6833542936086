// SPDX-License-Identifier: BSD-3-Clause
// What links and stpd count: structs made of the groups of the table of counters (stp/counters.h),
// and how a Port reports them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "stp/counters.h"

namespace stp::port {

// A counter of the link or of stpd, in addition to the Node's.
struct PortCounter {
  std::string name;  // "link_rx_missed", "arp_requests_sent", ...
  std::uint64_t value;
};

#define STP_MEMBER(member, name, unit, text) std::uint64_t member = 0;
#define STP_REPORT(member, name, unit, text) to.push_back({#name, from.member});

struct ReceiveCounters {
  STP_RECEIVE_COUNTERS(STP_MEMBER)
  std::uint64_t wrong_queue = 0;  // though the link steers
};
struct SendCounters {
  STP_SEND_COUNTERS(STP_MEMBER)
};
struct TransmitCounters : SendCounters {
  std::uint64_t no_buffer = 0;
};
struct SeatCounters {
  STP_SEAT_COUNTERS(STP_MEMBER)
};
struct UdpReceiveCounters {
  STP_UDP_RECEIVE_COUNTERS(STP_MEMBER)
  std::uint64_t wrong_queue = 0;  // though the kernel picks the socket
};
struct UdpSendCounters : SendCounters {
  STP_UDP_SEND_COUNTERS(STP_MEMBER)
};
struct UdpErrors {
  STP_UDP_ERRORS(STP_MEMBER)
};
struct ArpCounters {
  STP_ARP_COUNTERS(STP_MEMBER)
};

// Reports a group. Counters that stand alone are not in it.
template <typename Statistics>
void add_device_counters(std::vector<PortCounter>& to, const Statistics& from) {
  STP_DEVICE_COUNTERS(STP_REPORT)
}
inline void add(std::vector<PortCounter>& to, const ReceiveCounters& from) {
  STP_RECEIVE_COUNTERS(STP_REPORT)
}
inline void add(std::vector<PortCounter>& to, const SendCounters& from) {
  STP_SEND_COUNTERS(STP_REPORT)
}
inline void add(std::vector<PortCounter>& to, const SeatCounters& from) {
  STP_SEAT_COUNTERS(STP_REPORT)
}
inline void add(std::vector<PortCounter>& to, const UdpReceiveCounters& from) {
  STP_UDP_RECEIVE_COUNTERS(STP_REPORT)
}
inline void add(std::vector<PortCounter>& to, const UdpSendCounters& from) {
  STP_UDP_SEND_COUNTERS(STP_REPORT)
  STP_SEND_COUNTERS(STP_REPORT)
}
inline void add(std::vector<PortCounter>& to, const UdpErrors& from) {
  STP_UDP_ERRORS(STP_REPORT)
}
inline void add(std::vector<PortCounter>& to, const ArpCounters& from) {
  STP_ARP_COUNTERS(STP_REPORT)
}
template <typename Counts>
void add_server_counters(std::vector<PortCounter>& to, const Counts& from) {
  STP_SERVER_COUNTERS(STP_REPORT)
}

#undef STP_REPORT
#undef STP_MEMBER

}  // namespace stp::port
