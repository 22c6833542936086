// SPDX-License-Identifier: BSD-3-Clause
#include "tools/replay/fields.h"

#include <array>

namespace stp::replay {
namespace {

using wire::Op;
namespace flag = wire::flag;

using F = FieldName;
constexpr std::array kRequestConnection{F{Field::kParam, "I_Slots"},  F{Field::kMx, "EtherType"},
                                        F{Field::kBufx, "I_Bufsize"}, F{Field::kOffset, "I_Key"},
                                        F{Field::kSync, "I_Max_STU"}, F{Field::kDId, "R_UPort"},
                                        F{Field::kSId, "I_UPort"}};
constexpr std::array kConnectionAnswer{F{Field::kParam, "R_Slots"}, F{Field::kBufx, "R_Bufsize"},
                                       F{Field::kOffset, "R_Key"},  F{Field::kSync, "R_Max_STU"},
                                       F{Field::kDId, "I_UPort"},   F{Field::kSId, "R_UPort"}};
constexpr std::array kDisconnect{F{Field::kOffset, "I_Key"}};
constexpr std::array kDisconnectAnswer{F{Field::kOffset, "R_Key"}};
constexpr std::array kOpaque{F{Field::kParam, "Param"}, F{Field::kMx, "Mx"},
                             F{Field::kBufx, "Bufx"},   F{Field::kOffset, "Offset"},
                             F{Field::kSync, "Sync"},   F{Field::kBNum, "B_num"},
                             F{Field::kDId, "D_id"},    F{Field::kSId, "S_id"}};
constexpr std::array kRequestToSend{F{Field::kParam, "CTS_req"}, F{Field::kMx, "Max_Block"},
                                    F{Field::kTLen, "T_len"}, F{Field::kDId, "RTR_I_id"},
                                    F{Field::kSId, "I_id"}};
constexpr std::array kAnswer{F{Field::kDId, "I_id"}, F{Field::kSId, "R_id"}};
constexpr std::array kRequestToReceive{F{Field::kTLen, "T_len"}, F{Field::kSId, "I_id"}};
constexpr std::array kClearToSend{F{Field::kParam, "Blocksize"}, F{Field::kMx, "R_Mx"},
                                  F{Field::kBufx, "R_Bufx"},     F{Field::kOffset, "R_Offset"},
                                  F{Field::kSync, "F_Offset"},   F{Field::kBNum, "B_num"},
                                  F{Field::kDId, "I_id"},        F{Field::kSId, "R_id"}};
constexpr std::array kData{F{Field::kParam, "STU_num"}, F{Field::kMx, "R_Mx"},
                           F{Field::kBufx, "R_Bufx"},   F{Field::kOffset, "R_Offset"},
                           F{Field::kSync, "Sync"},     F{Field::kBNum, "B_num"},
                           F{Field::kDId, "R_id"},      F{Field::kSId, "Opaque"}};
constexpr std::array kRequestMemoryRegion{F{Field::kParam, "B_win"}, F{Field::kTLen, "T_len"},
                                          F{Field::kSId, "I_id"}};
constexpr std::array kMemoryRegionAvailable{
    F{Field::kParam, "B_win"},     F{Field::kMx, "R_Mx"},    F{Field::kBufx, "R_Bufx"},
    F{Field::kOffset, "R_Offset"}, F{Field::kTLen, "T_len"}, F{Field::kDId, "I_id"},
    F{Field::kSId, "R_id"}};
constexpr std::array kGet{F{Field::kParam, "T_len"}, F{Field::kMx, "I_Mx"},
                          F{Field::kBufx, "R_Bufx"}, F{Field::kOffset, "R_Offset"},
                          F{Field::kSync, "I_Bufx"}, F{Field::kBNum, "I_Offset"},
                          F{Field::kDId, "R_id"},    F{Field::kSId, "G_num"}};
constexpr std::array kRequestState{F{Field::kSync, "Sync"}, F{Field::kBNum, "B_num"},
                                   F{Field::kDId, "R_id"}, F{Field::kSId, "I_id"}};
constexpr std::array kRequestStateResponse{F{Field::kParam, "R_Slots"}, F{Field::kOffset, "B_seq"},
                                           F{Field::kSync, "Sync"},     F{Field::kBNum, "B_num"},
                                           F{Field::kDId, "I_id"},      F{Field::kSId, "R_id"}};
constexpr std::array kEnd{F{Field::kDId, "R_id"}, F{Field::kSId, "I_id"}};

constexpr std::array kFlags{
    FlagName{flag::kReserved, "Reserved"},   FlagName{flag::kAppend, "Append"},
    FlagName{flag::kReject, "Reject"},       FlagName{flag::kLast, "Last"},
    FlagName{flag::kOrder, "Order"},         FlagName{flag::kSendState, "Send_state"},
    FlagName{flag::kInterrupt, "Interrupt"}, FlagName{flag::kSilent, "Silent"}};

}  // namespace

// protocol: 3.10
std::span<const FieldName> fields_of(wire::Op op) {
  switch (op) {
    case Op::kRequestConnection:
      return kRequestConnection;
    case Op::kConnectionAnswer:
      return kConnectionAnswer;
    case Op::kRequestDisconnect:
    case Op::kDisconnectComplete:
      return kDisconnect;
    case Op::kDisconnectAnswer:
      return kDisconnectAnswer;
    case Op::kNoOperation:
      return kOpaque;
    case Op::kRequestMemoryRegion:
      return kRequestMemoryRegion;
    case Op::kMemoryRegionAvailable:
      return kMemoryRegionAvailable;
    case Op::kGet:
      return kGet;
    case Op::kRequestToSend:
      return kRequestToSend;
    case Op::kRequestAnswer:
    case Op::kEndAck:
      return kAnswer;
    case Op::kRequestToReceive:
      return kRequestToReceive;
    case Op::kClearToSend:
      return kClearToSend;
    case Op::kData:
      return kData;
    case Op::kRequestState:
      return kRequestState;
    case Op::kRequestStateResponse:
      return kRequestStateResponse;
    case Op::kEnd:
      return kEnd;
  }
  return {};
}

std::uint64_t get(const wire::Header& header, Field field) {
  switch (field) {
    case Field::kParam:
      return header.param;
    case Field::kMx:
      return header.mx;
    case Field::kBufx:
      return header.bufx;
    case Field::kOffset:
      return header.offset;
    case Field::kSync:
      return header.sync;
    case Field::kBNum:
      return header.b_num;
    case Field::kDId:
      return header.d_id;
    case Field::kSId:
      return header.s_id;
    case Field::kTLen:
      return header.t_len();
  }
  return 0;
}

void set(wire::Header& header, Field field, std::uint64_t value) {
  auto const word = static_cast<std::uint32_t>(value);
  auto const half = static_cast<std::uint16_t>(value);
  switch (field) {
    case Field::kParam:
      header.param = half;
      break;
    case Field::kMx:
      header.mx = half;
      break;
    case Field::kBufx:
      header.bufx = word;
      break;
    case Field::kOffset:
      header.offset = word;
      break;
    case Field::kSync:
      header.sync = word;
      break;
    case Field::kBNum:
      header.b_num = word;
      break;
    case Field::kDId:
      header.d_id = word;
      break;
    case Field::kSId:
      header.s_id = word;
      break;
    case Field::kTLen:
      header.set_t_len(value);
      break;
  }
}

std::string_view header_name(Field field) {
  for (auto const& named : kOpaque)
    if (named.field == field) return named.name;
  return "T_len";
}

std::optional<Field> find_field(wire::Op op, std::string_view name) {
  for (auto const& named : fields_of(op))
    if (named.name == name) return named.field;
  return std::nullopt;
}

std::string op_name(const wire::Header& header) {
  if (auto const* const name = wire::short_name(header.op())) return name;
  constexpr std::string_view kDigits = "0123456789abcdef";
  auto const code = static_cast<unsigned>(header.op());
  return {'0', 'x', kDigits[code >> 4], kDigits[code & 15]};
}

std::optional<wire::Op> find_op(std::string_view name) {
  for (auto const op : wire::kOperations)
    if (wire::short_name(op) == name) return op;
  return std::nullopt;
}

std::string_view function_name(wire::Function function) {
  switch (function) {
    case wire::Function::kGet:
      return "Get";
    case wire::Function::kFetchIncrement:
      return "Fetch_Increment";
    case wire::Function::kFetchDecrement:
      return "Fetch_Decrement";
    case wire::Function::kFetchClear:
      return "Fetch_Clear";
    case wire::Function::kFetchAdd:
      return "Fetch_Add";
    case wire::Function::kCompareAndSwap:
      return "Compare_And_Swap";
    case wire::Function::kFetchOpComplete:
      return "FetchOp_Complete";
  }
  return "illegal";
}

std::span<const FlagName> flag_names() {
  return kFlags;
}

// protocol: 3.5
std::uint16_t used_flags(wire::Op op) {
  constexpr std::uint16_t kQueued = flag::kSendState | flag::kInterrupt;
  switch (op) {
    case Op::kConnectionAnswer:
    case Op::kRequestStateResponse:
      return flag::kReject;
    case Op::kRequestAnswer:
    case Op::kMemoryRegionAvailable:
      return flag::kReject | kQueued;
    case Op::kGet:
      return flag::kReject | flag::kSilent | flag::kFunction | kQueued;
    case Op::kData:
      return flag::kAppend | flag::kLast | flag::kOrder | flag::kSilent | kQueued;
    case Op::kNoOperation:
    case Op::kRequestMemoryRegion:
    case Op::kRequestToSend:
    case Op::kRequestToReceive:
    case Op::kClearToSend:
    case Op::kEnd:
    case Op::kEndAck:
      return kQueued;
    default:
      return 0;
  }
}

}  // namespace stp::replay
