// SPDX-License-Identifier: BSD-3-Clause
// The users' requests and memory, as the trace shows them.
#include <algorithm>
#include <bit>

#include "stp/wire/operations.h"
#include "stp/wire/tiling.h"
#include "tools/replay/play/node_subject.h"

namespace stp::replay {
namespace {

using wire::Op;

void copy_payload(Bytes from, SendEntry& entry) {
  std::ranges::copy(from, reinterpret_cast<std::byte*>(entry.payload));
  entry.payload_length = static_cast<std::uint8_t>(from.size());
}

}  // namespace

// Returns the live Mx for the memory that a CTS, MRA or GET names, or 0 if it is not the user's.
std::uint16_t NodeSubject::live_mx(Vc& vc, const wire::Header& h) {
  auto& user = *vc.user;
  const bool get = h.op() == Op::kGet;
  const auto at = (get ? Address{h.sync, h.b_num} : Address{h.bufx, h.offset})
                      .linear(user.plan->config.bufsize);
  auto* const landing = user.landing_of(at);
  if (h.mx == 0 || landing == nullptr) return 0;
  auto& mx = landing->mx[h.mx];
  if (mx != 0) return mx;
  if (node_.alloc_mx(landing->region, kNoneId, permit::kAll, mx) != 0) return 0;
  names_.bind(Name::kMx, h.mx, mx);
  return mx;
}

// A user may have written to its memory before a new grant, so its content is unknown again. A
// repeated grant changes nothing.
void NodeSubject::forget_bytes(Vc& vc, const wire::Header& grant) {
  auto same = grant;
  same.cksum = 0;
  if (grant.op() == Op::kClearToSend) same.sync = 0;  // F_Offset
  auto& before =
      vc.grants[{grant.op(), grant.s_id, grant.op() == Op::kClearToSend ? grant.b_num : 0}];
  if (std::exchange(before, same) == same) return;
  const auto at = Address{grant.bufx, grant.offset}.linear(vc.user->plan->config.bufsize);
  auto* const landing = vc.user->landing_of(at);
  if (landing == nullptr) return;
  const auto from = at - landing->start;
  const auto length = std::min(granted_bytes(grant), landing->known.size() - from);
  landing->known.forget(from, length);
}

void NodeSubject::request(Vc& vc, std::size_t at) {
  const auto& frame = trace_[at].decoded.frame;
  SendEntry entry{};
  entry.header = frame.header;
  entry.destination_mac = frame.dst.to_u64();
  const auto op = frame.header.op();
  if (op == Op::kData && !fill_data(vc, at, entry)) return;
  if (op == Op::kClearToSend || op == Op::kMemoryRegionAvailable) forget_bytes(vc, frame.header);
  if (wire::operation(op).own == wire::Own::kMx) entry.header.mx = live_mx(vc, frame.header);
  if (op != Op::kData) copy_payload(frame.option, entry);
  const auto refused = vc.channel.refused();
  if (!vc.channel.send(entry)) return trouble(at, "the Node takes no more requests");
  node_.kick(vc.id);
  pump();
  if (vc_of(frame.header.s_port) == &vc && vc.channel.refused() != refused)
    trouble(at, "the Node does not send what breaks the protocol");
}

// Makes one request for a whole Block when its first STU is due. Returns false if there is none to
// make.
bool NodeSubject::fill_data(Vc& vc, std::size_t at, SendEntry& entry) {
  const auto& h = trace_[at].decoded.frame.header;
  const auto stus = plan_.request_at(at);
  if (stus.empty()) return false;
  auto& user = *vc.user;
  const auto place = user.transmit_memory.all().subspan(user.sent);
  std::size_t length = 0;
  for (const auto stu : stus) {
    const auto bytes = trace_[stu].decoded.frame.stu;
    if (length + bytes.size() > place.size()) return false;
    std::ranges::copy(bytes, place.begin() + static_cast<std::ptrdiff_t>(length));
    length += bytes.size();
    if (stu != at) requested_.insert(stu);
  }
  if (requested_.contains(at)) return false;
  const auto& last = trace_[stus.back()].decoded.frame;
  const auto from = Address::from_linear(user.sent, user.plan->config.bufsize);
  // The flags of the Last apply to the Block.
  entry.header.op_flags =
      h.op_flags | (last.header.op_flags & (wire::flag::kSendState | wire::flag::kInterrupt));
  entry.header.op_flags &= static_cast<std::uint16_t>(~(wire::flag::kLast | wire::flag::kAppend));
  entry.length = static_cast<std::uint32_t>(length);
  entry.bufx = from.bufx;
  entry.offset = from.offset;
  copy_payload(last.append, entry);
  user.sent += length;
  return true;
}

// Prepares the memory that a Get reads. Bytes that no earlier frame of the trace has written are
// taken from the answer.
void NodeSubject::prepare_get(std::size_t at) {
  const auto& get = trace_[at].decoded.frame.header;
  auto* const vc = vc_of(get.d_port);
  if (vc == nullptr) return;
  const auto place = Address{get.bufx, get.offset}.linear(vc->user->plan->config.bufsize);
  auto* const landing = vc->user->landing_of(place);
  if (landing == nullptr) return;
  auto offset = place - landing->start;
  const bool number = get.function() != wire::Function::kGet;
  for (const auto stu : plan_.answer_to(at)) {
    const auto told = trace_[stu].decoded.frame.stu;
    std::vector<std::byte> bytes(told.begin(), told.end());
    // protocol: 7.17
    if (number && std::endian::native == std::endian::little) std::ranges::reverse(bytes);
    for (const auto byte : bytes) {
      if (offset < landing->known.size() && !landing->known.has(offset)) {
        landing->memory.all()[offset] = byte;
        landing->known.add(offset);
      }
      ++offset;
    }
  }
}

void NodeSubject::learn_data(std::size_t at) {
  const auto& frame = trace_[at].decoded.frame;
  auto* const vc = vc_of(frame.header.d_port);
  if (vc == nullptr) return;
  const auto place =
      Address{frame.header.bufx, frame.header.offset}.linear(vc->user->plan->config.bufsize);
  auto* const landing = vc->user->landing_of(place);
  if (landing == nullptr) return;
  const auto from = place - landing->start;
  for (std::size_t i = 0; i < frame.stu.size() && from + i < landing->known.size(); ++i)
    landing->known.add(from + i);
}

}  // namespace stp::replay
