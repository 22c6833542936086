// SPDX-License-Identifier: BSD-3-Clause
#include "stp/node/frame_sender.h"

#include <algorithm>
#include <cerrno>

#include "stp/base/scarce_memory.h"
#include "stp/wire/syntax.h"

namespace stp {
namespace {

using wire::Op;

// Out of memory for one user's request fails only that request.
template <typename Work>
int request_within_memory(Work&& work) {
  return within_memory(work, [] { return -ENOMEM; });
}

}  // namespace

// protocol: 7.7, 12.4
int RequestChecks::check(Vc& vc, const SendEntry& entry, Time now, std::uint32_t part) {
  const auto op = entry.header.op();
  if (op != Op::kData && wire::short_name(op) == nullptr) return -EINVAL;
  if (wire::syntax_of(op).when == wire::When::kByState) return -EPERM;  // Nodes alone send it
  if (vc.connectionless()) {
    if (const auto error = address(vc, entry); error != 0) return error;
  }
  return op == Op::kData ? check_data(vc, entry) : check_control(vc, entry, now, part);
}

int RequestChecks::check_control(Vc& vc, const SendEntry& entry, Time now, std::uint32_t part) {
  const auto op = entry.header.op();
  auto h = entry.header;
  h.s_port = vc.local_port;
  // Refuses what the peer would drop as a syntax error.
  if (wire::check_op(h) != DropReason::kNone || wire::check_fields(h) != DropReason::kNone ||
      (entry.payload_length != 0 && entry.payload_length != wire::kOptionSize) ||
      (wire::needs_operands(h) && entry.payload_length == 0))
    return -EINVAL;
  switch (op) {
    case Op::kClearToSend: {
      const auto error = check_grant(vc, h);
      if (error != 0 || vc.connectionless()) return error;
      const auto limit = entry.limited != 0 ? entry.length : ~std::uint64_t{0};
      const auto granted_error = request_within_memory([&] {
        return vc.inbound.grant(wire::decode_as<wire::ClearToSend>(h), limit, now, part);
      });
      use_.tidying.later(vc);
      if (granted_error == 0) use_.recovery.expect_data(vc, now);
      use_.pacing.watch(vc, now);
      return granted_error;
    }
    case Op::kGet:
      return check_get(vc, h);
    case Op::kMemoryRegionAvailable: {
      if (h.has(wire::flag::kReject)) return 0;
      if (const auto error = check_grant(vc, h); error != 0) return error;
      if (vc.connectionless()) return 0;
      const auto error = request_within_memory(
          [&] { return vc.inbound.open_region(wire::decode_as<wire::MemoryRegionAvailable>(h)); });
      use_.tidying.later(vc);
      return error;
    }
    case Op::kEndAck:
      vc.inbound.requests().forget_ended(h.d_id);
      [[fallthrough]];
    case Op::kEnd:  // where the user receives what ends, its own id stands in S_id
      use_.pacing.drop(vc, h.s_id);
      // protocol: 7.12
      vc.inbound.end(h.s_id);
      use_.tidying.later(vc);
      return 0;
    case Op::kRequestConnection:
    case Op::kConnectionAnswer:
    case Op::kRequestDisconnect:
    case Op::kDisconnectAnswer:
    case Op::kDisconnectComplete:
    case Op::kNoOperation:
    case Op::kRequestMemoryRegion:
    case Op::kRequestToSend:
    case Op::kRequestAnswer:
    case Op::kRequestToReceive:
    case Op::kData:
    case Op::kRequestState:
    case Op::kRequestStateResponse:
      return 0;
  }
  return 0;
}

// The answer to a Get may land only where this user may receive.
// protocol: 7.16
int RequestChecks::check_get(Vc& vc, const wire::Header& h) {
  if (h.has(wire::flag::kReject)) return 0;
  if (h.function() == wire::Function::kFetchOpComplete) {
    vc.inbound.answers().forget(h.d_id, h.s_id);  // the user no longer waits for an answer
    return 0;
  }
  std::uint64_t length = h.param == 0 ? 65'536 : h.param;
  if (h.has(wire::flag::kFunction) && (h.param != sizeof(std::uint64_t) || h.b_num % 8 != 0))
    return -EINVAL;
  auto landing = h;
  landing.bufx = h.sync;
  landing.offset = h.b_num;
  const auto error = check_grant(vc, landing);
  if (error != 0) return error;
  const auto& mx = use_.memory.named(h.mx);
  const auto bufsize = vc.endpoint->config.bufsize;
  const auto end = Address{h.sync, h.b_num}.linear(bufsize) + length;
  if (end > (std::uint64_t{mx.first} + mx.count) << bufsize) return -ERANGE;
  if (vc.connectionless()) return 0;
  return request_within_memory([&] {
    return vc.inbound.answers().expect(wire::decode_as<wire::Get>(h), length,
                                       h.has(wire::flag::kFunction), vc.inbound.tiles());
  });
}

// A CTS or MRA must name an Mx of this connection, and memory inside it.
// protocol: 7.8
int RequestChecks::check_grant(const Vc& vc, const wire::Header& h) const {
  std::byte* memory = nullptr;
  // The Mx decides what an open region permits; memory for a CTS or an answer needs Data.
  const auto permission = h.op() == Op::kMemoryRegionAvailable ? permit::kAll : permit::kData;
  return use_.memory.check(vc.reach(), h, 0, permission, memory) == DropReason::kNone ? 0 : -ERANGE;
}

// STU_num of the first byte of a user's DATA: not 0 if it repeats a Block's tail.
// protocol: 8.12
std::uint32_t RequestChecks::first_stu(const Vc& vc, const wire::Header& h) {
  const auto at = Address{h.bufx, h.offset}.linear(vc.peer_bufsize);
  const auto start = vc.permitted.start_of(h.d_id, h.b_num);
  if (!start || at < *start) return 0;
  const auto tiles = (at >> vc.send_stu_log2) - (*start >> vc.send_stu_log2);
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(tiles, Inbound::kMaxStusOfBlock));
}

// The cost of a request beside its frames, in units of one short request: the check that all its
// memory is mapped takes a step per buffer, or per page of buffers.
std::size_t RequestChecks::work_of(const Vc& vc, const SendEntry& entry) {
  constexpr std::uint64_t kStepsOfUnit = 64;
  constexpr std::size_t kControlWork = TransferTable::kMost / kStepsOfUnit;
  // A new Transfer or region searches the table for a place.
  if (entry.header.op() != wire::Op::kData) return kControlWork;
  const auto buffers = std::uint64_t{entry.length} >> vc.endpoint->transmit.bufsize();
  if (buffers < kStepsOfUnit) return 1;
  const auto steps = std::min<std::uint64_t>(buffers, 2 * BufxRange::kPageEntries) +
                     (buffers >> BufxRange::kPageBits);
  return 1 + static_cast<std::size_t>(steps / kStepsOfUnit);
}

int RequestChecks::check_data(Vc& vc, const SendEntry& entry) {
  const auto& h = entry.header;
  if (h.has(wire::flag::kReserved | wire::flag::kFunction) ||
      (entry.payload_length != 0 && entry.payload_length != wire::kAppendSize))
    return -EINVAL;
  if (h.offset >= std::uint64_t{1} << vc.peer_bufsize) return -EINVAL;
  const auto start = Address{h.bufx, h.offset}.linear(vc.peer_bufsize);
  if (start + entry.length > std::uint64_t{1} << 32 << vc.peer_bufsize) return -EINVAL;
  vc.sending.stu_num = first_stu(vc, h);
  if (vc.sending.stu_num + stu_count(start, entry.length, vc.send_stu_log2) >
      Inbound::kMaxStusOfBlock)
    return -EINVAL;
  if (entry.length == 0) return 0;
  return vc.endpoint->transmit.covers(entry.bufx, entry.offset, entry.length) ? 0 : -ERANGE;
}

// Over a connectionless Port, each request names its destination; the Node fills in the source.
// protocol: 11.11
int RequestChecks::address(Vc& vc, const SendEntry& entry) {
  const auto to = MacAddr::from_u64(entry.destination_mac);
  const bool station = to.to_u64() == entry.destination_mac && !to.is_zero() && !to.is_group();
  if (!station || entry.header.d_port == 0) return -EINVAL;
  vc.peer_mac = to;
  vc.peer_port = entry.header.d_port;
  vc.peer_key = entry.header.d_key;
  return 0;
}

}  // namespace stp
