// SPDX-License-Identifier: BSD-3-Clause
#include "libst/managed/session.h"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <utility>

#include "libst/client/wait.h"
#include "libst/managed/operations.h"
#include "stp/base/assert.h"
#include "stp/wire/big_endian.h"

namespace stp::managed {

void Channel::take(const client::GivenChannel& given, std::shared_ptr<ipc::SharedMemory> memory,
                   std::uint32_t gatherer) {
  STP_ASSERT(!is_taken(), "a connection takes a channel once");
  vc_ = given.vc;
  number_ = given.bell;
  memory_ = std::move(memory);
  rings_ = UserChannel(memory_->data());
  rings_.gather(gatherer);
}

int Channel::query(ask::VcInfo::Reply& info) const {
  return backend_.call(ask::VcInfo{.vc = vc_}, info);
}

void Channel::receive(Sequencer& sequencer, Time now) {
  ReceivedEntry entry;
  const auto taken = rings_.taken();
  while (rings_.receive(entry)) sequencer.receive(entry, now);
  is_used(rings_.places_received());
  sequencer.taken(taken, now);
  const auto repeated = rings_.cts_repeated();
  const auto block = rings_.path_block();
  const auto steps = rings_.steps();
  if (repeated != cts_repeated_ || block != path_block_ || steps != steps_)
    sequencer.observe_path(cts_repeated_ = repeated, path_block_ = block, steps_ = steps);
  sequencer.expire(now);
}

// Without memory for all of them, the connection goes on with those that it has.
void Channel::touch_pages() {
  in_use_ = true;
  static_cast<void>(memory_->touch_pages());
}

void Channel::close(bool at_once, const ipc::WireOption& option) {
  backend_.call(ask::Close{.vc = vc_, .at_once = at_once ? 1U : 0U, .option = option});
}

void Channel::drop() {
  close(true, {});
  STP_ASSERT(let_go(), "nothing was sent on a channel that is not open");
  leave();
  vc_ = kNoneId;
}

bool Channel::let_go() const {
  return !is_taken() || rings_.done(rings_.sent()) || rings_.state() == ChannelState::kClosed ||
         backend_.error() != 0;
}

// protocol: 9.31
void encode(const EagerHead& head, std::byte* slot) {
  wire::store32(slot, head.message);
  wire::store32(slot + 4, head.length);
  wire::store32(slot + 8, head.tag);
  wire::store32(slot + 12, head.taken);
}

EagerHead decode_eager(const std::byte* slot) {
  return {wire::load32(slot), wire::load32(slot + 4), wire::load32(slot + 8),
          wire::load32(slot + 12)};
}

void RingPages::give_back(std::byte* first, std::uint32_t count) {
  if (of_ == nullptr) return;
  if (of_->keepers->add())
    keeps_by_ = std::exchange(of_, nullptr)->keepers;
  else
    of_->give_back(first, count * kEagerSlot);
}

void RingPages::leave() {
  of_ = nullptr;
  if (keeps_by_ != nullptr) std::exchange(keeps_by_, nullptr)->remove();
}

void EagerOut::hold_pages(const Sequencer& sequencer, std::uint32_t slot) {
  const auto place = std::exchange(places_[slot], {});
  held_.push_back({sequencer.requests(), place});
  held_pages_ += place.count;
}

void EagerOut::free_left(const Sequencer& sequencer) {
  for (; !held_.empty() && sequencer.has_left(held_.front().requests); held_.pop_front()) {
    const auto& place = held_.front().place;
    held_pages_ -= place.count;
    pages_->give_back(place);
  }
}

void EagerOut::ask(Sequencer& sequencer, bool small) {
  asks_later_ = false;
  is_asked_ = sequencer.request_region(context::kKeyMark | kEagerKey, kEagerRing, kEagerSlots,
                                       kEagerKey, small ? kEagerSlot : 0) == 0;
}

void EagerOut::grow(Sequencer& sequencer) {
  if (grows_) return;
  grows_ = sequencer.request_region(context::kKeyMark | kEagerKey, kEagerRing, kEagerSlots,
                                    kEagerKey) == 0;
}

void EagerOut::confirm_old(Sequencer& sequencer) {
  const bool some_are_left = static_cast<std::int32_t>(first_message_ - messages_taken_) > 0;
  RemoteRegion old;
  old.r_id = old_ring_;
  sequencer.puts_arrived(old, some_are_left ? messages_taken_ : first_message_);
  if (some_are_left) return;
  old_ring_ = wire::kNoId;
  free_left_out();
  sequencer.puts_arrived(ring_, messages_taken_ - first_message_);
}

// Before the ring that replaces another, once the peer has taken all of that: else messages of
// several slots might never find room.
// protocol: 9.41
void EagerOut::free_left_out() {
  if (!has_taken(begin_)) taken_ = begin_;
}

// protocol: 9.31, 9.41
void EagerOut::on_answer(const Completion& c) {
  is_asked_ = false;
  const bool grows = std::exchange(grows_, false);
  was_refused_ = grows && c.status != 0;
  if (was_refused_) grows_at_ = messages_ + kMore;
  if (c.status != 0) return;
  // Messages go on in the new one. Those in the old one keep their slots until they have arrived.
  if (grows) {
    sent_ = begin_ = eager_begin(sent_);
    first_message_ = messages_;
    old_ring_ = ring_.r_id;
    has_grown_ = true;
    if (messages_taken_ == messages_) free_left_out();
  }
  ring_ = c.region;
  size_ = static_cast<std::uint32_t>(
      std::bit_floor(std::clamp<std::uint64_t>(c.region.length / kEagerSlot, 1, kEagerSlots)));
  open(std::min<std::uint64_t>(c.region.base, size_));
}

std::uint64_t Pieces::length() const {
  constexpr auto kTooLong = eager_most(kEagerSpan) + 1;
  std::uint64_t sum = head_length;
  for (const auto& part : parts) {
    if (part.iov_len > kTooLong - sum) return kTooLong;
    sum += part.iov_len;
  }
  return sum;
}

void Pieces::copy_to(std::byte* to) const {
  if (head_length != 0) std::memcpy(to, head, head_length);
  to += head_length;
  for (const auto& part : parts) {
    if (part.iov_len != 0) std::memcpy(to, part.iov_base, part.iov_len);
    to += part.iov_len;
  }
}

int EagerOut::send(Sequencer& sequencer, const Staging& staging, Operation& operation,
                   const Pieces& bytes, EagerIn& in, bool quiet) {
  const auto slot = use(operation.length);
  auto* const at = source(staging, slot, operation.length);
  const auto from =
      fits_cell(operation.length) ? staging.memory->at(at) : pages_->address(places_[slot]);
  const auto error = sequencer.put(operation.id, ring_, std::uint64_t{slot} * kEagerSlot, from,
                                   kEagerHead + operation.length,
                                   {.flags = wire::flag::kInterrupt, .quiet = quiet, .told = true});
  if (error != 0) {
    close();
    return error;
  }
  // The message is sent when the requests are handed to the Node, so it may still be filled here.
  EagerHead head;
  head.message = sequencer.take_message();
  head.length = static_cast<std::uint32_t>(operation.length);
  head.tag = operation.tag;
  head.taken = in.tell();
  encode(head, at);
  bytes.copy_to(at + kEagerHead);
  operation.sent = {.message = head.message, .slot = slot, .ring_end = sent_};
  operation.eager = true;
  return 0;
}

bool EagerIn::serve(Sequencer& sequencer, const RingMemory& ring, EndpointId endpoint) {
  const auto request = std::exchange(asked_, 0);
  // protocol: 9.41
  const RegionTerms terms{.base = kEagerSpan};
  if (sequencer.serve_region(request, ring.memory->landing(endpoint, ring.base, kEagerRing),
                             kEagerSlots, terms) != 0)
    return false;
  served_ = request;
  lies_in(ring);
  return true;
}

bool EagerIn::serve_small(Sequencer& sequencer, const Staging& staging, EndpointId endpoint,
                          std::uint64_t least) {
  if (small_ != 0 || served_ != 0 || least > kSmallRing) return false;
  // protocol: 9.41
  const RegionTerms terms{.base = kSmallSlots};
  const auto landing = staging.memory->landing(endpoint, staging.small_ring(), kSmallRing);
  if (sequencer.serve_region(asked_, landing, kEagerSlots, terms) == 0) small_ = asked_;
  asked_ = 0;
  small_ring_ = staging.small_ring();
  return true;
}

void EagerIn::give_back_pages() {
  if (!has_grown_) return;
  const auto first = rested_ % kEagerSlots;
  const auto count = taken_ - rested_;
  const auto to_end = std::min(count, kEagerSlots - first);
  own_pages_.give_back(ring_.slot(first), to_end);
  if (count != to_end) own_pages_.give_back(ring_.base, count - to_end);
  rested_ = taken_;
}

// protocol: 9.31, 9.41
bool EagerIn::arrived(std::uint32_t request, std::uint64_t offset, std::uint64_t length,
                      EagerHead& out) {
  const bool small = request == small_ && small_ != 0;
  const auto size = small ? kSmallSlots : kEagerSlots;
  const auto place = static_cast<std::uint32_t>(offset / kEagerSlot);
  if (offset % kEagerSlot != 0 || place >= size || length < kEagerHead) return false;
  const auto slot = small ? kEagerSlots + place : place;
  out = decode_eager(at(slot));
  // The slot may hold bytes of an older message behind those that arrived.
  if (out.length > length - kEagerHead) return false;
  const auto slots = eager_slots(out.length);
  if (slots > std::min(kEagerSpan, size) || place + slots > size || length > slots * kEagerSlot)
    return false;
  const auto bits = eager_bits(slot, static_cast<std::uint32_t>(slots));
  if ((occupied_ & bits) != 0 || find(out.message) != nullptr) return false;
  slots_[slot] = {slot, out};
  waiting_ |= 1U << slot;
  occupied_ |= bits;
  return true;
}

// ---- regions by key

namespace {

// Put Blocks in flight at most.
constexpr std::uint32_t kWindow = 128;

}  // namespace

PeerRegion* PeerRegions::look_up(Sequencer& sequencer, std::uint32_t key) {
  if (const auto known = regions_.find(key); known != regions_.end()) {
    recent_ = {key, &known->second};
    return recent_.second;
  }
  make_room(sequencer);
  if (regions_.size() >= kMost) return nullptr;
  auto& region = regions_[key];
  // The ring's key, and lower ones, are none of the program's regions.
  const auto error = key <= kEagerKey
                         ? -EACCES
                         : sequencer.request_region(context::kKeyMark | key, 1, kWindow, key);
  if (error != 0) {
    region.state.must(PeerRegion::Event::kRefused);
    region.status = error;
  }
  return &region;
}

// Closes a region that no operation uses. If it is needed later, it is requested again.
void PeerRegions::make_room(Sequencer& sequencer) {
  if (regions_.size() < kMost) return;
  const auto idle = std::find_if(regions_.begin(), regions_.end(), [](const auto& entry) {
    return entry.second.state != PeerRegion::State::kAsked && entry.second.operations == 0;
  });
  if (idle == regions_.end()) return;
  const auto region = idle->second.region;
  const bool open = idle->second.state == PeerRegion::State::kOpen;
  recent_ = {};
  regions_.erase(idle);
  if (open) sequencer.end_region(region);
}

void PeerRegions::on_answer(const Completion& c) {
  const auto found = regions_.find(static_cast<std::uint32_t>(c.context));
  if (found == regions_.end()) return;
  auto& region = found->second;
  region.region = c.region;
  region.state.must(c.status == 0 ? PeerRegion::Event::kOpened : PeerRegion::Event::kRefused);
  region.status = c.status == -ECONNREFUSED ? -EACCES : c.status;
}

void PeerRegions::on_revoked(const RemoteRegion& region) {
  for (auto& [key, known] : regions_) {
    if (known.state != PeerRegion::State::kOpen || known.region.r_id != region.r_id) continue;
    known.state.must(PeerRegion::Event::kRevoked);
    known.status = -EACCES;
  }
}

void ServedRegions::serve(Sequencer& sequencer, const Completion& request, const Landing& landing,
                          const RegionTerms& terms) {
  STP_ASSERT(landing.length >= request.length, "a region is as long as the peer needs it");
  if (sequencer.serve_region(request.request, landing, kWindow, terms) == 0)
    keys_[request.request] = request.tag;
}

bool ServedRegions::serves(std::uint32_t key) const {
  return std::ranges::any_of(keys_, [&](const auto& served) { return served.second == key; });
}

void ServedRegions::revoke(Sequencer& sequencer, std::uint32_t key) {
  for (auto at = keys_.begin(); at != keys_.end();) {
    const auto [number, served] = *at;
    if (served != key) {
      ++at;
      continue;
    }
    at = keys_.erase(at);
    sequencer.close_region(number);
  }
}

}  // namespace stp::managed
