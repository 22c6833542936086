// SPDX-License-Identifier: BSD-3-Clause
// Put: Blocks into a region that the peer opened, at most its window unacknowledged.
#include <algorithm>
#include <cerrno>

#include "stp/base/assert.h"
#include "stp/transfer/sequencer_impl.h"

namespace stp {
namespace {

constexpr std::size_t kMaxQueued = 65'536;  // Blocks of one region

// Of short Blocks that leave together one in so many asks: an answer costs as much as they do.
constexpr std::uint32_t kAskOnce = 32;
constexpr std::uint32_t kShort = 4'096;

}  // namespace

using wire::Op;
namespace flag = wire::flag;

int Sequencer::put(Context context, const RemoteRegion& region, std::uint64_t offset,
                   Address source, std::uint64_t length, std::uint16_t flags) {
  auto& self = *impl_;
  if (self.ended != 0) return self.ended;
  auto const found = self.puts.find(region.r_id);
  if (found == self.puts.end()) return -EACCES;
  auto& stream = found->second;
  if (offset > stream.region.length || length > stream.region.length - offset) return -EINVAL;
  auto const block = std::uint64_t{1} << self.config.max_block;
  auto const count = length == 0 ? 1 : ((length - 1) >> self.config.max_block) + 1;
  if (count > kMaxQueued - stream.blocks.size()) return -EAGAIN;
  auto const from = source.linear(self.config.local_bufsize);
  for (std::uint64_t i = 0; i < count; ++i) {
    auto const at = i * block;
    auto& piece = stream.blocks.place();
    piece.context = context;
    piece.last = i + 1 == count;
    piece.total = length;
    piece.source = Address::from_linear(from + at, self.config.local_bufsize);
    piece.offset = offset + at;
    piece.length = static_cast<std::uint32_t>(std::min(block, length - at));
    piece.flags = flags;
    piece.cancelled = false;
  }
  self.send_puts(stream);
  return 0;
}

// protocol: 9.11
void Sequencer::Impl::send_puts(PutStream& stream) {
  if (stream.sent == 0) stream.stalled_since = clock;
  while (stream.sent < stream.blocks.size() && stream.sent < stream.region.window)
    send_put(stream, stream.sent++);
  STP_ASSERT(stream.sent <= stream.blocks.size() && stream.sent <= stream.region.window,
             "no more Blocks are on their way than there are, and than the window holds");
  if (stream.sent == 0) return stream.retry.stop();
  stream.queued = last_number;
  if (!stream.retry.running()) stream.retry.start(clock, interval(), kAnswerPatience);
  due_at(stream.retry.deadline());
}

// protocol: 9.10, 9.27
void Sequencer::Impl::send_put(PutStream& stream, std::uint32_t index) {
  STP_ASSERT(index < stream.sent, "a Block that is sent is counted");
  auto const& block = stream.blocks[index];
  STP_ASSERT(block.offset + block.length <= stream.region.length, "a Block lies within its region");
  auto const to = Address::from_linear(
      stream.region.at.linear(config.remote_bufsize) + block.offset, config.remote_bufsize);
  // Nobody waits for its header there, unless it is to wake somebody.
  auto const wake = (block.flags & flag::kInterrupt) != 0;
  auto flags = flag::kSendState | (block.flags & (flag::kInterrupt | flag::kOrder));
  if (!wake) flags |= flag::kSilent;
  auto& entry = request();
  entry.header.op_flags = static_cast<std::uint16_t>(flags);
  wire::encode_to(wire::Data{.r_mx = stream.region.mx,
                             .r_bufx = to.bufx,
                             .r_offset = to.offset,
                             .sync = next_sync++,
                             .b_num = stream.b_seq + index,
                             .r_id = stream.region.r_id},
                  entry.header);
  entry.bufx = block.source.bufx;
  entry.offset = block.source.offset;
  entry.length = block.length;
  outbox.back().short_put = block.length <= kShort && !wake;
}

// The first of the outbox leaves. The answer to a later Block tells of all before it, so it asks
// only if its successor is not one that will.
// protocol: 9.27
void Sequencer::Impl::leave_asking(SendEntry& put) {
  auto const& first = outbox[0];
  bool const others_ask = first.short_put && outbox.size() > 1 && outbox[1].short_put &&
                          outbox[1].entry.header.d_id == put.header.d_id;
  if (!others_ask || ++puts_not_asked == kAskOnce) {
    puts_not_asked = 0;
    return;
  }
  put.header.op_flags = static_cast<std::uint16_t>(put.header.op_flags & ~flag::kSendState);
}

Completion Sequencer::Impl::completion_of(const PutBlock& block, int status) {
  Completion c{};
  c.kind = Completion::Kind::kPut;
  c.context = block.context;
  c.status = block.cancelled ? -ECANCELED : status;
  c.length = c.status == 0 ? block.total : 0;
  return c;
}

// RSR of the region: B_seq is its first Block that is not complete, whatever B_num says.
// protocol: 9.36, 10.16
void Sequencer::Impl::put_state(PutStream& stream, const wire::RequestStateResponse& rsr,
                                bool refused, Time now) {
  if (refused) return abandon(stream, -ECANCELED);
  auto done = rsr.b_seq - stream.b_seq;
  if (done > stream.sent) return;  // an old answer
  bool const answers = stream.question && stream.question->sync == rsr.sync;
  bool const lost = answers && rsr.b_seq == stream.question->b_num;
  if (answers) stream.question.reset();
  if (done == 0) {
    if (!answers) return;
    if (lost) {
      send_put(stream, 0);
      stream.queued = last_number;
    }
    return stream.retry.answered(now);
  }
  for (; done > 0; --done) {
    auto const& block = stream.blocks.front();
    if (block.last) completions.place() = completion_of(block, 0);
    stream.blocks.pop_front();
    ++stream.b_seq;
    --stream.sent;
  }
  stream.question.reset();  // it was about a Block that is complete
  stream.stalled_since = now;
  stream.retry.stop();
  if (stream.sent > 0) stream.retry.start(now, interval(), kAnswerPatience);
  send_puts(stream);
}

// Gives the region up: everything outstanding completes with `status`, the peer is told.
void Sequencer::Impl::abandon(PutStream& stream, int status) {
  auto const region = stream.region;
  auto const r_id = region.r_id, i_id = stream.i_id;
  forget_requests(r_id);
  end(r_id, i_id, std::nullopt);
  // The peer has the region until it sees that END: nothing may be sent into it from memory that
  // has been given back.
  for (auto const& block : stream.blocks)
    if (block.last) complete_once_taken(completion_of(block, status));
  Completion revoked{};
  revoked.kind = Completion::Kind::kRevoked;
  revoked.region = region;
  complete_once_taken(revoked);
  puts.erase(r_id);
}

// protocol: 10.6, 10.17
void Sequencer::Impl::expire_puts(Time now) {
  for (auto next = puts.begin(); next != puts.end();) {
    auto& stream = (next++)->second;
    bool gave_up = false;
    STP_ASSERT(stream.retry.running() == (stream.sent > 0),
               "the clock runs while a Block is on its way");
    bool const repeat = again(stream.retry, stream.queued, Answerer::kQuestion, now, gave_up);
    if (gave_up || (stream.sent > 0 && now - stream.stalled_since >= kProgressPatience)) {
      abandon(stream, -ETIMEDOUT);
    } else if (repeat) {
      auto const sync = ask_state(stream.region.r_id, stream.i_id, stream.b_seq);
      stream.question = {.b_num = stream.b_seq, .sync = sync};
      stream.queued = last_number;
    }
  }
}

}  // namespace stp
