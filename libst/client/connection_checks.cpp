// SPDX-License-Identifier: BSD-3-Clause
// The checks of st_tx and st_utx in the caller's thread. The Node checks every request again.
#include "libst/client/connection.h"
#include "libst/client/error.h"
#include "stp/node/inbound/inbound.h"
#include "stp/wire/syntax.h"
#include "stp/wire/tiling.h"

namespace stp::client {
namespace {

using wire::Op;

bool is_connection_op(Op op) {
  return op == Op::kRequestConnection || op == Op::kConnectionAnswer ||
         op == Op::kRequestDisconnect || op == Op::kDisconnectAnswer ||
         op == Op::kDisconnectComplete;
}

// protocol: 7.17
constexpr std::uint32_t kOperand = sizeof(std::uint64_t);
bool is_fetch(const wire::Header& header) {
  return header.op() == Op::kGet && header.has(wire::flag::kFunction) &&
         header.function() != wire::Function::kFetchOpComplete;
}

// Ignores what the program does not set: s_port, and the flags Append and Last of DATA. No other
// field of DATA can be wrong, so DATA is checked without a copy of the header: copying one that has
// just been written is slow.
DropReason wrong_in(const wire::Header& header) {
  constexpr unsigned kOwn = wire::flag::kAppend | wire::flag::kLast;
  const bool is_data = header.op() == Op::kData;
  wire::Header checked{};
  checked.op_flags = static_cast<std::uint16_t>(header.op_flags & ~(is_data ? kOwn : 0U));
  const auto wrong = wire::check_op(checked);
  if (is_data || wrong != DropReason::kNone) return wrong;
  checked = header;
  checked.s_port = 1;
  return wire::check_fields(checked);
}

int check_syntax(const wire::Header& header) {
  const auto wrong = wrong_in(header);
  if (wrong == DropReason::kNone) return 0;
  return fail(-EINVAL, "the header is invalid: " + std::string(name_of(wrong)));
}

}  // namespace

int Connection::check(const Sending& what) const {
  const auto& header = what.header;
  if (is_connection_op(header.op()))
    return fail(-EPERM, "only st_connect, st_accept and st_close send connection operations");
  if (endpoint_->connectionless())
    if (const auto error = check_destination(what); error != 0) return error;
  if (const auto error = check_syntax(header); error != 0) return error;
  if (header.op() == Op::kData) return check_data(what);
  if (what.length != 0)
    return fail(-EINVAL,
                "len is " + std::to_string(what.length) + ": it must be 0 for all but DATA");
  if (is_fetch(header) && !header.has(wire::flag::kReject) &&
      (header.param != kOperand || header.offset % kOperand != 0 || header.b_num % kOperand != 0))
    return fail(-EINVAL, "a FetchOp must be of 8 bytes, and r_offset and i_offset multiples of 8");
  if (wire::needs_operands(header) && what.payload == nullptr)
    return fail(-EINVAL, "opt_pay is NULL: this function needs its operands there");
  const bool grants = header.op() == Op::kClearToSend || header.op() == Op::kMemoryRegionAvailable;
  if (!grants || header.has(wire::flag::kReject)) return 0;
  if (header.offset >> bufsize_ == 0 &&
      endpoint_->mappings().can_grant(vc_, header.mx, header.bufx))
    return 0;
  return fail(-ERANGE, "Mx " + std::to_string(header.mx) + ", Bufx " + std::to_string(header.bufx) +
                           ", Offset " + std::to_string(header.offset) +
                           " is not memory of this connection");
}

int Connection::check_destination(const Sending& what) {
  const auto mac = MacAddr::from_u64(what.destination);
  if (mac.to_u64() != what.destination || mac.is_zero() || mac.is_group())
    return fail(-EINVAL, "macaddr must be the address of one station: use st_macaddr");
  if (what.header.d_port == 0) return fail(-EINVAL, "d_port must be non-zero");
  return 0;
}

int Connection::check_data(const Sending& what) const {
  if (what.offset >> bufsize_ != 0)
    return fail(-ERANGE, "the offset is beyond the end of its buffer");
  if (what.length != 0 &&
      !endpoint_->mappings().can_send(what.bufx, what.offset, what.length, bufsize_))
    return fail(-ERANGE, "no transmit memory is mapped there");
  const auto& header = what.header;
  if (header.offset >> remote_bufsize_ != 0)
    return fail(-ERANGE, "the destination's Offset is beyond the end of its buffer");
  const auto at = Address{header.bufx, header.offset}.linear(remote_bufsize_);
  if (stu_count(at, what.length, send_stu_log2_) > Inbound::kMaxStusOfBlock)
    return fail(-EINVAL, "len is " + std::to_string(what.length) + ": a Block has at most " +
                             std::to_string(Inbound::kMaxStusOfBlock) + " STUs of " +
                             std::to_string(std::uint64_t{1} << send_stu_log2_) + " bytes");
  return 0;
}

}  // namespace stp::client
