// SPDX-License-Identifier: BSD-3-Clause
// What happened, by name. Every check that drops a frame counts under a reason of its own; the
// names here are the ones in `stpctl stats`, in DPDK telemetry and in docs/operations.md.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace stp {

// clang-format off
#define STP_COUNTERS(X)                                                                            \
  /* traffic */                                                                                    \
  X(RxFrames,          rx_frames,           "frames handed to the Node")                           \
  X(RxBytes,           rx_bytes,            "bytes of those frames, Ethernet header included")     \
  X(RxControl,         rx_control,          "control operations accepted")                         \
  X(RxStus,            rx_stus,             "STUs placed in memory")                               \
  X(RxDataBytes,       rx_data_bytes,       "user bytes placed in memory")                         \
  X(RxBlocks,          rx_blocks,           "Blocks completed")                                    \
  X(TxFrames,          tx_frames,           "frames built for the link")                           \
  X(TxBytes,           tx_bytes,            "bytes of those frames, Ethernet header included")     \
  X(TxControl,         tx_control,          "control operations sent")                             \
  X(TxStus,            tx_stus,             "STUs sent")                                           \
  X(TxDataBytes,       tx_data_bytes,       "user bytes sent")                                     \
  /* form, section 12 */                                                                           \
  X(NotStp,            not_stp,             "frames of another EtherType")                         \
  X(NotForUs,          not_for_us,          "frames for another MAC address")                      \
  X(BadSource,         bad_source,          "source MAC address is zero, a group, or our own")     \
  X(Truncated,         truncated,           "frame shorter than its headers say")                  \
  X(UnknownOp,         unknown_op,          "no such operation")                                   \
  X(BadFlags,          bad_flags,           "illegal flag or GET function")                        \
  X(BadExponent,       bad_exponent,        "Bufsize, Max_STU, Blocksize or Max_Block not legal")  \
  X(ZeroLength,        zero_length,         "T_len 0 in RTR or RMR")                               \
  X(StuTooLong,        stu_too_long,        "STU longer than 2^Max_STU")                           \
  X(BadControlLength,  bad_control_length,  "control payload of a wrong length")                   \
  X(ZeroPort,          zero_port,           "S_Port 0")                                            \
  X(BadChecksum,       bad_checksum,        "Cksum does not match")                                \
  /* connections, section 5 */                                                                     \
  X(BadPort,           bad_port,            "D_Port names no connection or endpoint")              \
  X(BadKey,            bad_key,             "D_Key is wrong")                                      \
  X(BadPeer,           bad_peer,            "not from the connection's peer")                      \
  X(BadState,          bad_state,           "operation not legal in the connection's state")       \
  X(CrossedEnd,        crossed_end,         "operation that crossed its connection's end")         \
  X(NoListener,        no_listener,         "connection refused: nobody listens on the UPort")     \
  X(BacklogFull,       backlog_full,        "Request_Connection left unanswered: backlog full")    \
  X(NoResources,       no_resources,        "connection refused: no Port or memory left")          \
  X(RcRejected,        rc_rejected,         "connections refused by the listening user")           \
  X(RcUndecided,       rc_undecided,        "connections refused: the user did not decide in time")\
  X(DuplicateRc,       duplicate_rc,        "Request_Connection repeated: no second connection")   \
  X(LateRc,            late_rc,             "Request_Connection of a closed connection")           \
  X(RcCookies,         rc_cookies,          "connections answered, and made once they are proven") \
  X(RcProven,          rc_proven,           "connections made: the answer has come back")          \
  X(RcFirst,           rc_first,            "Request_Connection left unanswered: not repeated yet")\
  X(UnprovenEnded,     unproven_ended,      "silent connections ended: others needed their place") \
  X(GhostCa,           ghost_ca,            "Connection_Answer nobody waits for: answered with RD")\
  X(AnswersFull,       answers_full,        "answer not sent: queue of answers full")              \
  X(AddressFull,       address_full,        "answer not sent: too many to its MAC address wait")   \
  X(Retries,           retries,             "requests sent again by a timer")                      \
  X(VcOpened,          vc_opened,           "connections established")                             \
  X(VcClosed,          vc_closed,           "connections closed in order")                         \
  X(VcRefused,         vc_refused,          "connections refused by the peer")                     \
  X(VcUnanswered,      vc_unanswered,       "Request_Connections that nobody answered")            \
  X(VcFailed,          vc_failed,           "connections given up: peer silent or client gone")    \
  /* Slots, section 6 */                                                                           \
  X(SlotOverrun,       slot_overrun,        "no free Slot for an operation")                       \
  X(StateLost,         state_lost,          "Request_State_Response dropped: user does not read")  \
  X(SlotWaits,         slot_waits,          "times a sender found no credit")                      \
  /* memory, sections 7 and 8 */                                                                   \
  X(BadMx,             bad_mx,              "DATA for an Mx that does not live")                   \
  X(MxNotOwned,        mx_not_owned,        "DATA for an Mx of another connection")                \
  X(BadBufx,           bad_bufx,            "Bufx outside the Mx's sub-range")                     \
  X(BadOffset,         bad_offset,          "Offset beyond the buffer")                            \
  X(StuCrossesBuffer,  stu_crosses_buffer,  "STU does not fit in its buffer")                      \
  X(NoPermission,      no_permission,       "the Mx does not permit this")                         \
  X(NoGrant,           no_grant,            "DATA for an id that was never granted, or has ended") \
  X(BadBNum,           bad_b_num,           "DATA for a Block that was not granted")               \
  X(OutsideGrant,      outside_grant,       "DATA at an address that its grant does not cover")    \
  X(BadStuNum,         bad_stu_num,         "STU number that its Block cannot have")               \
  X(DuplicateStu,      duplicate_stu,       "STU that was already placed")                         \
  X(StaleFetch,        stale_fetch,         "FetchOp older than the results that are kept")        \
  X(RxGets,            rx_gets,             "Gets answered")                                       \
  X(RxFetchOps,        rx_fetch_ops,        "FetchOps carried out")                                \
  X(GetRefused,        get_refused,         "Gets and FetchOps refused: no such region, or right") \
  X(CtsRepeated,       cts_repeated,        "CTS sent again for Blocks without progress")          \
  X(CtsHeld,           cts_held,            "CTS held: until others' bytes or memory came back")   \
  X(DuplicateBlock,    duplicate_block,     "DATA of a Block that is complete")                    \
  /* connectionless endpoints, section 11 */                                                       \
  X(KeyGuesses,        key_guesses,         "frames dropped unread: too many wrong Keys before")   \
  X(BlocksFull,        blocks_full,         "DATA of a new Block: too many others are incomplete") \
  X(BlocksAbandoned,   blocks_abandoned,    "Blocks of endpoints given up: no STU came for 1 s")   \
  /* requests of users */                                                                          \
  X(TxRefused,         tx_refused,          "requests of users refused by the Node's own checks")  \
  X(WindowsFull,       windows_full,        "CTS and MRA that found no memory to track their DATA")\
  X(RingBroken,        ring_broken,         "connections ended: user's ring made no sense")
// clang-format on

enum class Counter : std::uint8_t {
#define STP_COUNTER_ID(id, name, text) k##id,
  STP_COUNTERS(STP_COUNTER_ID)
#undef STP_COUNTER_ID
      kCount,
  kNone = 0xff,  // "no reason to drop"
};
inline constexpr std::size_t kCounterCount = static_cast<std::size_t>(Counter::kCount);

class Counters {
 public:
  void add(Counter c, std::uint64_t n = 1) { values_[static_cast<std::size_t>(c)] += n; }
  [[nodiscard]] std::uint64_t get(Counter c) const { return values_[static_cast<std::size_t>(c)]; }

  static const char* name(Counter c);         // "bad_port"
  static const char* description(Counter c);  // "D_Port names no connection or endpoint"
  // Whether counting it means that a received frame was dropped.
  static bool is_drop(Counter c);

 private:
  std::array<std::uint64_t, kCounterCount> values_{};
};

}  // namespace stp
