// SPDX-License-Identifier: BSD-3-Clause
#include "stp/transfer/puts.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "stp/base/assert.h"
#include "stp/transfer/clock.h"

namespace stp {
namespace {

namespace flag = wire::flag;

constexpr std::size_t kMaxQueued = 65'536;  // Blocks of one region

}  // namespace

void Puts::open(std::uint32_t i_id, const RemoteRegion& region) {
  STP_ASSERT(!is_open(region.r_id), "a region is opened once");
  auto& stream = streams_[region.r_id];
  stream.i_id = i_id;
  stream.region = region;
}

int Puts::close(std::uint32_t r_id) {
  auto* const found = find(r_id);
  if (found == nullptr) return -EACCES;
  abandon(*found, -ECANCELED);
  return 0;
}

// Runs once per Put, so it is one function.
[[gnu::flatten]] int Puts::put(Context context, const RemoteRegion& region, std::uint64_t offset,
                               Address source, std::uint64_t length, const PutOptions& options) {
  auto* const found = find(region.r_id);
  if (found == nullptr) return -EACCES;
  auto& stream = *found;
  if (offset > stream.region.length || length > stream.region.length - offset) return -EINVAL;
  const auto block = std::uint64_t{1} << config_.max_block;
  const auto count = length == 0 ? 1 : ((length - 1) >> config_.max_block) + 1;
  if (count > kMaxQueued - stream.blocks.size()) return -EAGAIN;
  const auto from = source.linear(config_.local_bufsize);
  for (std::uint64_t i = 0; i < count; ++i) {
    const auto at = i * block;
    auto& piece = stream.blocks.place();
    piece.context = context;
    piece.last = i + 1 == count;
    piece.total = length;
    piece.source = Address::from_linear(from + at, config_.local_bufsize);
    piece.offset = offset + at;
    piece.length = static_cast<std::uint32_t>(std::min(block, length - at));
    piece.flags = options.flags;
    piece.cancelled = false;
    piece.quiet = options.quiet && length <= Asking::kShort;
  }
  send(stream);
  return 0;
}

Puts::Stream* Puts::find(std::uint32_t r_id) {
  if (recent_ != nullptr && recent_->region.r_id == r_id) return recent_;
  const auto found = streams_.find(r_id);
  return found == streams_.end() ? nullptr : recent_ = &found->second;
}

void Puts::forget(Stream& stream) {
  recent_ = nullptr;
  stop_waiting(stream);
  const auto r_id = stream.region.r_id;
  streams_.erase(r_id);
}

// protocol: 9.11
void Puts::send(Stream& stream) {
  const auto now = clock_.now();
  if (stream.sent == 0) stream.stalled_since = now;
  while (stream.sent < stream.blocks.size() && stream.sent < stream.region.window) {
    ++stream.sent;
    if (stream.unasked++ == 0) stream.confirm_at = now + Asking::kQuietest;
    send_block(stream, stream.sent - 1,
               Asking::must(stream.blocks[stream.sent - 1].quiet, stream.unasked, stream.sent,
                            stream.region.window));
  }
  STP_ASSERT(stream.sent <= stream.blocks.size() && stream.sent <= stream.region.window,
             "no more Blocks are on their way than there are, and than the window holds");
  if (stream.sent == 0) return;
  if (!std::exchange(stream.waits, true)) ++waiting_;
  stream.awaited.number = outbox_.last_number();
  repeats_.keep(stream.awaited, kAnswerPatience);
  if (stream.unasked > 0) clock_.due_at(Alarm::kPuts, stream.confirm_at);
}

// The stream's clock stops. Once nothing of any stream is on its way, no time concerns the Puts.
void Puts::stop_waiting(Stream& stream) {
  stream.awaited.retry.stop();
  if (!std::exchange(stream.waits, false)) return;
  STP_ASSERT(waiting_ > 0, "a stream that waits is counted");
  if (--waiting_ == 0) clock_.stop(Alarm::kPuts);
}

// protocol: 9.10, 9.27
void Puts::send_block(Stream& stream, std::uint32_t index, bool asks) {
  STP_ASSERT(index < stream.sent, "a Block that is sent is counted");
  const auto& block = stream.blocks[index];
  STP_ASSERT(block.offset + block.length <= stream.region.length, "a Block lies within its region");
  const auto to = Address::from_linear(
      stream.region.at.linear(config_.remote_bufsize) + block.offset, config_.remote_bufsize);
  // Silent, unless it should wake its receiver: nobody waits for its header there.
  const auto wake = (block.flags & flag::kInterrupt) != 0;
  unsigned flags = block.flags & (flag::kInterrupt | flag::kOrder);
  if (!wake) flags |= flag::kSilent;
  if (asks) {
    flags |= flag::kSendState;
    stream.unasked = 0;
  }
  auto& entry = outbox_.add_put(block.length <= Asking::kShort && (!wake || !asks));
  entry.header = wire::to_header(wire::Data{.r_mx = stream.region.mx,
                                            .r_bufx = to.bufx,
                                            .r_offset = to.offset,
                                            .sync = outbox_.next_sync(),
                                            .b_num = stream.b_seq + index,
                                            .r_id = stream.region.r_id},
                                 static_cast<std::uint16_t>(flags));
  entry.bufx = block.source.bufx;
  entry.offset = block.source.offset;
  entry.length = block.length;
}

// Sends an RS: its answer covers all Blocks sent before it.
void Puts::ask_about(Stream& stream) {
  const auto sync = outbox_.ask_state(stream.region.r_id, stream.i_id, stream.b_seq);
  stream.question = {.b_num = stream.b_seq, .sync = sync};
  stream.awaited.number = outbox_.last_number();
  stream.unasked = 0;
}

void Puts::confirm(Stream& stream) {
  if (stream.unasked == 0) return;
  if (outbox_.ask_with_last(stream.region.r_id))
    stream.unasked = 0;
  else
    ask_about(stream);
}

void Puts::confirm() {
  for (auto& [r_id, stream] : streams_) confirm(stream);
}

Completion Puts::completion_of(const Block& block, int status) {
  Completion c{};
  c.kind = Completion::Kind::kPut;
  c.context = block.context;
  c.status = block.cancelled ? -ECANCELED : status;
  c.length = c.status == 0 ? block.total : 0;
  return c;
}

// B_seq is the first incomplete Block of the region, whatever B_num says.
// protocol: 9.36, 10.16
void Puts::on_state(const wire::RequestStateResponse& rsr, bool refused) {
  auto* const found = find(rsr.r_id);
  if (found == nullptr || found->i_id != rsr.i_id) return;
  auto& stream = *found;
  if (refused) return abandon(stream, -ECANCELED);
  auto done = rsr.b_seq - stream.b_seq;
  if (done > stream.sent) return;  // an old answer
  const bool answers = stream.question && stream.question->sync == rsr.sync;
  const bool lost = answers && rsr.b_seq == stream.question->b_num;
  if (answers) stream.question.reset();
  if (done == 0) {
    if (!answers) return;
    if (lost) {
      send_block(stream, 0, true);
      stream.awaited.number = outbox_.last_number();
    }
    return repeats_.answered(stream.awaited);
  }
  for (; done > 0; --done) {
    const auto& block = stream.blocks.front();
    if (block.last) completions_.add(completion_of(block, 0));
    stream.blocks.pop_front();
    ++stream.b_seq;
    --stream.sent;
  }
  stream.unasked = std::min(stream.unasked, stream.sent);
  stream.question.reset();  // it asked about a Block that is complete now
  stream.stalled_since = clock_.now();
  stop_waiting(stream);
  send(stream);
}

// Gives up the region: everything outstanding completes with `status`, and the peer is told.
void Puts::abandon(Stream& stream, int status) {
  const auto region = stream.region;
  outbox_.forget_data(region.r_id);
  endings_.end(region.r_id, stream.i_id, std::nullopt);
  // The peer has the region until it sees that END: nothing may be sent into it from memory that
  // has been returned.
  for (const auto& block : stream.blocks)
    if (block.last) completions_.add_once_taken(completion_of(block, status));
  Completion revoked{};
  revoked.kind = Completion::Kind::kRevoked;
  revoked.region = region;
  completions_.add_once_taken(revoked);
  forget(stream);
}

bool Puts::on_end(const wire::End& end) {
  auto* const found = find(end.i_id);
  if (found == nullptr || found->i_id != end.r_id) return false;
  outbox_.forget_data(end.i_id);
  for (const auto& block : found->blocks)
    if (block.last) completions_.add(completion_of(block, -ECANCELED));
  completions_.add(Completion::Kind::kRevoked, 0, 0).region = found->region;
  forget(*found);
  return true;
}

// The Blocks that have been sent have their numbers and may be repeated until the peer has them;
// only then is their memory returned. If nothing is left to be sent, the put is done.
bool Puts::cancel(Context context) {
  const auto is_its = [context](const Block& b) { return b.context == context; };
  for (auto& [r_id, stream] : streams_) {
    if (std::none_of(stream.blocks.begin(), stream.blocks.end(), is_its)) continue;
    STP_ASSERT(stream.sent <= stream.blocks.size(), "what has been sent is in the queue");
    const auto unsent = stream.blocks.begin() + static_cast<std::ptrdiff_t>(stream.sent);
    const auto kept = std::remove_if(unsent, stream.blocks.end(), is_its);
    if (kept == stream.blocks.end()) return true;
    stream.blocks.truncate(static_cast<std::size_t>(kept - stream.blocks.begin()));
    const auto newest_first = std::make_reverse_iterator(stream.blocks.end());
    const auto oldest = std::make_reverse_iterator(stream.blocks.begin());
    const auto last_sent = std::find_if(newest_first, oldest, is_its);
    if (last_sent == oldest)
      completions_.add(Completion::Kind::kPut, context, -ECANCELED);
    else
      last_sent->last = last_sent->cancelled = true;
    return true;
  }
  return false;
}

// protocol: 10.6, 10.17
void Puts::expire() {
  const auto now = clock_.now();
  for (auto next = streams_.begin(); next != streams_.end();) {
    auto& stream = (next++)->second;
    STP_ASSERT(stream.awaited.retry.running() == (stream.sent > 0),
               "the clock runs while a Block is on its way");
    const auto what = repeats_.next(stream.awaited, Repeats::Answerer::kQuestion);
    const bool stalled = stream.sent > 0 && now - stream.stalled_since >= kProgressPatience;
    if (what == Repeats::Next::kGiveUp || stalled) {
      abandon(stream, -ETIMEDOUT);
    } else if (what == Repeats::Next::kSend) {
      ask_about(stream);
    } else if (stream.unasked > 0) {
      if (now < stream.confirm_at)
        clock_.due_at(Alarm::kPuts, stream.confirm_at);
      else
        confirm(stream);
    }
  }
}

void Puts::fail(int error) {
  for (const auto& [id, stream] : streams_)
    for (const auto& block : stream.blocks)
      if (block.last) completions_.add(completion_of(block, error));
  streams_.clear();
  recent_ = nullptr;
  waiting_ = 0;
}

std::size_t Puts::outstanding() const {
  std::size_t count = 0;
  for (const auto& [id, stream] : streams_) count += stream.blocks.size();
  return count;
}

}  // namespace stp
