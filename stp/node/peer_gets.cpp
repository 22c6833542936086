// SPDX-License-Identifier: BSD-3-Clause
#include "stp/node/peer_gets.h"

#include <atomic>
#include <cstring>

#include "stp/base/assert.h"
#include "stp/base/work_meter.h"
#include "stp/wire/big_endian.h"

namespace stp {
namespace {

using wire::Function;

// Executes the function and returns the old value. It is one atomic step, because the user's
// threads may change the same word.
// protocol: 7.17, 9.14
std::uint64_t execute(const wire::Frame& frame, std::byte* memory) {
  std::atomic_ref<std::uint64_t> word(*reinterpret_cast<std::uint64_t*>(memory));
  switch (frame.header.function()) {
    case Function::kFetchIncrement:
      return word.fetch_add(1);
    case Function::kFetchDecrement:
      return word.fetch_sub(1);
    case Function::kFetchClear:
      return word.exchange(0);
    case Function::kFetchAdd:
      return word.fetch_add(wire::load64(frame.option.data()));
    case Function::kCompareAndSwap: {
      auto before = wire::load64(frame.option.data() + 8);
      word.compare_exchange_strong(before, wire::load64(frame.option.data()));
      return before;
    }
    case Function::kGet:
    case Function::kFetchOpComplete:
      break;  // no FetchOp
  }
  return word.load();
}

bool is_fetch(const wire::Header& h) {
  return h.function() != Function::kGet;
}

}  // namespace

// Whether the peer may read or change `length` bytes of the region that the header names.
// protocol: 7.15
DropReason PeerGets::check(const Vc& vc, const wire::Header& h, std::uint64_t length,
                           std::byte*& memory) const {
  const auto get = wire::decode_as<wire::Get>(h);
  const auto* const region = vc.inbound.transfer(get.r_id);
  if (region == nullptr || !region->region) return DropReason::kNoGrant;
  const auto bufsize = vc.endpoint->config.bufsize;
  const auto at = Address{get.r_bufx, get.r_offset}.linear(bufsize);
  if (at < region->start || at + length > region->start + region->t_len)
    return DropReason::kOutsideGrant;
  auto named = h;
  named.mx = region->mx;
  const auto permission = is_fetch(h) ? permit::kFetchOp : permit::kGet;
  if (const auto bad = use_.memory.check(vc, named, 0, permission, memory);
      bad != DropReason::kNone)
    return bad;
  if (!vc.endpoint->receive.covers(get.r_bufx, get.r_offset, length)) return DropReason::kBadBufx;
  if (get.i_offset >= std::uint64_t{1} << vc.peer_bufsize) return DropReason::kBadOffset;
  const bool aligned = reinterpret_cast<std::uintptr_t>(memory) % sizeof(std::uint64_t) == 0;
  if (is_fetch(h) && (length != sizeof(std::uint64_t) || !aligned)) return DropReason::kBadOffset;
  return DropReason::kNone;
}

// protocol: 9.13
void PeerGets::on_get(Vc& vc, const wire::Frame& frame) {
  const auto& h = frame.header;
  if (!vc.one_sided) vc.one_sided = std::make_unique<OneSided>();
  if (is_fetch(h)) return on_fetch(vc, frame);
  std::byte* memory = nullptr;
  const auto t_len = wire::decode_as<wire::Get>(h).t_len;
  const auto length = t_len == 0 ? std::uint64_t{65'536} : t_len;
  if (check(vc, h, length, memory) != DropReason::kNone) return refuse(vc, h);
  use_.common.counters.add(Counter::kRxGets);
  reply(vc, h, Sending::Source::kRegion, 0);
}

// Executes a FetchOp exactly once. The result stays until the requester confirms it. The fact that
// it was executed stays for as long as a duplicate can be distinguished from a new request.
// protocol: 9.15, 9.16
void PeerGets::on_fetch(Vc& vc, const wire::Frame& frame) {
  using Fetch = OneSided::Fetch;
  const auto& h = frame.header;
  auto& side = *vc.one_sided;
  const auto get = wire::decode_as<wire::Get>(h);
  auto fetch = side.seen(get.g_num);
  if (fetch == Fetch::kStale) return use_.common.drop(DropReason::kStaleFetch);
  if (h.function() == Function::kFetchOpComplete) {
    if (fetch == Fetch::kDone) side.confirm(get.g_num);
    return;
  }
  if (fetch == Fetch::kNew) {
    std::byte* memory = nullptr;
    if (check(vc, h, get.t_len, memory) == DropReason::kNone) {
      side.done(get.g_num, execute(frame, memory));
      fetch = Fetch::kDone;
      use_.common.counters.add(Counter::kRxFetchOps);
    } else {
      side.refuse(get.g_num);
      fetch = Fetch::kRefused;
    }
  }
  if (fetch == Fetch::kRefused) return refuse(vc, h);
  if (fetch == Fetch::kDone) reply(vc, h, Sending::Source::kValue, side.result(get.g_num));
}

// protocol: 9.17
void PeerGets::refuse(const Vc& vc, const wire::Header& h) {
  use_.common.counters.add(Counter::kGetRefused);
  auto no = h;
  no.op_flags |= wire::flag::kReject;
  no.d_port = vc.peer_port;
  no.s_port = vc.local_port;
  no.d_key = vc.peer_key;
  use_.common.answer(vc, no);
}

// Queues the DATA that answers. It is sent like a user's request and needs a Slot.
// protocol: 9.12
void PeerGets::reply(Vc& vc, const wire::Header& h, Sending::Source source, std::uint64_t value) {
  const auto get = wire::decode_as<wire::Get>(h);
  if (vc.one_sided->owes(get.g_num)) return;  // a repeat; the answer is about to leave
  OneSided::Reply reply{{}, source};
  auto& entry = reply.entry;
  entry.header = wire::to_header(wire::Data{.r_mx = get.i_mx,
                                            .r_bufx = get.i_bufx,
                                            .r_offset = get.i_offset,
                                            .b_num = get.g_num,
                                            .r_id = get.r_id},
                                 h.op_flags & (wire::flag::kInterrupt | wire::flag::kSilent));
  entry.bufx = get.r_bufx;
  entry.offset = get.r_offset;
  entry.length = get.t_len == 0 ? 65'536 : get.t_len;
  if (source == Sending::Source::kValue) {
    entry.length = sizeof value;  // a repeat may name another length
    auto* const bytes = reinterpret_cast<std::byte*>(entry.payload);
    wire::store64(bytes, value);
  }
  if (!vc.one_sided->owe(reply)) return use_.common.counters.add(Counter::kAnswersFull);
  use_.turns.enter(vc);
}

// Whether the peer may still read what is left of an answer after `done` bytes. The grant may have
// ended since the Get came, and the same Bufx may be of other memory now.
// protocol: 7.5
bool PeerGets::may_read(const Vc& vc, const SendEntry& answer, std::uint64_t done) const {
  const auto* const region = vc.inbound.transfer(answer.header.d_id);
  if (region == nullptr || !region->region) return false;
  const auto bufsize = vc.endpoint->config.bufsize;
  const auto at =
      Address::from_linear(Address{answer.bufx, answer.offset}.linear(bufsize) + done, bufsize);
  wire::Header named;
  named.mx = region->mx;
  named.bufx = at.bufx;
  named.offset = at.offset;
  std::byte* memory = nullptr;
  return use_.memory.check(vc, named, 0, permit::kGet, memory) == DropReason::kNone;
}

// The peer repeats its Get, and is refused then.
bool PeerGets::has_answer(Vc& vc) {
  auto& side = *vc.one_sided;
  for (const auto* reply = side.next(); reply != nullptr; reply = side.next()) {
    if (reply->source != Sending::Source::kRegion || may_read(vc, reply->entry, 0)) return true;
    work::count("answers dropped");
    use_.common.counters.add(Counter::kGetRefused);
    side.pop();
  }
  return false;
}

bool PeerGets::may_go_on(const Vc& vc) const {
  STP_ASSERT(vc.sending.source == Sending::Source::kRegion, "it sends from a region");
  return may_read(vc, vc.sending.entry, vc.sending.done);
}

// Starts sending the oldest reply. False: no credit for it.
bool PeerGets::send_next(Vc& vc, Time now) {
  const auto& reply = *vc.one_sided->next();
  const bool slot = wire::consumes_slot(reply.entry.header);
  if (slot && !use_.states.has_credit(vc, now)) return false;
  vc.sending.entry = reply.entry;
  vc.sending.source = reply.source;
  vc.one_sided->pop();
  vc.sending.active = true;
  vc.sending.done = 0;
  vc.sending.stu_num = 0;
  if (slot) use_.states.spend(vc, now);
  return true;
}

}  // namespace stp
