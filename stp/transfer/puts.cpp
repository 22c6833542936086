// SPDX-License-Identifier: BSD-3-Clause
// Put: Blocks into a region that the peer opened, at most its window unacknowledged.
#include <algorithm>
#include <cerrno>

#include "stp/base/assert.h"
#include "stp/transfer/sequencer_impl.h"

namespace stp {
namespace {

constexpr std::size_t kMaxQueued = 65'536;  // Blocks of one region

// Of short Blocks that leave together, one in this many asks for an answer: an answer costs as much
// as a Block.
constexpr std::uint32_t kAskOnce = 32;
constexpr std::uint32_t kShort = 4'096;
// Delay before the peer is asked about quiet Puts.
constexpr Time kQuietest = kMillisecond;

}  // namespace

using wire::Op;
namespace flag = wire::flag;

int Sequencer::put(Context context, const RemoteRegion& region, std::uint64_t offset,
                   Address source, std::uint64_t length, const PutOptions& options) {
  auto& self = *impl_;
  if (self.ended != 0) return self.ended;
  auto* const found = self.find_puts(region.r_id);
  if (found == nullptr) return -EACCES;
  auto& stream = *found;
  if (offset > stream.region.length || length > stream.region.length - offset) return -EINVAL;
  const auto block = std::uint64_t{1} << self.config.max_block;
  const auto count = length == 0 ? 1 : ((length - 1) >> self.config.max_block) + 1;
  if (count > kMaxQueued - stream.blocks.size()) return -EAGAIN;
  const auto from = source.linear(self.config.local_bufsize);
  for (std::uint64_t i = 0; i < count; ++i) {
    const auto at = i * block;
    auto& piece = stream.blocks.place();
    piece.context = context;
    piece.last = i + 1 == count;
    piece.total = length;
    piece.source = Address::from_linear(from + at, self.config.local_bufsize);
    piece.offset = offset + at;
    piece.length = static_cast<std::uint32_t>(std::min(block, length - at));
    piece.flags = options.flags;
    piece.cancelled = false;
    piece.quiet = options.quiet && length <= kShort;
  }
  self.send_puts(stream);
  return 0;
}

PutStream* Sequencer::Impl::find_puts(std::uint32_t r_id) {
  if (recent_puts != nullptr && recent_puts->region.r_id == r_id) return recent_puts;
  const auto found = puts.find(r_id);
  return found == puts.end() ? nullptr : recent_puts = &found->second;
}

void Sequencer::Impl::forget_puts(std::uint32_t r_id) {
  recent_puts = nullptr;
  puts.erase(r_id);
}

// protocol: 9.11
void Sequencer::Impl::send_puts(PutStream& stream) {
  if (stream.sent == 0) stream.stalled_since = clock;
  while (stream.sent < stream.blocks.size() && stream.sent < stream.region.window) {
    ++stream.sent;
    if (stream.unasked++ == 0) stream.confirm_at = clock + kQuietest;
    send_put(stream, stream.sent - 1, must_ask(stream));
  }
  STP_ASSERT(stream.sent <= stream.blocks.size() && stream.sent <= stream.region.window,
             "no more Blocks are on their way than there are, and than the window holds");
  if (stream.sent == 0) {
    may_wait_for_nothing = true;
    return stream.retry.stop();
  }
  stream.queued = last_number;
  if (!stream.retry.running()) stream.retry.start(clock, interval(), kAnswerPatience);
  due_at(stream.retry.deadline());
  if (stream.unasked > 0) due_at(stream.confirm_at);
}

// Whether the Block sent last must ask for an answer. Without answers the window would fill up.
// protocol: 9.27
bool Sequencer::Impl::must_ask(const PutStream& stream) {
  return !stream.blocks[stream.sent - 1].quiet || stream.unasked * 4 >= stream.region.window ||
         stream.sent == stream.region.window;
}

// protocol: 9.10, 9.27
void Sequencer::Impl::send_put(PutStream& stream, std::uint32_t index, bool asks) {
  STP_ASSERT(index < stream.sent, "a Block that is sent is counted");
  const auto& block = stream.blocks[index];
  STP_ASSERT(block.offset + block.length <= stream.region.length, "a Block lies within its region");
  const auto to = Address::from_linear(
      stream.region.at.linear(config.remote_bufsize) + block.offset, config.remote_bufsize);
  // Silent, unless it should wake its receiver: nobody waits for its header there.
  const auto wake = (block.flags & flag::kInterrupt) != 0;
  unsigned flags = block.flags & (flag::kInterrupt | flag::kOrder);
  if (!wake) flags |= flag::kSilent;
  if (asks) {
    flags |= flag::kSendState;
    stream.unasked = 0;
  }
  auto& entry = bare_request();
  entry.header = header(wire::Data{.r_mx = stream.region.mx,
                                   .r_bufx = to.bufx,
                                   .r_offset = to.offset,
                                   .sync = next_sync++,
                                   .b_num = stream.b_seq + index,
                                   .r_id = stream.region.r_id},
                        static_cast<std::uint16_t>(flags));
  entry.bufx = block.source.bufx;
  entry.offset = block.source.offset;
  entry.length = block.length;
  outbox.back().may_not_ask = block.length <= kShort && (!wake || !asks);
}

// Sends an RS: its answer covers all Blocks sent before it.
void Sequencer::Impl::ask_about(PutStream& stream) {
  const auto sync = ask_state(stream.region.r_id, stream.i_id, stream.b_seq);
  stream.question = {.b_num = stream.b_seq, .sync = sync};
  stream.queued = last_number;
  stream.unasked = 0;
}

// Makes the last Block ask for an answer if it has not left yet.
void Sequencer::Impl::confirm(PutStream& stream) {
  if (stream.unasked == 0) return;
  if (outbox.empty()) return ask_about(stream);
  auto& header = outbox.back().entry.header;
  if (header.op() != Op::kData || header.d_id != stream.region.r_id) return ask_about(stream);
  header.op_flags |= flag::kSendState;
  stream.unasked = 0;
}

void Sequencer::confirm_puts() {
  if (impl_->ended != 0) return;
  for (auto& [r_id, stream] : impl_->puts) impl_->confirm(stream);
}

// The first request of the outbox leaves. It does not ask for an answer if it is quiet or if the
// next one will ask: the answer to a later Block covers all before it.
// protocol: 9.27
void Sequencer::Impl::leave_asking(SendEntry& put) {
  const auto asks = [](const Outgoing& out) {
    return out.may_not_ask && out.entry.header.has(flag::kSendState);
  };
  const bool next_asks =
      outbox.size() > 1 && asks(outbox[1]) && outbox[1].entry.header.d_id == put.header.d_id;
  const bool must = asks(outbox[0]) && !next_asks;
  if (must || ++puts_not_asked == kAskOnce) {
    puts_not_asked = 0;
    put.header.op_flags |= flag::kSendState;
  } else {
    put.header.op_flags = static_cast<std::uint16_t>(put.header.op_flags & ~flag::kSendState);
  }
}

Completion Sequencer::Impl::completion_of(const PutBlock& block, int status) {
  Completion c{};
  c.kind = Completion::Kind::kPut;
  c.context = block.context;
  c.status = block.cancelled ? -ECANCELED : status;
  c.length = c.status == 0 ? block.total : 0;
  return c;
}

// RSR of the region: B_seq is its first incomplete Block, whatever B_num says.
// protocol: 9.36, 10.16
void Sequencer::Impl::put_state(PutStream& stream, const wire::RequestStateResponse& rsr,
                                bool refused, Time now) {
  if (refused) return abandon(stream, -ECANCELED);
  auto done = rsr.b_seq - stream.b_seq;
  if (done > stream.sent) return;  // an old answer
  const bool answers = stream.question && stream.question->sync == rsr.sync;
  const bool lost = answers && rsr.b_seq == stream.question->b_num;
  if (answers) stream.question.reset();
  if (done == 0) {
    if (!answers) return;
    if (lost) {
      send_put(stream, 0, true);
      stream.queued = last_number;
    }
    return stream.retry.answered(now);
  }
  for (; done > 0; --done) {
    const auto& block = stream.blocks.front();
    if (block.last) completions.place() = completion_of(block, 0);
    stream.blocks.pop_front();
    ++stream.b_seq;
    --stream.sent;
  }
  stream.unasked = std::min(stream.unasked, stream.sent);
  stream.question.reset();  // it asked about a Block that is complete now
  stream.stalled_since = now;
  stream.retry.stop();
  if (stream.sent > 0) stream.retry.start(now, interval(), kAnswerPatience);
  send_puts(stream);
}

// Gives up the region: everything outstanding completes with `status`, and the peer is told.
void Sequencer::Impl::abandon(PutStream& stream, int status) {
  const auto region = stream.region;
  const auto r_id = region.r_id, i_id = stream.i_id;
  forget_requests(r_id);
  end(r_id, i_id, std::nullopt);
  // The peer has the region until it sees that END: nothing may be sent into it from memory that
  // has been returned.
  for (const auto& block : stream.blocks)
    if (block.last) complete_once_taken(completion_of(block, status));
  Completion revoked{};
  revoked.kind = Completion::Kind::kRevoked;
  revoked.region = region;
  complete_once_taken(revoked);
  forget_puts(r_id);
}

// protocol: 10.6, 10.17
void Sequencer::Impl::expire_puts(Time now) {
  for (auto next = puts.begin(); next != puts.end();) {
    auto& stream = (next++)->second;
    bool gave_up = false;
    STP_ASSERT(stream.retry.running() == (stream.sent > 0),
               "the clock runs while a Block is on its way");
    const bool repeat = again(stream.retry, stream.queued, Answerer::kQuestion, now, gave_up);
    if (gave_up || (stream.sent > 0 && now - stream.stalled_since >= kProgressPatience)) {
      abandon(stream, -ETIMEDOUT);
    } else if (repeat) {
      ask_about(stream);
    } else if (stream.unasked > 0) {
      if (now < stream.confirm_at)
        due_at(stream.confirm_at);
      else
        confirm(stream);
    }
  }
}

}  // namespace stp
