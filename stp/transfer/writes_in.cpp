// SPDX-License-Identifier: BSD-3-Clause
#include "stp/transfer/writes_in.h"

#include <algorithm>
#include <bit>
#include <cerrno>

#include "stp/base/assert.h"
#include "stp/transfer/patience.h"

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
  in.blocksize = choose_blocksize(offer.length, offer.max_block);
  // protocol: 9.3, 9.25
  in.window = std::clamp(offer.cts_wanted, 1U, cts_window());
  in.progress = clock_.now();
  clock_.due_at(Alarm::kWritesIn, in.progress + kProgressPatience);
  grant(in);
}

// protocol: 9.4
unsigned WritesIn::choose_blocksize(std::uint64_t length, unsigned max_block) const {
  const auto stu = config_.receive_stu_log2;
  const auto whole = static_cast<unsigned>(std::bit_width(length > 1 ? length - 1 : 1));
  const auto lossy = stu + loss_.block_stus_log2(stu);
  const auto path = path_block_ != 0 ? path_block_ : wire::kMaxBlocksize;
  return std::max(wire::kMinBlocksize, std::min({config_.max_block, max_block, whole, lossy, path,
                                                 stu + wire::kMaxStusOfBlockLog2}));
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
  entry.limited = 1;
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
  in.progress = clock_.now();
  loss_.observe(std::uint64_t{data.stu_num} + 1, cts_repeated_);
  grant(in);
  if (in.open.empty()) {
    in.state.must(InboundEvent::kLastBlock);
    STP_ASSERT(in.next == in.block_count(), "the last Block has been granted");
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
    endings_.end(in.i_id, r_id, std::nullopt);  // voids the grants when it leaves
    finish(in, -ECANCELED);
    return true;
  }
  return false;
}

void WritesIn::finish(Incoming& in, int status) {
  STP_ASSERT(status != 0 || in.state == InboundState::kDone, "what is complete has its last Block");
  Completion c{};
  c.kind = in.kind;
  c.context = in.context;
  c.status = status;
  c.length = status == 0 ? in.length : 0;
  c.tag = in.tag;
  c.message = in.msn;
  if (status == 0)
    completions_.add(c);
  else  // the END or EA that voids its grants is on its way to the Node
    completions_.add_once_taken(c);
  finished_.remember(in.i_id);
  transfers_.erase(in.r_id);
}

void WritesIn::expire() {
  const auto now = clock_.now();
  for (auto next = transfers_.begin(); next != transfers_.end();) {
    auto& in = (next++)->second;
    if (now - in.progress < kProgressPatience) {
      clock_.due_at(Alarm::kWritesIn, in.progress + kProgressPatience);
      continue;
    }
    in.state.must(InboundEvent::kSilence);
    endings_.end(in.i_id, in.r_id, std::nullopt);
    finish(in, -ETIMEDOUT);
  }
}

void WritesIn::fail(int error) {
  for (const auto& [id, in] : transfers_) completions_.add(in.kind, in.context, error);
  transfers_.clear();
}

}  // namespace stp
