// SPDX-License-Identifier: BSD-3-Clause
#include "stp/node/peer_gets.h"

#include <atomic>
#include <cstring>

#include "stp/base/assert.h"
#include "stp/base/scarce_memory.h"
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

std::uint32_t length_of(const wire::Get& get) {
  return get.t_len == 0 ? 65'536 : get.t_len;
}

}  // namespace

// Whether the peer may access `length` bytes, at least one, from `from` on of the region `r_id`
// with one of the permissions `permission`. `memory` is where the first of them lies.
// protocol: 7.15
DropReason PeerGets::check(const Vc& vc, std::uint32_t r_id, Address from, std::uint64_t length,
                           std::uint8_t permission, std::byte*& memory) const {
  STP_ASSERT(length > 0, "a peer accesses at least one byte");
  const auto* const region = vc.inbound.transfer(r_id);
  if (region == nullptr || !region->region) return DropReason::kNoGrant;
  const auto bufsize = vc.endpoint->config.bufsize;
  const auto at = from.linear(bufsize);
  if (at < region->start || at + length > region->start + region->t_len)
    return DropReason::kOutsideGrant;
  wire::Header named;
  named.mx = region->mx;
  named.bufx = from.bufx;
  named.offset = from.offset;
  if (const auto bad = use_.memory.check(vc.reach(), named, 0, permission, memory);
      bad != DropReason::kNone)
    return bad;
  // All buffers between two of an Mx are bound, and belong to its region.
  const auto last = Address::from_linear(at + length - 1, bufsize).bufx;
  return use_.memory.named(region->mx).contains(last) ? DropReason::kNone : DropReason::kBadBufx;
}

bool PeerGets::may_land(const Vc& vc, const wire::Get& get) {
  return get.i_offset < std::uint64_t{1} << vc.peer_bufsize;
}

// The memory that a FetchOp changes; nullptr: it is refused. Adjacent buffers need not lie together
// in memory, so the 8 bytes must be of one piece.
// protocol: 7.17
std::byte* PeerGets::operand(const Vc& vc, const wire::Get& get) const {
  constexpr auto kSize = sizeof(std::uint64_t);
  const Address at{get.r_bufx, get.r_offset};
  std::byte* memory = nullptr;
  if (get.t_len != kSize || !may_land(vc, get) ||
      check(vc, get.r_id, at, kSize, permit::kFetchOp, memory) != DropReason::kNone)
    return nullptr;
  const auto& range = vc.endpoint->receive;
  RegionId of = kNoneId;
  const auto bytes = range.run(at.linear(range.bufsize()), kSize, of);
  const bool aligned = reinterpret_cast<std::uintptr_t>(memory) % kSize == 0;
  return bytes.size() == kSize && aligned ? memory : nullptr;
}

// protocol: 9.13
void PeerGets::on_get(Vc& vc, const wire::Frame& frame) {
  const auto& h = frame.header;
  // Without memory there is no answer: the peer asks again.
  if (!vc.one_sided)
    vc.one_sided = within_memory([] { return std::make_unique<OneSided>(); },
                                 [] { return std::unique_ptr<OneSided>(); });
  if (!vc.one_sided) return use_.common.counters.add(Counter::kAnswersFull);
  if (is_fetch(h)) return on_fetch(vc, frame);
  const auto get = wire::decode_as<wire::Get>(h);
  std::byte* memory = nullptr;
  if (!may_land(vc, get) || check(vc, get.r_id, {get.r_bufx, get.r_offset}, length_of(get),
                                  permit::kGet, memory) != DropReason::kNone)
    return refuse(vc, h);
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
    if (auto* const memory = operand(vc, get); memory != nullptr) {
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
  entry.length = length_of(get);
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
  STP_ASSERT(done < answer.length, "something is left to read");
  const auto bufsize = vc.endpoint->config.bufsize;
  const auto from =
      Address::from_linear(Address{answer.bufx, answer.offset}.linear(bufsize) + done, bufsize);
  std::byte* memory = nullptr;
  return check(vc, answer.header.d_id, from, answer.length - done, permit::kGet, memory) ==
         DropReason::kNone;
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
  vc.is_sending = true;
  vc.sending.done = 0;
  vc.sending.stu_num = 0;
  if (slot) use_.states.spend(vc, now);
  return true;
}

}  // namespace stp
