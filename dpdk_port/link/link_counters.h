// SPDX-License-Identifier: BSD-3-Clause
// The single list of all counters but the Node's: of links, and of stpd. `stpctl stats`, Prometheus
// and docs/operations.md use these names: operators rely on them. A row makes a member of the
// struct that its group is, the counter that a Port reports, the text that stpctl prints, and the
// type in Prometheus: counters only grow, levels fall as well.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

// X(member, name, "text")
// clang-format off
// Of a DPDK device: members of rte_eth_stats.
#define STP_DEVICE_COUNTERS(X)                                                                     \
  X(ipackets,      link_rx_packets,  "frames received, as the driver counts them")                 \
  X(opackets,      link_tx_packets,  "frames sent, as the driver counts them")                     \
  X(imissed,       link_rx_missed,   "frames that found no descriptor: nobody polled in time")     \
  X(ierrors,       link_rx_errors,   "damaged frames; memif: too long ones, and peers that broke the rules") \
  X(rx_nombuf,     link_rx_nombuf,   "frames that found no buffer")                                \
  X(oerrors,       link_tx_errors,   "frames that the driver could not send")

#define STP_RECEIVE_COUNTERS(X)                                                                    \
  X(chained,       rx_chained,       "frames received in several buffers and reassembled")         \
  X(oversize,      rx_oversize,      "reassembled frames dropped because they exceed the MTU")     \
  X(other_vlan,    rx_other_vlan,    "frames dropped because their VLAN is not that of the link")

#define STP_SEND_COUNTERS(X)                                                                       \
  X(kept,          tx_kept,          "frames that the driver had no room for, each turn that they wait") \
  X(dropped,       tx_dropped,       "frames given up: the link took none, or nobody has their address")

// Of one of several shards.
#define STP_SEAT_COUNTERS(X)                                                                       \
  X(given,         shard_given,      "frames handed to other shards")                              \
  X(taken,         shard_taken,      "frames that other shards handed over")                       \
  X(full,          shard_full,       "frames dropped: the ring to another shard was full, or they were too long") \
  X(waited,        shard_waited,     "turns in which nothing more was sent: the ring to a shard was full")

#define STP_UDP_RECEIVE_COUNTERS(X)                                                                \
  X(datagrams,     udp_rx_datagrams, "datagrams received")                                         \
  X(joined,        udp_rx_joined,    "datagrams that the kernel had joined with others")           \
  X(kept,          udp_rx_kept,      "messages that were kept a while after they had been read")      \
  X(no_station,    udp_rx_no_station, "datagrams dropped: no host can have the address they came from")

#define STP_UDP_SEND_COUNTERS(X)                                                                   \
  X(datagrams,     udp_tx_datagrams, "datagrams sent")                                             \
  X(calls,         udp_tx_calls,     "system calls that sent datagrams")                           \
  X(favored,       udp_tx_favored,   "datagrams sent by the socket of the station that gets most")  \
  X(doubted,       udp_tx_silent,    "datagrams dropped: too many waited for stations not heard lately") \
  X(unknown,       udp_tx_unknown,   "frames dropped: no address is known for their station")

#define STP_UDP_ERRORS(X)                                                                          \
  X(too_long,      udp_tx_too_long,  "datagrams longer than the interface carries")                \
  X(refused,       udp_tx_refused,   "datagrams that the kernel did not send: no route, or a firewall") \
  X(reports,       udp_reports,      "errors that hosts and routers reported (ICMP)")              \
  X(floods,        udp_report_floods, "times that they came faster than they could be read")       \
  X(failed,        udp_failed,       "calls that failed for a reason of the socket's own")

#define STP_ARP_COUNTERS(X)                                                                        \
  X(requests_sent, arp_requests_sent, "ARP requests sent")                                         \
  X(answers_sent,  arp_answers_sent, "ARP answers sent")                                           \
  X(learned,       arp_learned,      "addresses that came to be known")                            \
  X(ignored,       arp_ignored,      "ARP frames that were malformed or about others")             \
  X(probes_sent,   arp_probes_sent,  "ARP probes and announcements of the link's own address sent") \
  X(conflicts,     arp_conflicts,    "times another station was found to have the link's address") \
  X(dropped,       arp_dropped,      "ARP frames not sent: too many waited")

// Of stpd: members of Server::Counts.
#define STP_SERVER_COUNTERS(X)                                                                     \
  X(clients,       clients,          "programs that connected")                                    \
  X(refused,       clients_refused,  "programs turned away: too many were connected, or files open") \
  X(bad_messages,  clients_bad_messages, "programs disconnected for what no libst sends")          \
  X(slow_readers,  clients_slow_readers, "programs disconnected for not reading their replies")    \
  X(slow_sockets,  clients_slow_sockets, "programs disconnected because so many waited for their sockets") \
  X(stuck_descriptors, descriptors_stuck, "descriptors of programs that could not be closed for a second") \
  X(torn_memory,   clients_torn_memory, "programs disconnected for taking away memory in use")

// Those that stand alone: whoever counts them reports them by name.
#define STP_SINGLE_COUNTERS(X)                                                                     \
  X(_,             bells_silenced,   "times a program that rang for nothing was not listened to")  \
  X(_,             link_changes,     "times the link came into another state: see stpctl links")   \
  X(_,             link_sought,      "times a memif client looked for its server after the first") \
  X(_,             link_tx_refused,  "frames that the kernel did not send: too long, or the link went down") \
  X(_,             looped,           "frames to our own address, which never reach the link")      \
  X(_,             trace_dropped,    "frames that the trace of --pcap lacks: buffer or file was full")   \
  X(_,             trace_frames,     "frames written to the trace of --pcap")                      \
  X(_,             tx_no_buffer,     "turns in which no buffer was free for sending")              \
  X(_,             udp_displaced,    "addresses that gave way to others: the table was full")      \
  X(_,             wrong_queue,      "frames that came on another shard's queue, and were handed to theirs")
// How much there is now.
#define STP_LEVELS(X)                                                                              \
  X(_,             udp_peers,        "addresses of peers in the table now")                        \
  X(_,             udp_strangers,    "addresses of others in the table now")
#define STP_OTHER_COUNTERS(X)                                                                      \
  STP_DEVICE_COUNTERS(X) STP_RECEIVE_COUNTERS(X) STP_SEND_COUNTERS(X) STP_SEAT_COUNTERS(X)         \
  STP_UDP_RECEIVE_COUNTERS(X) STP_UDP_SEND_COUNTERS(X) STP_UDP_ERRORS(X) STP_ARP_COUNTERS(X)       \
  STP_SERVER_COUNTERS(X) STP_SINGLE_COUNTERS(X)
// clang-format on

namespace stp::port {

// A counter of the link or of stpd, in addition to the Node's.
struct PortCounter {
  std::string name;  // "link_rx_missed", "arp_requests_sent", ...
  std::uint64_t value;
};

#define STP_MEMBER(member, name, text) std::uint64_t member = 0;
#define STP_REPORT(member, name, text) to.push_back({#name, from.member});

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
