// SPDX-License-Identifier: BSD-3-Clause
// Requests that a user answers: Read (RTR), memory regions (RMR, MRA); and End.
#include <algorithm>
#include <cerrno>

#include "stp/base/assert.h"
#include "stp/transfer/message_number.h"
#include "stp/transfer/sequencer_impl.h"
#include "stp/wire/big_endian.h"

namespace stp {
namespace {

// Requests a region by name: the first word of the RMR's option payload is the name; the option
// payload of the MRA holds the terms.
// protocol: 9.29
void store_name(SendEntry& entry, std::uint32_t name) {
  if (name != 0) store_msn(entry, name);
}

void store_terms(SendEntry& entry, const RegionTerms& terms) {
  entry.payload_length = wire::kOptionSize;
  auto* const at = reinterpret_cast<std::byte*>(entry.payload);
  wire::store64(at, terms.base);
  wire::store32(at + 8, terms.access);
}

RegionTerms load_terms(const ReceivedEntry& entry) {
  if (entry.payload_length != wire::kOptionSize) return {};
  const auto* const at = reinterpret_cast<const std::byte*>(entry.payload);
  return {wire::load64(at), wire::load32(at + 8)};
}

constexpr std::size_t kMaxPeerRequests = 1024;
constexpr std::uint32_t kMaxWindow = 1024;

}  // namespace

using wire::Op;
namespace flag = wire::flag;

int Sequencer::read(Context context, const Landing& landing) {
  if (impl_->ended != 0) return impl_->ended;
  if (landing.length == 0) return -EINVAL;
  const auto i_id = impl_->new_id();
  auto& asked = impl_->asked[i_id];
  asked.context = context;
  asked.landing = landing;
  asked.length = landing.length;
  asked.begun = impl_->clock;
  asked.retry.start(impl_->clock, impl_->interval(), kUserPatience);
  impl_->due_at(asked.retry.deadline());
  impl_->send_ask(i_id, asked);
  return 0;
}

int Sequencer::request_region(Context context, std::uint64_t length, std::uint32_t window,
                              std::uint32_t name) {
  if (impl_->ended != 0) return impl_->ended;
  if (length == 0 || window == 0 || window > kMaxWindow) return -EINVAL;
  const auto i_id = impl_->new_id();
  auto& asked = impl_->asked[i_id];
  asked.region = true;
  asked.context = context;
  asked.length = length;
  asked.window = window;
  asked.name = name;
  asked.begun = impl_->clock;
  asked.retry.start(impl_->clock, impl_->interval(), kUserPatience);
  impl_->due_at(asked.retry.deadline());
  impl_->send_ask(i_id, asked);
  return 0;
}

void Sequencer::Impl::send_ask(std::uint32_t i_id, Asked& what) {
  SendEntry entry{};
  if (what.region)
    entry.header = header(wire::RequestMemoryRegion{
        .b_win = static_cast<std::uint16_t>(what.window), .t_len = what.length, .i_id = i_id});
  else
    entry.header = header(wire::RequestToReceive{.t_len = what.length, .i_id = i_id});
  store_name(entry, what.name);
  request(entry);
  what.queued = last_number;
}

void Sequencer::Impl::on_read_request(const wire::RequestToReceive& rtr) {
  for (const auto& [number, pending] : peer_requests)
    if (!pending.region && pending.i_id == rtr.i_id) return tell_seen(rtr.i_id, number);
  if (over(rtr.i_id, Op::kRequestAnswer)) return;
  if (peer_requests.size() == kMaxPeerRequests) return refuse(Op::kRequestAnswer, rtr.i_id);
  const auto number = new_id();
  peer_requests[number] = {.i_id = rtr.i_id, .length = rtr.t_len};
  remember_finished(rtr.i_id);  // a late duplicate is not a second request
  tell_seen(rtr.i_id, number);
  complete(Completion::Kind::kReadRequest, 0, 0, rtr.t_len);
  completions.back().request = number;
}

void Sequencer::Impl::on_region_request(const ReceivedEntry& entry) {
  const auto rmr = wire::decode_as<wire::RequestMemoryRegion>(entry.header);
  if (const auto given = opened.find(rmr.i_id); given != opened.end()) return answer(given->second);
  for (const auto& [number, pending] : peer_requests)
    if (pending.region && pending.i_id == rmr.i_id) return;  // the user has not decided yet
  if (over(rmr.i_id, Op::kMemoryRegionAvailable)) return;
  if (peer_requests.size() == kMaxPeerRequests || opened.size() == kMaxPeerRequests)
    return refuse(Op::kMemoryRegionAvailable, rmr.i_id);
  const auto number = new_id();
  const auto name = load_msn(entry);
  peer_requests[number] = {
      .region = true, .i_id = rmr.i_id, .length = rmr.t_len, .window = rmr.b_win, .name = name};
  complete(Completion::Kind::kRegionRequest, 0, 0, rmr.t_len);
  completions.back().request = number;
  completions.back().tag = name;
}

int Sequencer::serve_region(std::uint32_t number, const Landing& landing, std::uint32_t window,
                            const RegionTerms& terms) {
  const auto found = impl_->peer_requests.find(number);
  if (found == impl_->peer_requests.end()) return -ECANCELED;
  const auto wanted = found->second;
  if (!wanted.region || landing.length < wanted.length || window == 0) return -EINVAL;
  SendEntry entry{};
  entry.header = Impl::header(wire::MemoryRegionAvailable{
      .b_win =
          static_cast<std::uint16_t>(std::min({window, std::max(wanted.window, 1U), kMaxWindow})),
      .r_mx = landing.mx,
      .r_bufx = landing.at.bufx,
      .r_offset = landing.at.offset,
      .t_len = wanted.name != 0 ? landing.length : wanted.length,
      .i_id = wanted.i_id,
      .r_id = number,  // already an id of ours, and nobody else's
  });
  if (wanted.name != 0) store_terms(entry, terms);
  impl_->request(entry);
  impl_->opened[wanted.i_id] = entry;
  impl_->peer_requests.erase(found);
  return 0;
}

// protocol: 9.18
int Sequencer::close_region(std::uint32_t number) {
  if (impl_->ended != 0) return impl_->ended;
  const auto given = std::find_if(impl_->opened.begin(), impl_->opened.end(),
                                  [&](const auto& o) { return o.second.header.s_id == number; });
  if (given == impl_->opened.end()) return -EINVAL;
  const auto i_id = given->first;
  impl_->opened.erase(given);
  impl_->remember_finished(i_id, true);
  impl_->end(i_id, number, std::nullopt);
  return 0;
}

int Sequencer::refuse(std::uint32_t number) {
  const auto found = impl_->peer_requests.find(number);
  if (found == impl_->peer_requests.end()) return -ECANCELED;
  impl_->refuse(found->second.region ? Op::kMemoryRegionAvailable : Op::kRequestAnswer,
                found->second.i_id);
  impl_->remember_finished(found->second.i_id, true);
  impl_->peer_requests.erase(found);
  return 0;
}

// MRA: the region that we requested, or a refusal.
void Sequencer::Impl::on_region(const ReceivedEntry& entry) {
  const auto mra = wire::decode_as<wire::MemoryRegionAvailable>(entry.header);
  const auto found = asked.find(mra.i_id);
  if (found == asked.end() || !found->second.region) return;
  const auto what = found->second;
  asked.erase(found);
  const bool refused = entry.header.has(flag::kReject) || mra.b_win == 0;
  const bool taken = puts.contains(mra.r_id);  // protocol: 9.1
  if (refused || mra.t_len < what.length || taken)
    return complete(Completion::Kind::kRegion, what.context, -ECONNREFUSED);
  STP_ASSERT(what.length > 0, "a region that was asked for has a length");
  auto& stream = puts[mra.r_id];
  stream.i_id = mra.i_id;
  const auto terms = load_terms(entry);
  stream.region = {.r_id = mra.r_id,
                   .mx = mra.r_mx,
                   .at = {mra.r_bufx, mra.r_offset},
                   .length = mra.t_len,
                   .window = mra.b_win,
                   .base = terms.base,
                   .access = terms.access};
  complete(Completion::Kind::kRegion, what.context, 0, mra.t_len);
  completions.back().region = stream.region;
}

int Sequencer::end_region(const RemoteRegion& region) {
  auto* const found = impl_->find_puts(region.r_id);
  if (found == nullptr) return -EACCES;
  impl_->abandon(*found, -ECANCELED);
  return 0;
}

// Ends the Transfer or region that the peer calls `r_id` and we call `i_id`; `completion` follows
// its answer.
void Sequencer::Impl::end(std::uint32_t r_id, std::uint32_t i_id,
                          std::optional<Completion> completion, std::uint32_t msn) {
  STP_ASSERT(!endings.contains(i_id), "what we know by an id ends once");
  auto& ending = endings[i_id];
  ending.completion = completion;
  ending.request.header = header(wire::End{.r_id = r_id, .i_id = i_id});
  if (msn != 0) store_msn(ending.request, msn);
  ending.retry.start(clock, interval(), kAnswerPatience);
  due_at(ending.retry.deadline());
  request(ending.request);
  ending.queued = last_number;
}

// protocol: 9.18, 9.20
void Sequencer::Impl::on_end(const ReceivedEntry& entry, Time now) {
  const auto end = wire::decode_as<wire::End>(entry.header);
  wire::EndAck ea{.i_id = end.i_id, .r_id = end.r_id};
  // The peer may not know our id of what it ends.
  for (const auto& [r_id, in] : incoming)
    if (end.r_id == wire::kNoId && in.i_id == end.i_id) ea.r_id = r_id;
  const auto given = opened.find(end.i_id);
  if (end.r_id == wire::kNoId && given != opened.end()) ea.r_id = given->second.header.s_id;
  const auto out = outbound.find(end.r_id);
  const auto in = incoming.find(ea.r_id);
  const bool known = (out != outbound.end() && out->second.r_id == end.i_id) ||
                     (in != incoming.end() && in->second.i_id == end.i_id) ||
                     (given != opened.end() && given->second.header.s_id == ea.r_id);
  if (known) {
    request(header(ea));  // its memory is returned once the Node has taken this
  } else {
    answer(header(ea));
    remember_finished(end.i_id);  // its request may arrive after this END
  }
  if (!end_transfer(end) && !end_regions(end)) end_remote(end);
  if (const auto msn = load_msn(entry); msn != 0) skip(msn, now);
}

bool Sequencer::Impl::end_transfer(const wire::End& end) {
  const bool unnamed = end.r_id == wire::kNoId;
  for (auto& [r_id, in] : incoming) {
    if (in.i_id != end.i_id || (!unnamed && r_id != end.r_id)) continue;
    in.state.must(InboundEvent::kEnded);
    finish(in, -ECANCELED);
    return true;
  }
  if (std::erase_if(waiting, [&](const WaitingOffer& o) { return o.i_id == end.i_id; }) > 0) {
    remember_finished(end.i_id);
    return true;  // skip() gives up its place in the order of messages
  }
  for (auto& [i_id, out] : outbound) {
    const bool named = i_id == end.r_id && (out.r_id == end.i_id || out.r_id == wire::kNoId);
    if (!named && !(unnamed && out.answers == end.i_id)) continue;
    out.state.must(OutboundEvent::kEnded);
    forget_requests(out.r_id);
    complete(out.kind, out.context, -ECANCELED);
    outbound.erase(i_id);
    return true;
  }
  return false;
}

bool Sequencer::Impl::end_regions(const wire::End& end) {
  if (const auto given = opened.find(end.i_id);
      given != opened.end() && (given->second.header.s_id == end.r_id || end.r_id == wire::kNoId)) {
    remember_finished(end.i_id);
    Completion c{};
    c.kind = Completion::Kind::kEnded;
    c.request = given->second.header.s_id;
    complete_once_taken(c);
    opened.erase(given);
    return true;
  }
  std::erase_if(peer_requests, [&](const auto& entry) { return entry.second.i_id == end.i_id; });
  return false;
}

// The owner of a region that this side puts into takes it back.
bool Sequencer::Impl::end_remote(const wire::End& end) {
  const auto found = puts.find(end.i_id);
  if (found == puts.end() || found->second.i_id != end.r_id) return false;
  const auto stream = found->second;
  forget_requests(end.i_id);
  forget_puts(end.i_id);
  for (const auto& block : stream.blocks)
    if (block.last) completions.push_back(completion_of(block, -ECANCELED));
  complete(Completion::Kind::kRevoked, 0, 0);
  completions.back().region = stream.region;
  return true;
}

void Sequencer::Impl::on_end_ack(const wire::EndAck& ea) {
  const auto found = endings.find(ea.i_id);
  if (found == endings.end()) return;
  if (found->second.completion) completions.push_back(*found->second.completion);
  endings.erase(found);
}

// protocol: 10.11
void Sequencer::Impl::expire_asked(Time now) {
  for (auto next = asked.begin(); next != asked.end();) {
    const auto here = next++;
    auto& what = here->second;
    bool gave_up = false;
    const bool repeat = again(what.retry, what.queued, Answerer::kUser, now, gave_up);
    if (!gave_up && now - what.begun < kSeenPatience) {
      if (repeat) send_ask(here->first, what);
      continue;
    }
    const auto kind = what.region ? Completion::Kind::kRegion : Completion::Kind::kRead;
    Completion c{};
    c.kind = kind;
    c.context = what.context;
    c.status = -ETIMEDOUT;
    end(wire::kNoId, here->first, c);
    asked.erase(here);
  }
}

void Sequencer::Impl::expire_endings(Time now) {
  for (auto next = endings.begin(); next != endings.end();) {
    const auto here = next++;
    bool gave_up = false;
    auto& ending = here->second;
    if (again(ending.retry, ending.queued, Answerer::kUser, now, gave_up)) {
      request(ending.request);
      ending.queued = last_number;
    }
    if (!gave_up) continue;
    if (ending.completion) completions.push_back(*ending.completion);
    endings.erase(here);
  }
}

}  // namespace stp
