// SPDX-License-Identifier: BSD-3-Clause
// What happened, counted by name: the one table of all counters, of Nodes, links and stpd, and of
// the reasons to drop a frame. `stpctl stats`, DPDK telemetry, Prometheus and docs/operations.md
// use these names: operators rely on them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

// A row is X(Id or member, name, unit, "text"): something happened. In Prometheus a counter.
// D(...): a received frame was dropped, and why. A counter, too.
// G(...): how much there is now, which falls as well. A gauge.

// Those of a Node.
// clang-format off
#define STP_COUNTERS(X, D)                                                                                      \
  /* traffic */                                                                                                 \
  X(RxFrames,         rx_frames,          frames,      "frames handed to the Node")                             \
  X(RxBytes,          rx_bytes,           bytes,       "bytes of those frames, with an Ethernet header each, over UDP too") \
  X(RxControl,        rx_control,         operations,  "control operations accepted")                           \
  X(RxStus,           rx_stus,            stus,        "STUs placed in memory")                                 \
  X(RxDataBytes,      rx_data_bytes,      bytes,       "user bytes placed in memory")                           \
  X(RxBlocks,         rx_blocks,          blocks,      "Blocks completed")                                      \
  X(TxFrames,         tx_frames,          frames,      "frames built for the link")                             \
  X(TxBytes,          tx_bytes,           bytes,       "bytes of those frames, with an Ethernet header each, over UDP too") \
  X(TxControl,        tx_control,         operations,  "control operations sent")                               \
  X(TxStus,           tx_stus,            stus,        "STUs sent")                                             \
  X(TxDataBytes,      tx_data_bytes,      bytes,       "user bytes sent")                                       \
  /* form, section 12 */                                                                                        \
  D(NotStp,           not_stp,            frames,      "frames of another EtherType")                           \
  D(NotForUs,         not_for_us,         frames,      "frames for another MAC address")                        \
  D(BadSource,        bad_source,         frames,      "source MAC address is zero, a group, or our own")       \
  D(Truncated,        truncated,          frames,      "frame shorter than its headers say")                    \
  D(UnknownOp,        unknown_op,         frames,      "no such operation")                                     \
  D(BadFlags,         bad_flags,          frames,      "illegal flag or GET function")                          \
  D(BadExponent,      bad_exponent,       frames,      "Bufsize, Max_STU, Blocksize or Max_Block not legal")    \
  D(ZeroLength,       zero_length,        frames,      "T_len 0 in RTR or RMR")                                 \
  D(StuTooLong,       stu_too_long,       frames,      "STU longer than 2^Max_STU")                             \
  D(BadControlLength, bad_control_length, frames,      "control payload of a wrong length")                     \
  D(ZeroPort,         zero_port,          frames,      "S_Port 0")                                              \
  D(BadChecksum,      bad_checksum,       frames,      "Cksum does not match")                                  \
  /* connections, section 5 */                                                                                  \
  D(BadPort,          bad_port,           frames,      "D_Port names no connection or endpoint")                \
  D(BadKey,           bad_key,            frames,      "D_Key is wrong")                                        \
  D(BadPeer,          bad_peer,           frames,      "not from the connection's peer")                        \
  D(BadState,         bad_state,          frames,      "operation not legal in the connection's state")         \
  D(CrossedEnd,       crossed_end,        frames,      "operation that crossed its connection's end")           \
  X(NoListener,       no_listener,        connections, "connection refused: nobody listens on the UPort")       \
  D(BacklogFull,      backlog_full,       frames,      "Request_Connection left unanswered: no room or memory") \
  X(NoResources,      no_resources,       connections, "connection refused: no Port or memory left")            \
  X(RcRejected,       rc_rejected,        connections, "connections refused by the listening user")             \
  X(RcUndecided,      rc_undecided,       connections, "connections refused: the user did not decide in time")  \
  X(DuplicateRc,      duplicate_rc,       requests,    "Request_Connection repeated: no second connection")     \
  D(LateRc,           late_rc,            frames,      "Request_Connection of a closed connection")             \
  X(RcCookies,        rc_cookies,         connections, "connections answered, and made once they are proven")   \
  X(RcProven,         rc_proven,          connections, "connections made: the answer has come back")            \
  D(RcFirst,          rc_first,           frames,      "Request_Connection left unanswered: not repeated yet")  \
  X(UnprovenEnded,    unproven_ended,     connections, "connections ended: silent, or many of one network")     \
  X(GhostCa,          ghost_ca,           operations,  "Connection_Answer nobody waits for: answered with RD")  \
  X(AnswersFull,      answers_full,       answers,     "answer not sent: no room or memory in its queue")       \
  X(AddressFull,      address_full,       answers,     "answer not sent: too many to one station wait")         \
  X(Retries,          retries,            requests,    "requests sent again by a timer")                        \
  X(VcOpened,         vc_opened,          connections, "connections established")                               \
  X(VcClosed,         vc_closed,          connections, "connections closed in order")                           \
  X(VcRefused,        vc_refused,         connections, "connections refused by the peer")                       \
  X(VcUnanswered,     vc_unanswered,      requests,    "Request_Connections that nobody answered")              \
  X(WaysShort,        ways_short,         connections, "connections with shorter STUs: longer ones are lost")   \
  X(VcFailed,         vc_failed,          connections, "connections given up: peer silent or client gone")      \
  /* Slots, section 6 */                                                                                        \
  D(SlotOverrun,      slot_overrun,       frames,      "no free Slot for an operation")                         \
  D(StateLost,        state_lost,         frames,      "Request_State_Response dropped: user does not read")    \
  X(SlotWaits,        slot_waits,         times,       "times a sender found no credit")                        \
  /* memory, sections 7 and 8 */                                                                                \
  D(BadMx,            bad_mx,             frames,      "DATA for an Mx that does not live")                     \
  D(MxNotOwned,       mx_not_owned,       frames,      "DATA for an Mx of another connection")                  \
  D(BadBufx,          bad_bufx,           frames,      "Bufx outside the Mx's sub-range")                       \
  D(BadOffset,        bad_offset,         frames,      "Offset beyond the buffer")                              \
  D(StuCrossesBuffer, stu_crosses_buffer, frames,      "STU does not fit in its buffer")                        \
  D(NoPermission,     no_permission,      frames,      "the Mx does not permit this")                           \
  D(NoGrant,          no_grant,           frames,      "DATA for an id that was never granted, or has ended")   \
  D(BadBNum,          bad_b_num,          frames,      "DATA for a Block that was not granted")                 \
  D(OutsideGrant,     outside_grant,      frames,      "DATA at an address that its grant does not cover")      \
  D(BadStuNum,        bad_stu_num,        frames,      "STU number that its Block cannot have")                 \
  D(DuplicateStu,     duplicate_stu,      frames,      "STU that was already placed")                           \
  D(StaleFetch,       stale_fetch,        frames,      "FetchOp older than the results that are kept")          \
  X(RxGets,           rx_gets,            operations,  "Gets answered")                                         \
  X(RxFetchOps,       rx_fetch_ops,       operations,  "FetchOps carried out")                                  \
  X(GetRefused,       get_refused,        operations,  "Gets and FetchOps refused: no such region, or right")   \
  X(RxMarked,         rx_marked,          stus,        "STUs that a router has marked (ECN): its queue is long") \
  X(CtsRepeated,      cts_repeated,       operations,  "CTS sent again for Blocks without progress")            \
  X(CtsHeld,          cts_held,           operations,  "CTS held: until others' bytes or memory came back")     \
  D(DuplicateBlock,   duplicate_block,    frames,      "DATA of a Block that is complete")                      \
  /* connectionless endpoints, section 11 */                                                                    \
  D(KeyGuesses,       key_guesses,        frames,      "frames dropped unread: too many wrong Keys before")     \
  D(BlocksFull,       blocks_full,        frames,      "DATA of a new Block: too many others are incomplete")   \
  X(BlocksAbandoned,  blocks_abandoned,   blocks,      "Blocks of endpoints given up: no STU came for 1 s")     \
  X(PortHeld,         port_held,          times,       "times a Port waited: enough has gone to that station")  \
  /* requests of users */                                                                                       \
  X(TxRefused,        tx_refused,         requests,    "requests of users refused by the Node's own checks")    \
  X(WindowsFull,      windows_full,       operations,  "CTS and MRA that found no memory to track their DATA")  \
  X(RingBroken,       ring_broken,        connections, "connections ended: user's ring made no sense")

// Those of links and of stpd. A row makes the member of the struct that its group is
// (dpdk_port/link/link_counters.h), or of Server::Counts, and what is reported of it.

// Of a DPDK device: members of rte_eth_stats.
#define STP_DEVICE_COUNTERS(X)                                                                                  \
  X(ipackets,  link_rx_packets, frames, "frames received, as the driver counts them")                           \
  X(opackets,  link_tx_packets, frames, "frames sent, as the driver counts them")                               \
  X(imissed,   link_rx_missed,  frames, "frames that found no descriptor: nobody polled in time")               \
  X(ierrors,   link_rx_errors,  frames, "damaged frames; memif: too long ones, and peers that broke the rules") \
  X(rx_nombuf, link_rx_nombuf,  frames, "frames that found no buffer")                                          \
  X(oerrors,   link_tx_errors,  frames, "frames that the driver could not send")

#define STP_RECEIVE_COUNTERS(X)                                                                                 \
  X(chained,    rx_chained,    frames, "frames received in several buffers and reassembled")                    \
  X(oversize,   rx_oversize,   frames, "reassembled frames dropped because they exceed the MTU")                \
  X(other_vlan, rx_other_vlan, frames, "frames dropped because their VLAN is not that of the link")

#define STP_SEND_COUNTERS(X)                                                                                    \
  X(kept,    tx_kept,    frames, "frames that the driver had no room for, each turn that they wait")            \
  X(dropped, tx_dropped, frames, "frames given up: the link took none, or nobody has their address")

// Of one of several shards.
#define STP_SEAT_COUNTERS(X)                                                                                    \
  X(given,  shard_given,  frames, "frames handed to other shards")                                              \
  X(taken,  shard_taken,  frames, "frames that other shards handed over")                                       \
  X(full,   shard_full,   frames, "frames dropped: the ring to another shard was full, or they were too long")  \
  X(waited, shard_waited, times,  "turns in which nothing more was sent: the ring to a shard was full")

#define STP_UDP_RECEIVE_COUNTERS(X)                                                                             \
  X(datagrams,  udp_rx_datagrams,  datagrams, "datagrams received")                                             \
  X(joined,     udp_rx_joined,     datagrams, "datagrams that the kernel had joined with others")               \
  X(kept,       udp_rx_kept,       messages,  "messages that were kept a while after they had been read")       \
  X(no_station, udp_rx_no_station, datagrams, "datagrams dropped: no host can have the address they came from")

#define STP_UDP_SEND_COUNTERS(X)                                                                                \
  X(datagrams, udp_tx_datagrams, datagrams, "datagrams sent")                                                   \
  X(calls,     udp_tx_calls,     calls,     "system calls that sent datagrams")                                 \
  X(favored,   udp_tx_favored,   datagrams, "datagrams sent by the socket of the station that gets most")       \
  X(doubted,   udp_tx_silent,    datagrams, "datagrams dropped: too many for silent stations or no ARP answer") \
  X(unknown,   udp_tx_unknown,   frames,    "frames dropped: no address is known for their station")

#define STP_UDP_ERRORS(X)                                                                                       \
  X(too_long, udp_tx_too_long,   datagrams, "datagrams longer than the interface carries")                      \
  X(refused,  udp_tx_refused,    datagrams, "datagrams that the kernel did not send: no route, or a firewall")  \
  X(reports,  udp_reports,       errors,    "errors that hosts and routers reported (ICMP)")                    \
  X(floods,   udp_report_floods, times,     "times that they came faster than they could be read")              \
  X(failed,   udp_failed,        calls,     "calls that failed for a reason of the socket's own")

#define STP_ARP_COUNTERS(X)                                                                                     \
  X(requests_sent, arp_requests_sent, requests,  "ARP requests sent")                                           \
  X(answers_sent,  arp_answers_sent,  answers,   "ARP answers sent")                                            \
  X(learned,       arp_learned,       addresses, "addresses that came to be known")                             \
  X(ignored,       arp_ignored,       frames,    "ARP frames that were malformed or about others")              \
  X(probes_sent,   arp_probes_sent,   requests,  "ARP probes and announcements of the link's own address sent") \
  X(conflicts,     arp_conflicts,     times,     "times another station was found to have the link's address")  \
  X(dropped,       arp_dropped,       frames,    "ARP frames not sent: too many waited")

// Of stpd: members of Server::Counts.
#define STP_SERVER_COUNTERS(X)                                                                                  \
  X(clients,           clients,              programs,    "programs that connected")                            \
  X(refused,           clients_refused,      programs,    "programs turned away: too many were connected, or files open") \
  X(bad_messages,      clients_bad_messages, programs,    "programs disconnected for what no libst sends")      \
  X(slow_readers,      clients_slow_readers, programs,    "programs disconnected for not reading their replies") \
  X(slow_sockets,      clients_slow_sockets, programs,    "programs disconnected because so many waited for their sockets") \
  X(stuck_descriptors, descriptors_stuck,    descriptors, "descriptors of programs that could not be closed for a second") \
  X(torn_memory,       clients_torn_memory,  programs,    "programs disconnected for taking away memory in use")

// Those that stand alone: whoever counts them reports them by name.
#define STP_SINGLE_COUNTERS(X)                                                                                  \
  X(_, bells_silenced,  times,     "times a program that rang for nothing was not listened to")                 \
  X(_, link_changes,    times,     "times the link came into another state: see stpctl links")                  \
  X(_, link_sought,     times,     "times a memif client looked for its server after the first")                \
  X(_, link_tx_refused, frames,    "frames that the kernel did not send: too long, or the link went down")      \
  X(_, looped,          frames,    "frames to our own address, which never reach the link")                     \
  X(_, trace_dropped,   frames,    "frames that the trace of --pcap lacks: buffer or file was full")            \
  X(_, trace_frames,    frames,    "frames written to the trace of --pcap")                                     \
  X(_, tx_no_buffer,    times,     "turns in which no buffer was free for sending")                             \
  X(_, udp_displaced,   addresses, "addresses that gave way to others: the table was full")                     \
  X(_, wrong_queue,     frames,    "frames that came on another shard's queue, and were handed to theirs")
// How much there is now.
#define STP_LEVELS(G)                                                                                           \
  G(_, udp_peers,     addresses, "addresses of peers in the table now")                                         \
  G(_, udp_strangers, addresses, "addresses of others in the table now")
#define STP_OTHER_COUNTERS(X, G)                                                                                \
  STP_DEVICE_COUNTERS(X) STP_RECEIVE_COUNTERS(X) STP_SEND_COUNTERS(X) STP_SEAT_COUNTERS(X)                      \
  STP_UDP_RECEIVE_COUNTERS(X) STP_UDP_SEND_COUNTERS(X) STP_UDP_ERRORS(X) STP_ARP_COUNTERS(X)                    \
  STP_SERVER_COUNTERS(X) STP_SINGLE_COUNTERS(X) STP_LEVELS(G)
// clang-format on

namespace stp {

enum class Counter : std::uint8_t {
#define STP_COUNTER_ID(id, name, unit, text) k##id,
  STP_COUNTERS(STP_COUNTER_ID, STP_COUNTER_ID)
#undef STP_COUNTER_ID
      kCount,
};
inline constexpr std::size_t kCounterCount = static_cast<std::size_t>(Counter::kCount);

class Counters {
 public:
  void add(Counter c, std::uint64_t n = 1) { values_[static_cast<std::size_t>(c)] += n; }
  [[nodiscard]] std::uint64_t get(Counter c) const { return values_[static_cast<std::size_t>(c)]; }

  static const char* name(Counter c);         // "bad_port"
  static const char* description(Counter c);  // "D_Port names no connection or endpoint"

 private:
  std::array<std::uint64_t, kCounterCount> values_{};
};

// Why a received frame is dropped. Each reason has a counter of the same name.
enum class DropReason : std::uint8_t {
#define STP_NO_REASON(id, name, unit, text)
#define STP_REASON(id, name, unit, text) k##id = static_cast<std::uint8_t>(Counter::k##id),
  STP_COUNTERS(STP_NO_REASON, STP_REASON)
#undef STP_REASON
#undef STP_NO_REASON
      kNone = 0xff,  // not dropped
};

// protocol: 12.1
constexpr Counter counter_of(DropReason reason) {
  return static_cast<Counter>(reason);
}

// "bad_port"; "none".
inline const char* name_of(DropReason reason) {
  return reason == DropReason::kNone ? "none" : Counters::name(counter_of(reason));
}

}  // namespace stp
