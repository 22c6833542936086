// SPDX-License-Identifier: BSD-3-Clause
// Users' requests are checked as if they came from a stranger: through stpd they do.
#include <cerrno>

#include "stp/engine/impl.h"

namespace stp {
namespace {

using wire::Op;

bool exponent(std::uint32_t value, unsigned low, unsigned high) {
  return value >= low && value <= high;
}

}  // namespace

int Node::Impl::check_request(Vc& vc, const SendEntry& entry) {
  auto const& h = entry.header;
  if (wire::short_name(h.op()) == nullptr || h.has(wire::flag::kReserved)) return -EINVAL;
  if (h.op() != Op::kGet && h.has(wire::flag::kFunction)) return -EINVAL;
  if (h.op() == Op::kData) return check_data_request(vc, entry);
  if (entry.payload_length != 0 && entry.payload_length != wire::kOptionSize) return -EINVAL;
  bool const no = h.has(wire::flag::kReject);
  switch (h.op()) {
    case Op::kRequestConnection:
    case Op::kConnectionAnswer:
    case Op::kRequestDisconnect:
    case Op::kDisconnectAnswer:
    case Op::kDisconnectComplete:
      return -EPERM;
    case Op::kRequestToSend:
      return exponent(h.mx, wire::kMinBlocksize, wire::kMaxBlocksize) ? 0 : -EINVAL;
    case Op::kRequestToReceive:
    case Op::kRequestMemoryRegion:
      return h.t_len() != 0 ? 0 : -EINVAL;
    case Op::kClearToSend: {
      if (!exponent(h.param, wire::kMinBlocksize, wire::kMaxBlocksize)) return -EINVAL;
      if (auto const error = check_grant_request(vc, h); error != 0) return error;
      return vc.inbound.grant(h);
    }
    case Op::kMemoryRegionAvailable: {
      if (no) return 0;
      if (auto const error = check_grant_request(vc, h); error != 0) return error;
      return vc.inbound.open_region(h);
    }
    case Op::kEnd:  // the user is the receiver of what ends: its own id stands in S_id
      vc.inbound.end(h.s_id);
      return 0;
    default:
      return 0;
  }
}

// A CTS or MRA can name only an Mx of this connection, and memory inside it.
int Node::Impl::check_grant_request(const Vc& vc, const wire::Header& h) const {
  std::byte* memory = nullptr;
  return check_memory(vc, h, 0, permit::kData, memory) == Counter::kNone ? 0 : -ERANGE;
}

int Node::Impl::check_data_request(const Vc& vc, const SendEntry& entry) const {
  auto const& h = entry.header;
  if (entry.payload_length != 0 && entry.payload_length != wire::kAppendSize) return -EINVAL;
  if (h.offset >= std::uint64_t{1} << vc.peer_bufsize) return -EINVAL;
  auto const start = Address{h.bufx, h.offset}.linear(vc.peer_bufsize);
  if (start + entry.length > std::uint64_t{1} << 32 << vc.peer_bufsize) return -EINVAL;
  if (h.param + stu_count(start, entry.length, vc.send_stu_log2) > Inbound::kMaxStusOfBlock)
    return -EINVAL;
  if (entry.length == 0) return 0;
  return vc.endpoint->transmit.covers(entry.bufx, entry.offset, entry.length) ? 0 : -ERANGE;
}

}  // namespace stp
