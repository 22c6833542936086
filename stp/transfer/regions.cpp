// SPDX-License-Identifier: BSD-3-Clause
// Requests that a user answers: Read (RTR), memory regions (RMR, MRA); and End.
#include <algorithm>
#include <cerrno>

#include "stp/transfer/message_number.h"
#include "stp/transfer/sequencer_impl.h"
#include "stp/wire/big_endian.h"

namespace stp {
namespace {

// A region asked for by name: the name is the first word of the RMR's option payload; that of the
// MRA holds the terms.
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
  auto const* const at = reinterpret_cast<const std::byte*>(entry.payload);
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
  auto const i_id = impl_->new_id();
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
  auto const i_id = impl_->new_id();
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
  auto h = header(what.region ? Op::kRequestMemoryRegion : Op::kRequestToReceive);
  if (what.region) h.param = static_cast<std::uint16_t>(what.window);
  h.set_t_len(what.length);
  h.s_id = i_id;
  SendEntry entry{};
  entry.header = h;
  store_name(entry, what.name);
  request(entry);
  what.queued = last_number;
}

void Sequencer::Impl::on_read_request(const wire::Header& h) {
  auto const seen = [&](std::uint32_t number) {
    auto yes = header(Op::kRequestAnswer);
    yes.d_id = h.s_id;
    yes.s_id = number;
    answer(yes);
  };
  for (auto const& [number, pending] : peer_requests)
    if (!pending.region && pending.i_id == h.s_id) return seen(number);
  if (over(h, Op::kRequestAnswer)) return;
  if (peer_requests.size() == kMaxPeerRequests) return refuse(Op::kRequestAnswer, h.s_id);
  auto const number = new_id();
  peer_requests[number] = {.i_id = h.s_id, .length = h.t_len()};
  remember_finished(h.s_id);  // a late duplicate is no second request
  seen(number);
  complete(Completion::Kind::kReadRequest, 0, 0, h.t_len());
  completions.back().request = number;
}

void Sequencer::Impl::on_region_request(const ReceivedEntry& entry) {
  auto const& h = entry.header;
  if (auto const given = opened.find(h.s_id); given != opened.end()) return answer(given->second);
  for (auto const& [number, pending] : peer_requests)
    if (pending.region && pending.i_id == h.s_id) return;  // the user has not decided yet
  if (over(h, Op::kMemoryRegionAvailable)) return;
  if (peer_requests.size() == kMaxPeerRequests || opened.size() == kMaxPeerRequests)
    return refuse(Op::kMemoryRegionAvailable, h.s_id);
  auto const number = new_id();
  auto const name = load_msn(entry);
  peer_requests[number] = {
      .region = true, .i_id = h.s_id, .length = h.t_len(), .window = h.param, .name = name};
  complete(Completion::Kind::kRegionRequest, 0, 0, h.t_len());
  completions.back().request = number;
  completions.back().tag = name;
}

int Sequencer::serve_region(std::uint32_t number, const Landing& landing, std::uint32_t window,
                            const RegionTerms& terms) {
  auto const found = impl_->peer_requests.find(number);
  if (found == impl_->peer_requests.end()) return -ECANCELED;
  auto const wanted = found->second;
  if (!wanted.region || landing.length < wanted.length || window == 0) return -EINVAL;
  auto h = Impl::header(Op::kMemoryRegionAvailable);
  h.param = static_cast<std::uint16_t>(std::min({window, std::max(wanted.window, 1U), kMaxWindow}));
  h.mx = landing.mx;
  h.bufx = landing.at.bufx;
  h.offset = landing.at.offset;
  h.set_t_len(wanted.name != 0 ? landing.length : wanted.length);
  h.d_id = wanted.i_id;
  h.s_id = number;  // already an id of ours, and nobody else's
  SendEntry entry{};
  entry.header = h;
  if (wanted.name != 0) store_terms(entry, terms);
  impl_->request(entry);
  impl_->opened[wanted.i_id] = entry;
  impl_->peer_requests.erase(found);
  return 0;
}

// protocol: 9.18
int Sequencer::close_region(std::uint32_t number) {
  if (impl_->ended != 0) return impl_->ended;
  auto const given = std::find_if(impl_->opened.begin(), impl_->opened.end(),
                                  [&](const auto& o) { return o.second.header.s_id == number; });
  if (given == impl_->opened.end()) return -EINVAL;
  auto const i_id = given->first;
  impl_->opened.erase(given);
  impl_->remember_finished(i_id, true);
  impl_->end(i_id, number, std::nullopt);
  return 0;
}

int Sequencer::refuse(std::uint32_t number) {
  auto const found = impl_->peer_requests.find(number);
  if (found == impl_->peer_requests.end()) return -ECANCELED;
  impl_->refuse(found->second.region ? Op::kMemoryRegionAvailable : Op::kRequestAnswer,
                found->second.i_id);
  impl_->remember_finished(found->second.i_id, true);
  impl_->peer_requests.erase(found);
  return 0;
}

// MRA: the region that we asked for, or a refusal.
void Sequencer::Impl::on_region(const ReceivedEntry& entry) {
  auto const& h = entry.header;
  auto const found = asked.find(h.d_id);
  if (found == asked.end() || !found->second.region) return;
  auto const what = found->second;
  asked.erase(found);
  bool const taken = puts.contains(h.s_id);  // protocol: 9.1
  if (h.has(flag::kReject) || h.param == 0 || h.t_len() < what.length || taken)
    return complete(Completion::Kind::kRegion, what.context, -ECONNREFUSED);
  auto& stream = puts[h.s_id];
  stream.i_id = h.d_id;
  auto const terms = load_terms(entry);
  stream.region = {.r_id = h.s_id,
                   .mx = h.mx,
                   .at = {h.bufx, h.offset},
                   .length = h.t_len(),
                   .window = h.param,
                   .base = terms.base,
                   .access = terms.access};
  complete(Completion::Kind::kRegion, what.context, 0, h.t_len());
  completions.back().region = stream.region;
}

int Sequencer::end_region(const RemoteRegion& region) {
  auto const found = impl_->puts.find(region.r_id);
  if (found == impl_->puts.end()) return -EACCES;
  impl_->abandon(found->second, -ECANCELED);
  return 0;
}

// Ends what the peer knows as `d_id` and we as `s_id`; `completion` follows its answer.
void Sequencer::Impl::end(std::uint32_t d_id, std::uint32_t s_id,
                          std::optional<Completion> completion, std::uint32_t msn) {
  auto& ending = endings[s_id];
  ending.completion = completion;
  ending.request.header = header(Op::kEnd);
  ending.request.header.d_id = d_id;
  ending.request.header.s_id = s_id;
  if (msn != 0) store_msn(ending.request, msn);
  ending.retry.start(clock, interval(), kAnswerPatience);
  due_at(ending.retry.deadline());
  request(ending.request);
  ending.queued = last_number;
}

// protocol: 9.18, 9.20
void Sequencer::Impl::on_end(const ReceivedEntry& entry, Time now) {
  auto const& h = entry.header;
  auto ack = header(Op::kEndAck);
  ack.d_id = h.s_id;
  ack.s_id = h.d_id;
  // The peer may not have learnt our id of what it ends.
  for (auto const& [r_id, in] : incoming)
    if (h.d_id == wire::kNoId && in.i_id == h.s_id) ack.s_id = r_id;
  auto const given = opened.find(h.s_id);
  if (h.d_id == wire::kNoId && given != opened.end()) ack.s_id = given->second.header.s_id;
  auto const out = outbound.find(h.d_id);
  auto const in = incoming.find(ack.s_id);
  bool const known = (out != outbound.end() && out->second.r_id == h.s_id) ||
                     (in != incoming.end() && in->second.i_id == h.s_id) ||
                     (given != opened.end() && given->second.header.s_id == ack.s_id);
  if (known) {
    request(ack);  // what ends is given back once the Node has taken this
  } else {
    answer(ack);
    remember_finished(h.s_id);  // its request may still come, overtaken by this
  }
  if (!end_transfer(h) && !end_regions(h)) end_remote(h);
  if (auto const msn = load_msn(entry); msn != 0) skip(msn, now);
}

bool Sequencer::Impl::end_transfer(const wire::Header& h) {
  bool const unnamed = h.d_id == wire::kNoId;
  for (auto& [r_id, in] : incoming) {
    if (in.i_id != h.s_id || (!unnamed && r_id != h.d_id)) continue;
    advance(kInboundTransitions, in.state, InboundEvent::kEnded);
    finish(in, -ECANCELED);
    return true;
  }
  if (std::erase_if(waiting, [&](const WaitingOffer& o) { return o.i_id == h.s_id; }) > 0) {
    remember_finished(h.s_id);
    return true;  // its place in the order of messages is given up by skip()
  }
  for (auto& [i_id, out] : outbound) {
    bool const named = i_id == h.d_id && (out.r_id == h.s_id || out.r_id == wire::kNoId);
    if (!named && !(unnamed && out.answers == h.s_id)) continue;
    advance(kOutboundTransitions, out.state, OutboundEvent::kEnded);
    forget_requests(out.r_id);
    complete(out.kind, out.context, -ECANCELED);
    outbound.erase(i_id);
    return true;
  }
  return false;
}

bool Sequencer::Impl::end_regions(const wire::Header& h) {
  if (auto const given = opened.find(h.s_id);
      given != opened.end() && (given->second.header.s_id == h.d_id || h.d_id == wire::kNoId)) {
    remember_finished(h.s_id);
    Completion c{};
    c.kind = Completion::Kind::kEnded;
    c.request = given->second.header.s_id;
    complete_once_taken(c);
    opened.erase(given);
    return true;
  }
  std::erase_if(peer_requests, [&](const auto& entry) { return entry.second.i_id == h.s_id; });
  return false;
}

// The owner of a region that this side puts into takes it back.
bool Sequencer::Impl::end_remote(const wire::Header& h) {
  auto const found = puts.find(h.s_id);
  if (found == puts.end() || found->second.i_id != h.d_id) return false;
  auto const stream = found->second;
  forget_requests(h.s_id);
  puts.erase(found);
  for (auto const& block : stream.blocks)
    if (block.last) completions.push_back(completion_of(block, -ECANCELED));
  complete(Completion::Kind::kRevoked, 0, 0);
  completions.back().region = stream.region;
  return true;
}

void Sequencer::Impl::on_end_ack(const wire::Header& h) {
  auto const found = endings.find(h.d_id);
  if (found == endings.end()) return;
  if (found->second.completion) completions.push_back(*found->second.completion);
  endings.erase(found);
}

// protocol: 10.11
void Sequencer::Impl::expire_asked(Time now) {
  for (auto next = asked.begin(); next != asked.end();) {
    auto const here = next++;
    auto& what = here->second;
    bool gave_up = false;
    bool const repeat = again(what.retry, what.queued, Answerer::kUser, now, gave_up);
    if (!gave_up && now - what.begun < kSeenPatience) {
      if (repeat) send_ask(here->first, what);
      continue;
    }
    auto const kind = what.region ? Completion::Kind::kRegion : Completion::Kind::kRead;
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
    auto const here = next++;
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
