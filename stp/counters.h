// SPDX-License-Identifier: BSD-3-Clause
// What happened, counted by name. STP_COUNTERS is the single list of all counters of a Node and of
// the reasons to drop a frame. `stpctl stats`, DPDK telemetry, Prometheus and docs/operations.md
// use these names: operators rely on them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

// X(Id, name, "text"): something happened.
// D(Id, name, "text"): a received frame was dropped, and why.
// clang-format off
#define STP_COUNTERS(X, D)                                                                         \
  /* traffic */                                                                                    \
  X(RxFrames,          rx_frames,           "frames handed to the Node")                           \
  X(RxBytes,           rx_bytes,            "bytes of those frames, with an Ethernet header each, over UDP too") \
  X(RxControl,         rx_control,          "control operations accepted")                         \
  X(RxStus,            rx_stus,             "STUs placed in memory")                               \
  X(RxDataBytes,       rx_data_bytes,       "user bytes placed in memory")                         \
  X(RxBlocks,          rx_blocks,           "Blocks completed")                                    \
  X(TxFrames,          tx_frames,           "frames built for the link")                           \
  X(TxBytes,           tx_bytes,            "bytes of those frames, with an Ethernet header each, over UDP too") \
  X(TxControl,         tx_control,          "control operations sent")                             \
  X(TxStus,            tx_stus,             "STUs sent")                                           \
  X(TxDataBytes,       tx_data_bytes,       "user bytes sent")                                     \
  /* form, section 12 */                                                                           \
  D(NotStp,            not_stp,             "frames of another EtherType")                         \
  D(NotForUs,          not_for_us,          "frames for another MAC address")                      \
  D(BadSource,         bad_source,          "source MAC address is zero, a group, or our own")     \
  D(Truncated,         truncated,           "frame shorter than its headers say")                  \
  D(UnknownOp,         unknown_op,          "no such operation")                                   \
  D(BadFlags,          bad_flags,           "illegal flag or GET function")                        \
  D(BadExponent,       bad_exponent,        "Bufsize, Max_STU, Blocksize or Max_Block not legal")  \
  D(ZeroLength,        zero_length,         "T_len 0 in RTR or RMR")                               \
  D(StuTooLong,        stu_too_long,        "STU longer than 2^Max_STU")                           \
  D(BadControlLength,  bad_control_length,  "control payload of a wrong length")                   \
  D(ZeroPort,          zero_port,           "S_Port 0")                                            \
  D(BadChecksum,       bad_checksum,        "Cksum does not match")                                \
  /* connections, section 5 */                                                                     \
  D(BadPort,           bad_port,            "D_Port names no connection or endpoint")              \
  D(BadKey,            bad_key,             "D_Key is wrong")                                      \
  D(BadPeer,           bad_peer,            "not from the connection's peer")                      \
  D(BadState,          bad_state,           "operation not legal in the connection's state")       \
  D(CrossedEnd,        crossed_end,         "operation that crossed its connection's end")         \
  X(NoListener,        no_listener,         "connection refused: nobody listens on the UPort")     \
  D(BacklogFull,       backlog_full,        "Request_Connection left unanswered: backlog full")    \
  X(NoResources,       no_resources,        "connection refused: no Port or memory left")          \
  X(RcRejected,        rc_rejected,         "connections refused by the listening user")           \
  X(RcUndecided,       rc_undecided,        "connections refused: the user did not decide in time")\
  X(DuplicateRc,       duplicate_rc,        "Request_Connection repeated: no second connection")   \
  D(LateRc,            late_rc,             "Request_Connection of a closed connection")           \
  X(RcCookies,         rc_cookies,          "connections answered, and made once they are proven") \
  X(RcProven,          rc_proven,           "connections made: the answer has come back")          \
  D(RcFirst,           rc_first,            "Request_Connection left unanswered: not repeated yet")\
  X(UnprovenEnded,     unproven_ended,      "connections ended: silent, or many of one network")  \
  X(GhostCa,           ghost_ca,            "Connection_Answer nobody waits for: answered with RD")\
  X(AnswersFull,       answers_full,        "answer not sent: queue of answers full")              \
  X(AddressFull,       address_full,        "answer not sent: too many to one station wait")       \
  X(Retries,           retries,             "requests sent again by a timer")                      \
  X(VcOpened,          vc_opened,           "connections established")                             \
  X(VcClosed,          vc_closed,           "connections closed in order")                         \
  X(VcRefused,         vc_refused,          "connections refused by the peer")                     \
  X(VcUnanswered,      vc_unanswered,       "Request_Connections that nobody answered")            \
  X(WaysShort,         ways_short,          "connections with shorter STUs: longer ones are lost") \
  X(VcFailed,          vc_failed,           "connections given up: peer silent or client gone")    \
  /* Slots, section 6 */                                                                           \
  D(SlotOverrun,       slot_overrun,        "no free Slot for an operation")                       \
  D(StateLost,         state_lost,          "Request_State_Response dropped: user does not read")  \
  X(SlotWaits,         slot_waits,          "times a sender found no credit")                      \
  /* memory, sections 7 and 8 */                                                                   \
  D(BadMx,             bad_mx,              "DATA for an Mx that does not live")                   \
  D(MxNotOwned,        mx_not_owned,        "DATA for an Mx of another connection")                \
  D(BadBufx,           bad_bufx,            "Bufx outside the Mx's sub-range")                     \
  D(BadOffset,         bad_offset,          "Offset beyond the buffer")                            \
  D(StuCrossesBuffer,  stu_crosses_buffer,  "STU does not fit in its buffer")                      \
  D(NoPermission,      no_permission,       "the Mx does not permit this")                         \
  D(NoGrant,           no_grant,            "DATA for an id that was never granted, or has ended") \
  D(BadBNum,           bad_b_num,           "DATA for a Block that was not granted")               \
  D(OutsideGrant,      outside_grant,       "DATA at an address that its grant does not cover")    \
  D(BadStuNum,         bad_stu_num,         "STU number that its Block cannot have")               \
  D(DuplicateStu,      duplicate_stu,       "STU that was already placed")                         \
  D(StaleFetch,        stale_fetch,         "FetchOp older than the results that are kept")        \
  X(RxGets,            rx_gets,             "Gets answered")                                       \
  X(RxFetchOps,        rx_fetch_ops,        "FetchOps carried out")                                \
  X(GetRefused,        get_refused,         "Gets and FetchOps refused: no such region, or right") \
  X(RxMarked,          rx_marked,           "STUs that a router has marked (ECN): its queue is long") \
  X(CtsRepeated,       cts_repeated,        "CTS sent again for Blocks without progress")          \
  X(CtsHeld,           cts_held,            "CTS held: until others' bytes or memory came back")   \
  D(DuplicateBlock,    duplicate_block,     "DATA of a Block that is complete")                    \
  /* connectionless endpoints, section 11 */                                                       \
  D(KeyGuesses,        key_guesses,         "frames dropped unread: too many wrong Keys before")   \
  D(BlocksFull,        blocks_full,         "DATA of a new Block: too many others are incomplete") \
  X(BlocksAbandoned,   blocks_abandoned,    "Blocks of endpoints given up: no STU came for 1 s")   \
  X(PortHeld,          port_held,           "times a Port waited: enough has gone to that station")\
  /* requests of users */                                                                          \
  X(TxRefused,         tx_refused,          "requests of users refused by the Node's own checks")  \
  X(WindowsFull,       windows_full,        "CTS and MRA that found no memory to track their DATA")\
  X(RingBroken,        ring_broken,         "connections ended: user's ring made no sense")
// clang-format on

namespace stp {

enum class Counter : std::uint8_t {
#define STP_COUNTER_ID(id, name, text) k##id,
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
#define STP_NO_REASON(id, name, text)
#define STP_REASON(id, name, text) k##id = static_cast<std::uint8_t>(Counter::k##id),
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
