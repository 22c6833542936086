// SPDX-License-Identifier: BSD-3-Clause
// Users' requests are checked as if they came from a stranger: through stpd they do.
#include <cerrno>

#include "stp/engine/impl.h"
#include "stp/wire/syntax.h"

namespace stp {
namespace {

using wire::Op;

bool connection_operation(Op op) { return op <= Op::kDisconnectComplete; }

}  // namespace

int Node::Impl::check_request(Vc& vc, const SendEntry& entry) {
  auto h = entry.header;
  h.s_port = vc.local_port;
  if (wire::short_name(h.op()) == nullptr) return -EINVAL;
  if (connection_operation(h.op())) return -EPERM;
  if (h.op() == Op::kData) return check_data_request(vc, entry);
  // What the peer would drop as a syntax error is not sent.
  if (wire::check_op(h) != Counter::kNone || wire::check_fields(h) != Counter::kNone ||
      (entry.payload_length != 0 && entry.payload_length != wire::kOptionSize) ||
      (wire::needs_operands(h) && entry.payload_length == 0))
    return -EINVAL;
  switch (h.op()) {
    case Op::kClearToSend: {
      auto const error = check_grant_request(vc, h);
      return error != 0 ? error : vc.inbound.grant(h);
    }
    case Op::kMemoryRegionAvailable: {
      if (h.has(wire::flag::kReject)) return 0;
      auto const error = check_grant_request(vc, h);
      return error != 0 ? error : vc.inbound.open_region(h);
    }
    case Op::kEnd:  // the user is the receiver of what ends: its own id stands in S_id
      vc.inbound.end(h.s_id);
      return 0;
    default: return 0;
  }
}

// A CTS or MRA can name only an Mx of this connection, and memory inside it.
int Node::Impl::check_grant_request(const Vc& vc, const wire::Header& h) const {
  std::byte* memory = nullptr;
  return check_memory(vc, h, 0, permit::kData, memory) == Counter::kNone ? 0 : -ERANGE;
}

int Node::Impl::check_data_request(const Vc& vc, const SendEntry& entry) const {
  auto const& h = entry.header;
  if (h.has(wire::flag::kReserved | wire::flag::kFunction) ||
      (entry.payload_length != 0 && entry.payload_length != wire::kAppendSize))
    return -EINVAL;
  if (h.offset >= std::uint64_t{1} << vc.peer_bufsize) return -EINVAL;
  auto const start = Address{h.bufx, h.offset}.linear(vc.peer_bufsize);
  if (start + entry.length > std::uint64_t{1} << 32 << vc.peer_bufsize) return -EINVAL;
  if (h.param + stu_count(start, entry.length, vc.send_stu_log2) > Inbound::kMaxStusOfBlock)
    return -EINVAL;
  if (entry.length == 0) return 0;
  return vc.endpoint->transmit.covers(entry.bufx, entry.offset, entry.length) ? 0 : -ERANGE;
}

}  // namespace stp
