// SPDX-License-Identifier: BSD-3-Clause
#include "stp/transfer/writes_in.h"

#include <algorithm>
#include <bit>
#include <cerrno>

#include "stp/base/assert.h"
#include "stp/transfer/clock.h"

namespace stp {

void WritesIn::begin(const OfferedWrite& offer, Completion::Kind kind, Context context,
                     const Landing& landing) {
  STP_ASSERT(!transfers_.contains(offer.r_id), "a Transfer begins once");
  STP_ASSERT(offer.length <= landing.length, "what begins fits where it lands");
  auto& in = transfers_[offer.r_id];
  in.state.must(InboundEvent::kMatched);
  in.kind = kind;
  in.context = context;
  in.landing = landing;
  in.length = offer.length;
  in.i_id = offer.i_id;
  in.r_id = offer.r_id;
  in.msn = offer.msn;
  in.blocksize = choose_blocksize(offer);
  in.in_parts = in_parts(offer);
  // protocol: 9.3, 9.25
  in.window = std::clamp(offer.cts_wanted, 1U, cts_window());
  in.progress = clock_.now();
  clock_.due_at(Alarm::kWritesIn, in.progress + clock_.progress_patience());
  grant(in);
}

// All Blocks of a Transfer are as long as its first. Long ones that are granted in parts suit a
// path that turns out to carry more.
// protocol: 9.4, 13.19
unsigned WritesIn::choose_blocksize(const OfferedWrite& offer) const {
  const auto length = offer.length;
  const auto stu = config_.receive_stu_log2;
  const auto whole = static_cast<unsigned>(std::bit_width(length > 1 ? length - 1 : 1));
  const auto lossy = stu + loss_.block_stus_log2(stu, offer.repeats_missing, in_parts(offer));
  constexpr unsigned kManyLog2 = 3, kLeastLog2 = 16;  // Blocks of 13.13 in one; bytes of one
  constexpr unsigned kOfTransferLog2 = 8;             // no more Blocks than that, where in parts
  auto path = path_block_ != 0 ? path_block_ : wire::kMaxBlocksize;
  if (in_parts(offer) && is_very_long(offer)) path = std::max(path + kManyLog2, kLeastLog2);
  if (in_parts(offer)) path = std::max(path, whole - std::min(whole, kOfTransferLog2));
  return std::max(wire::kMinBlocksize, std::min({config_.max_block, offer.max_block, whole, lossy,
                                                 path, stu + wire::kMaxStusOfBlockLog2}));
}

void WritesIn::grant(Incoming& in) {
  while (in.next < in.block_count() && in.open.size() < in.window) {
    in.open.insert(in.next);
    send_grant(in, in.next++);
  }
  STP_ASSERT(in.open.size() <= in.window && in.next <= in.block_count(),
             "no more Blocks are granted than the window and the Transfer hold");
}

Address WritesIn::place_of(const Incoming& in, std::uint32_t b_num) const {
  return Address::from_linear(
      in.landing.at.linear(config_.local_bufsize) + (std::uint64_t{b_num} << in.blocksize),
      config_.local_bufsize);
}

void WritesIn::send_grant(const Incoming& in, std::uint32_t b_num) {
  const auto at = place_of(in, b_num);
  auto& entry = outbox_.add();
  entry.header =
      wire::to_header(wire::ClearToSend{.blocksize = static_cast<std::uint16_t>(in.blocksize),
                                        .r_mx = in.landing.mx,
                                        .r_bufx = at.bufx,
                                        .r_offset = at.offset,
                                        .b_num = b_num,
                                        .i_id = in.i_id,
                                        .r_id = in.r_id});
  // Never exceeds the landing, whatever a later RTS says.
  entry.limited = in.in_parts ? kInParts : 1;
  entry.length = static_cast<std::uint32_t>(std::min(
      in.length - (std::uint64_t{b_num} << in.blocksize), std::uint64_t{1} << in.blocksize));
}

// The CTS is on its way, or the Node will repeat it if no data arrives.
bool WritesIn::repeats(std::uint32_t i_id) {
  const auto r_id = find(i_id);
  if (r_id) outbox_.tell_seen(i_id, *r_id);
  return r_id.has_value();
}

// The header may also be that of a Get's answer that arrives after the Get was cancelled. Its ids
// are the peer's and may equal those of a Block of ours; its place does not.
bool WritesIn::on_block(const ReceivedEntry& entry) {
  const auto data = wire::decode_as<wire::Data>(entry.header);
  const auto found = transfers_.find(data.r_id);
  if (found == transfers_.end()) return false;
  auto& in = found->second;
  if (data.r_mx != in.landing.mx || Address{data.r_bufx, data.r_offset} != place_of(in, data.b_num))
    return true;
  if (in.open.erase(data.b_num) == 0) return true;
  // protocol: 9.26
  in.tag = data.opaque;
  progress_ = in.progress = clock_.now();
  loss_.observe(std::uint64_t{data.stu_num} + 1, cts_repeated_);
  if (in.state == InboundState::kGranting) grant(in);
  if (in.open.empty() && in.next == in.block_count()) {
    in.state.must(InboundEvent::kLastBlock);
    finish(in, 0);
  }
  return true;
}

std::optional<std::uint32_t> WritesIn::find(std::uint32_t i_id) const {
  for (const auto& [r_id, in] : transfers_)
    if (in.i_id == i_id) return r_id;
  return std::nullopt;
}

bool WritesIn::knows(std::uint32_t r_id, std::uint32_t i_id) const {
  const auto found = transfers_.find(r_id);
  return found != transfers_.end() && found->second.i_id == i_id;
}

// The peer may not know our id of what it ends.
bool WritesIn::on_end(const wire::End& end) {
  for (auto& [r_id, in] : transfers_) {
    if (in.i_id != end.i_id || (end.r_id != wire::kNoId && r_id != end.r_id)) continue;
    in.state.must(InboundEvent::kEnded);
    finish(in, -ECANCELED);
    return true;
  }
  return false;
}

bool WritesIn::cancel(Context context) {
  for (auto& [r_id, in] : transfers_) {
    if (in.context != context) continue;
    if (in.state == InboundState::kGranting) give_up(in, -ECANCELED);
    return true;
  }
  return false;
}

// The END voids the grants when it leaves. Until then the Node confirms to the peer what is
// complete.
// protocol: 9.43
void WritesIn::give_up(Incoming& in, int error) {
  in.state.must(InboundEvent::kGivenUp);
  in.error = error;
  endings_.end(in.i_id, in.r_id, std::nullopt);
  ending_.push_back({outbox_.last_number(), in.r_id});
}

void WritesIn::end_has_left() {
  const auto found = transfers_.find(ending_.front().r_id);
  ending_.pop_front();
  if (found == transfers_.end()) return;  // the rest of it came, or the peer's END
  auto& in = found->second;
  in.state.must(InboundEvent::kVoided);
  finish(in, in.error, true);
}

void WritesIn::finish(Incoming& in, int status, bool voided) {
  STP_ASSERT(status != 0 || in.state == InboundState::kDone, "what is complete has its last Block");
  Completion c{};
  c.kind = in.kind;
  c.context = in.context;
  c.status = status;
  c.length = status == 0 ? in.length : 0;
  c.tag = in.tag;
  c.message = in.msn;
  if (status == 0 || voided)
    completions_.add(c);
  else  // the EA that voids its grants is on its way to the Node
    completions_.add_once_taken(c);
  finished_.remember(in.i_id);
  transfers_.erase(in.r_id);
  if (transfers_.empty()) clock_.stop(Alarm::kWritesIn);
}

void WritesIn::expire() {
  const auto now = clock_.now();
  for (auto next = transfers_.begin(); next != transfers_.end();) {
    auto& in = (next++)->second;
    if (in.state == InboundState::kEnding) continue;
    // Those that share a path wait for each other.
    // protocol: 10.17
    const auto progress = std::max(in.progress, path_block_ != 0 ? progress_ : 0);
    if (now - progress < clock_.progress_patience()) {
      clock_.due_at(Alarm::kWritesIn, progress + clock_.progress_patience());
      continue;
    }
    give_up(in, -ETIMEDOUT);
  }
}

void WritesIn::fail(int error) {
  for (const auto& [id, in] : transfers_)
    completions_.add(in.kind, in.context, in.error != 0 ? in.error : error);
  transfers_.clear();
  ending_.clear();
}

namespace {

using wire::Op;

constexpr std::size_t kMaxWaiting = 1024;  // further offers are refused

}  // namespace

void Offers::post(Context context, const Landing& landing) {
  receives_.push_back({context, landing});
  match();
}

bool Offers::cancel(Context context) {
  const auto posted = std::find_if(receives_.begin(), receives_.end(),
                                   [=](const Receive& each) { return each.context == context; });
  if (posted == receives_.end()) return false;
  receives_.erase(posted);
  completions_.add(Completion::Kind::kReceive, context, -ECANCELED);
  return true;
}

// protocol: 9.21
void Offers::add(const OfferedWrite& offer) {
  const bool too_far = offer.msn != 0 && !order_.is_near(offer.msn);
  if (waiting_.size() == kMaxWaiting || too_far)
    return outbox_.refuse(Op::kRequestAnswer, offer.i_id);
  waiting_.push_back(offer);
  const auto newest = waiting_.end() - 1;
  const auto place = std::find_if(waiting_.begin(), newest, [&](const OfferedWrite& each) {
    return MessageOrder::is_before(offer.msn, each.msn);
  });
  std::rotate(place, newest, waiting_.end());
  STP_ASSERT(waiting_.size() <= kMaxWaiting, "so many offers wait at most");
  match();
  repeats(offer.i_id);  // no CTS yet: that follows when there is room
}

bool Offers::repeats(std::uint32_t i_id) {
  for (const auto& offer : waiting_) {
    if (offer.i_id != i_id) continue;
    outbox_.tell_seen(offer.i_id, offer.r_id);
    return true;
  }
  return false;
}

// Its place in the order of messages is given up by skip().
bool Offers::take_back(std::uint32_t i_id) {
  const auto before = waiting_.size();
  erase_if(waiting_, [=](const OfferedWrite& offer) { return offer.i_id == i_id; });
  if (waiting_.size() == before) return false;
  finished_.remember(i_id);
  return true;
}

// protocol: 9.22
void Offers::skip(std::uint32_t msn) {
  if (!order_.is_near(msn)) return;  // already handled
  order_.skip(msn);
  match();
}

void Offers::pass_message() {
  order_.pass();
  match();
}

// Refuses an offer longer than its receive.
// protocol: 9.23
void Offers::match() {
  for (drop_past(); !waiting_.empty() && !receives_.empty(); drop_past()) {
    if (order_.is_ahead(waiting_.front().msn)) return;  // an earlier one is on its way
    const auto offer = take_first();
    const auto receive = receives_.front();
    if (offer.length > receive.landing.length) {
      finished_.refuse(Op::kRequestAnswer, offer.i_id);
      continue;
    }
    receives_.pop_front();
    writes_.begin(offer, Completion::Kind::kReceive, receive.context, receive.landing);
  }
}

// The first offer has its turn.
OfferedWrite Offers::take_first() {
  const auto offer = waiting_.front();
  waiting_.pop_front();
  if (offer.msn != 0) order_.pass();
  return offer;
}

// Drops offers that were taken back before they arrived.
void Offers::drop_past() {
  while (!waiting_.empty() && order_.is_past(waiting_.front().msn)) {
    finished_.remember(waiting_.front().i_id);
    waiting_.pop_front();
  }
}

std::optional<Offer> Offers::waiting() {
  drop_past();
  if (waiting_.empty() || !receives_.empty()) return std::nullopt;
  const auto& first = waiting_.front();
  if (order_.is_ahead(first.msn)) return std::nullopt;
  return Offer{first.length, first.msn};
}

void Offers::refuse_waiting() {
  if (waiting()) finished_.refuse(Op::kRequestAnswer, take_first().i_id);
}

// protocol: 9.33
RingQueue<OfferedWrite>::iterator Offers::first_ahead() {
  drop_past();
  return std::find_if(waiting_.begin(), waiting_.end(), [this](const OfferedWrite& offer) {
    return order_.is_ahead(offer.msn) && order_.is_near(offer.msn) && !order_.is_skipped(offer.msn);
  });
}

std::optional<Offer> Offers::waiting_ahead() {
  const auto found = first_ahead();
  if (found == waiting_.end()) return std::nullopt;
  return Offer{found->length, found->msn};
}

void Offers::receive_ahead(Context context, const Landing& landing) {
  const auto found = first_ahead();
  if (found == waiting_.end()) return;
  const auto offer = *found;
  waiting_.erase(found);
  order_.skip(offer.msn);
  writes_.begin(offer, Completion::Kind::kReceive, context, landing);
}

void Offers::fail(int error) {
  for (const auto& receive : receives_)
    completions_.add(Completion::Kind::kReceive, receive.context, error);
  receives_.clear();
  waiting_.clear();
}

}  // namespace stp
