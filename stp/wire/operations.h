// SPDX-License-Identifier: BSD-3-Clause
// The table of operations: the names of their fields, the flags they read, what makes them a syntax
// error, and whether they take a Slot (docs/protocol.md, 3.4, 3.5 and 3.10). It generates the
// structs below it, the syntax checks, and the operations of stp-replay and the Wireshark
// dissector. docs/architecture.md explains how to add an operation.
#pragma once

#include <array>
#include <span>
#include <string_view>

#include "stp/wire/header.h"

namespace stp::wire {

// F(word, member, name): the word of the header, the member of the struct, and the name that
// documents, traces and the dissector use. In the order of the header's words. TLen is w6 and w7.
// protocol: 3.10
// clang-format off
#define STP_FIELDS_REQUEST_CONNECTION(F)                                                         \
  F(Param, i_slots, "I_Slots") F(Mx, ethertype, "EtherType") F(Bufx, i_bufsize, "I_Bufsize")     \
  F(Offset, i_key, "I_Key") F(Sync, i_max_stu, "I_Max_STU") F(DId, r_uport, "R_UPort")           \
  F(SId, i_uport, "I_UPort")
#define STP_FIELDS_CONNECTION_ANSWER(F)                                                          \
  F(Param, r_slots, "R_Slots") F(Bufx, r_bufsize, "R_Bufsize") F(Offset, r_key, "R_Key")         \
  F(Sync, r_max_stu, "R_Max_STU") F(DId, i_uport, "I_UPort") F(SId, r_uport, "R_UPort")
#define STP_FIELDS_REQUEST_DISCONNECT(F) F(Offset, i_key, "I_Key")
#define STP_FIELDS_DISCONNECT_ANSWER(F) F(Offset, r_key, "R_Key")
#define STP_FIELDS_DISCONNECT_COMPLETE(F) F(Offset, i_key, "I_Key")
#define STP_FIELDS_NO_OPERATION(F)                                                               \
  F(Param, param, "Param") F(Mx, mx, "Mx") F(Bufx, bufx, "Bufx") F(Offset, offset, "Offset")     \
  F(Sync, sync, "Sync") F(BNum, b_num, "B_num") F(DId, d_id, "D_id") F(SId, s_id, "S_id")
#define STP_FIELDS_REQUEST_MEMORY_REGION(F)                                                      \
  F(Param, b_win, "B_win") F(TLen, t_len, "T_len") F(SId, i_id, "I_id")
#define STP_FIELDS_MEMORY_REGION_AVAILABLE(F)                                                    \
  F(Param, b_win, "B_win") F(Mx, r_mx, "R_Mx") F(Bufx, r_bufx, "R_Bufx")                         \
  F(Offset, r_offset, "R_Offset") F(TLen, t_len, "T_len") F(DId, i_id, "I_id")                   \
  F(SId, r_id, "R_id")
#define STP_FIELDS_GET(F)                                                                        \
  F(Param, t_len, "T_len") F(Mx, i_mx, "I_Mx") F(Bufx, r_bufx, "R_Bufx")                         \
  F(Offset, r_offset, "R_Offset") F(Sync, i_bufx, "I_Bufx") F(BNum, i_offset, "I_Offset")        \
  F(DId, r_id, "R_id") F(SId, g_num, "G_num")
#define STP_FIELDS_REQUEST_TO_SEND(F)                                                            \
  F(Param, cts_req, "CTS_req") F(Mx, max_block, "Max_Block") F(TLen, t_len, "T_len")             \
  F(DId, rtr_i_id, "RTR_I_id") F(SId, i_id, "I_id")
#define STP_FIELDS_REQUEST_ANSWER(F) F(DId, i_id, "I_id") F(SId, r_id, "R_id")
#define STP_FIELDS_REQUEST_TO_RECEIVE(F) F(TLen, t_len, "T_len") F(SId, i_id, "I_id")
#define STP_FIELDS_CLEAR_TO_SEND(F)                                                              \
  F(Param, blocksize, "Blocksize") F(Mx, r_mx, "R_Mx") F(Bufx, r_bufx, "R_Bufx")                 \
  F(Offset, r_offset, "R_Offset") F(Sync, f_offset, "F_Offset") F(BNum, b_num, "B_num")          \
  F(DId, i_id, "I_id") F(SId, r_id, "R_id")
#define STP_FIELDS_DATA(F)                                                                       \
  F(Param, stu_num, "STU_num") F(Mx, r_mx, "R_Mx") F(Bufx, r_bufx, "R_Bufx")                     \
  F(Offset, r_offset, "R_Offset") F(Sync, sync, "Sync") F(BNum, b_num, "B_num")                  \
  F(DId, r_id, "R_id") F(SId, opaque, "Opaque")
#define STP_FIELDS_REQUEST_STATE(F)                                                              \
  F(Sync, sync, "Sync") F(BNum, b_num, "B_num") F(DId, r_id, "R_id") F(SId, i_id, "I_id")
#define STP_FIELDS_REQUEST_STATE_RESPONSE(F)                                                     \
  F(Param, r_slots, "R_Slots") F(Offset, b_seq, "B_seq") F(Sync, sync, "Sync")                   \
  F(BNum, b_num, "B_num") F(DId, i_id, "I_id") F(SId, r_id, "R_id")
#define STP_FIELDS_END(F) F(DId, r_id, "R_id") F(SId, i_id, "I_id")
#define STP_FIELDS_END_ACK(F) F(DId, i_id, "I_id") F(SId, r_id, "R_id")

// O(operation, fields, short name, name, Slot, when it is legal, what it asks for, what its sender
// chose, flags that it looks at, flags that are a syntax error, what else is one). `operation`: the
// struct, and Op::k<operation>.
#define STP_OPERATIONS(O)                                                                        \
  O(RequestConnection, REQUEST_CONNECTION, "RC", "Request_Connection",                           \
    Slot::kNone, When::kByState, Asks::kAnswer, Own::kKey,                                       \
    kNoFlags, kIllegalInControl, Constraint::kSizes)                                             \
  O(ConnectionAnswer, CONNECTION_ANSWER, "CA", "Connection_Answer",                              \
    Slot::kNone, When::kByState, Asks::kNothing, Own::kKey,                                      \
    flag::kReject, kIllegalInControl, Constraint::kSizes)                                        \
  O(RequestDisconnect, REQUEST_DISCONNECT, "RD", "Request_Disconnect",                           \
    Slot::kNone, When::kByState, Asks::kAnswer, Own::kKey,                                       \
    kNoFlags, kIllegalInControl, Constraint::kNone)                                              \
  O(DisconnectAnswer, DISCONNECT_ANSWER, "DA", "Disconnect_Answer",                              \
    Slot::kNone, When::kByState, Asks::kNothing, Own::kKey,                                      \
    kNoFlags, kIllegalInControl, Constraint::kNone)                                              \
  O(DisconnectComplete, DISCONNECT_COMPLETE, "DC", "Disconnect_Complete",                        \
    Slot::kNone, When::kByState, Asks::kNothing, Own::kKey,                                      \
    kNoFlags, kIllegalInControl, Constraint::kNone)                                              \
  O(NoOperation, NO_OPERATION, "NOP", "No_Operation",                                            \
    Slot::kOne, When::kOpen, Asks::kNothing, Own::kNone,                                         \
    kQueuedFlags, kIllegalInControl, Constraint::kNone)                                          \
  O(RequestMemoryRegion, REQUEST_MEMORY_REGION, "RMR", "Request_Memory_Region",                  \
    Slot::kOne, When::kOpen, Asks::kAnswer, Own::kNone,                                          \
    kQueuedFlags, kIllegalInControl, Constraint::kLength)                                        \
  O(MemoryRegionAvailable, MEMORY_REGION_AVAILABLE, "MRA", "Memory_Region_Available",            \
    Slot::kOne, When::kOpen, Asks::kNothing, Own::kMx,                                           \
    flag::kReject | kQueuedFlags, kIllegalInControl, Constraint::kNone)                          \
  O(Get, GET, "GET", "Get, FetchOp, FetchOp_Complete",                                           \
    Slot::kOne, When::kOpen, Asks::kAnswer, Own::kMx,                                            \
    flag::kReject | flag::kSilent | flag::kFunction | kQueuedFlags, kIllegalInGet,               \
    Constraint::kNone)                                                                           \
  O(RequestToSend, REQUEST_TO_SEND, "RTS", "Request_To_Send",                                    \
    Slot::kOne, When::kOpen, Asks::kAnswer, Own::kNone,                                          \
    kQueuedFlags, kIllegalInControl, Constraint::kMaxBlock)                                      \
  O(RequestAnswer, REQUEST_ANSWER, "RA", "Request_Answer",                                       \
    Slot::kOne, When::kOpen, Asks::kNothing, Own::kNone,                                         \
    flag::kReject | kQueuedFlags, kIllegalInControl, Constraint::kNone)                          \
  O(RequestToReceive, REQUEST_TO_RECEIVE, "RTR", "Request_To_Receive",                           \
    Slot::kOne, When::kOpen, Asks::kAnswer, Own::kNone,                                          \
    kQueuedFlags, kIllegalInControl, Constraint::kLength)                                        \
  O(ClearToSend, CLEAR_TO_SEND, "CTS", "Clear_To_Send",                                          \
    Slot::kOne, When::kOpen, Asks::kNothing, Own::kMx,                                           \
    kQueuedFlags, kIllegalInControl, Constraint::kBlocksize)                                     \
  O(Data, DATA, "DATA", "Data",                                                                  \
    Slot::kPerBlock, When::kOpen, Asks::kNothing, Own::kNone,                                    \
    flag::kAppend | flag::kLast | flag::kOrder | flag::kSilent | kQueuedFlags, kIllegalInData,   \
    Constraint::kNone)                                                                           \
  O(RequestState, REQUEST_STATE, "RS", "Request_State",                                          \
    Slot::kNone, When::kDraining, Asks::kState, Own::kSync,                                      \
    kNoFlags, kIllegalInControl, Constraint::kNone)                                              \
  O(RequestStateResponse, REQUEST_STATE_RESPONSE, "RSR", "Request_State_Response",               \
    Slot::kNone, When::kDraining, Asks::kNothing, Own::kNone,                                    \
    flag::kReject, kIllegalInControl, Constraint::kNone)                                         \
  O(End, END, "END", "End",                                                                      \
    Slot::kOne, When::kOpen, Asks::kAnswer, Own::kNone,                                          \
    kQueuedFlags, kIllegalInControl, Constraint::kNone)                                          \
  O(EndAck, END_ACK, "EA", "End_Ack",                                                            \
    Slot::kOne, When::kOpen, Asks::kNothing, Own::kNone,                                         \
    kQueuedFlags, kIllegalInControl, Constraint::kNone)
// clang-format on

// The words of a header that operations use differently. kTLen covers two words.
enum class Word : std::uint8_t { kParam, kMx, kBufx, kOffset, kSync, kBNum, kDId, kSId, kTLen };

// Whether an operation takes a Slot at its receiver.
// protocol: 6.2
enum class Slot : std::uint8_t { kNone, kOne, kPerBlock };

// The states of a VC in which a receiver accepts an operation, and who sends it.
// protocol: 5.15, 5.17
enum class When : std::uint8_t {
  kByState,   // as the table of states says; only Nodes send it
  kOpen,      // while the VC is open and its user has not closed it
  kDraining,  // the same, and while that user's queued requests still leave
};

// What the sender of an operation waits for.
enum class Asks : std::uint8_t {
  kNothing,
  kAnswer,  // the sender repeats the operation until it is answered
  kState,   // an RSR; the sender asks again, as another question
};

// The word, apart from S_Port, that the sender of an operation has chosen itself. Two Nodes that do
// the same differ in it.
enum class Own : std::uint8_t {
  kNone,
  kKey,   // Offset is a Key
  kMx,    // Mx
  kSync,  // Sync
};

// Fields that can be illegal whatever the receiver's state.
enum class Constraint : std::uint8_t {
  kNone,
  kSizes,      // Bufsize and Max_STU
  kMaxBlock,   // Max_Block
  kBlocksize,  // Blocksize
  kLength,     // T_len must not be 0
};

inline constexpr std::uint16_t kNoFlags = 0;
inline constexpr std::uint16_t kQueuedFlags = flag::kSendState | flag::kInterrupt;

// A flag that an operation does not use is an unused field and is ignored (section 3): for example
// Reject on an operation that answers nothing, or Last or Silent on a control operation. Only flags
// that change how a frame is read are illegal: a function, an append, and the reserved bit.
// protocol: 3.7, 3.9
inline constexpr std::uint16_t kIllegalInControl =
    flag::kReserved | flag::kAppend | flag::kFunction;
inline constexpr std::uint16_t kIllegalInGet = flag::kReserved | flag::kAppend;
inline constexpr std::uint16_t kIllegalInData = flag::kReserved | flag::kFunction;

struct FieldName {
  Word word;
  std::string_view name;
};

struct Operation {
  Op op{};
  const char* short_name = nullptr;  // nullptr: no such operation
  std::string_view name;
  std::span<const FieldName> fields;
  Slot slot = Slot::kNone;
  When when = When::kOpen;
  Asks asks = Asks::kNothing;
  Own own = Own::kNone;
  std::uint16_t used_flags = 0;  // flags that the receiver reads
  std::uint16_t illegal_flags = kFlagsMask;
  Constraint constraint = Constraint::kNone;
};

// As many codes as an operation's five bits can name.
inline constexpr std::size_t kOpCodes = 32;

// Every code has an entry, even unknown ones.
const Operation& operation(Op op);
// All operations, by code.
#define STP_OP(operation, ...) Op::k##operation,
inline constexpr std::array kOperations{STP_OPERATIONS(STP_OP)};
#undef STP_OP
// All operations with their properties.
std::span<const Operation> operations();

// A word of a header, as named in its operation's table.
constexpr std::uint64_t word_of(const Header& header, Word word) {
  switch (word) {
    case Word::kParam:
      return header.param;
    case Word::kMx:
      return header.mx;
    case Word::kBufx:
      return header.bufx;
    case Word::kOffset:
      return header.offset;
    case Word::kSync:
      return header.sync;
    case Word::kBNum:
      return header.b_num;
    case Word::kDId:
      return header.d_id;
    case Word::kSId:
      return header.s_id;
    case Word::kTLen:
      return header.t_len();
  }
  return 0;
}
// Truncates values that do not fit.
constexpr void set_word(Header& header, Word word, std::uint64_t value) {
  const auto whole = static_cast<std::uint32_t>(value);
  const auto half = static_cast<std::uint16_t>(value);
  switch (word) {
    case Word::kParam:
      header.param = half;
      break;
    case Word::kMx:
      header.mx = half;
      break;
    case Word::kBufx:
      header.bufx = whole;
      break;
    case Word::kOffset:
      header.offset = whole;
      break;
    case Word::kSync:
      header.sync = whole;
      break;
    case Word::kBNum:
      header.b_num = whole;
      break;
    case Word::kDId:
      header.d_id = whole;
      break;
    case Word::kSId:
      header.s_id = whole;
      break;
    case Word::kTLen:
      header.set_t_len(value);
      break;
  }
}

// One struct per operation, with the operation's own names for its fields. Generated from the
// table.
//
//   const auto rts = decode_as<RequestToSend>(header);   // header.op() is kRequestToSend
//   if (rts.t_len > ...) ...
//   encode_to(ClearToSend{.blocksize = 20, ...}, header);  // sets Op and the operation's fields
//
// Ports, Key, Cksum and flags belong to every header and keep their values.
template <Word word>
struct WordType {
  using Type = std::uint32_t;
};
template <>
struct WordType<Word::kParam> {
  using Type = std::uint16_t;
};
template <>
struct WordType<Word::kMx> {
  using Type = std::uint16_t;
};
template <>
struct WordType<Word::kTLen> {
  using Type = std::uint64_t;
};

#define STP_MEMBER(word, member, name) WordType<Word::k##word>::Type member = 0;
#define STP_READ(word, member, name) \
  member = static_cast<WordType<Word::k##word>::Type>(word_of(header, Word::k##word));
#define STP_WRITE(word, member, name) set_word(header, Word::k##word, member);
// clang-format off
#define STP_STRUCT(operation, fields, ...)                                \
  struct operation {                                                      \
    static constexpr Op kOp = Op::k##operation;                           \
    STP_FIELDS_##fields(STP_MEMBER)                                       \
    constexpr void read_from(const Header& header) {                      \
      STP_FIELDS_##fields(STP_READ)                                       \
    }                                                                     \
    constexpr void write_to(Header& header) const {                       \
      STP_FIELDS_##fields(STP_WRITE)                                      \
    }                                                                     \
    friend bool operator==(const operation&, const operation&) = default; \
  };
// clang-format on
STP_OPERATIONS(STP_STRUCT)
#undef STP_STRUCT
#undef STP_WRITE
#undef STP_READ
#undef STP_MEMBER

// Reads the fields of a DATA in place, for the path of each STU: copies nothing. The header must
// outlive it.
class DataView {
 public:
  explicit constexpr DataView(const Header& header) : header_(header) {}

#define STP_ACCESSOR(word, member, name)                                                \
  [[nodiscard]] constexpr WordType<Word::k##word>::Type member() const {                \
    return static_cast<WordType<Word::k##word>::Type>(word_of(header_, Word::k##word)); \
  }
  STP_FIELDS_DATA(STP_ACCESSOR)
#undef STP_ACCESSOR
  [[nodiscard]] constexpr bool has(std::uint16_t flag) const {
    return header_.has(flag);
  }
  [[nodiscard]] constexpr std::uint16_t s_port() const {
    return header_.s_port;
  }

 private:
  const Header& header_;
};

// The header's op must be T's.
template <typename T>
constexpr T decode_as(const Header& header) {
  T operation;
  operation.read_from(header);
  return operation;
}
// A header with only the operation's fields; set Ports and Key afterwards.
template <typename T>
constexpr Header to_header(const T& operation, std::uint16_t flags = 0) {
  Header header;
  header.op_flags = op_flags(T::kOp, flags);
  operation.write_to(header);
  return header;
}
// The same, built where it stays: to copy one that has just been written is slow.
template <typename T>
constexpr void make_header(const T& operation, std::uint16_t flags, Header& out) {
  out = {};
  out.op_flags = op_flags(T::kOp, flags);
  operation.write_to(out);
}
// Leaves flags and words that the operation does not use unchanged.
template <typename T>
constexpr void encode_to(const T& operation, Header& header) {
  header.op_flags = op_flags(T::kOp, header.op_flags);
  operation.write_to(header);
}

}  // namespace stp::wire
