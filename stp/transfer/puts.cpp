// SPDX-License-Identifier: BSD-3-Clause
#include "stp/transfer/puts.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "stp/base/assert.h"
#include "stp/transfer/clock.h"
#include "stp/wire/big_endian.h"

namespace stp {
namespace {

namespace flag = wire::flag;

constexpr std::size_t kMaxQueued = 65'536;  // Blocks of one region

}  // namespace

void Puts::open(std::uint32_t i_id, const RemoteRegion& region) {
  STP_ASSERT(!is_open(region.r_id), "a region is opened once");
  auto& stream = streams_[region.r_id];
  stream.i_id = i_id;
  stream.r_id = region.r_id;
  stream.mx = region.mx;
  stream.length = region.length;
  stream.window = region.window;
  stream.at = region.at;
  stream.base = region.base;
  stream.access = region.access;
  stream.start = region.at.linear(config_.remote_bufsize);
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
  if (offset > stream.length || length > stream.length - offset) return -EINVAL;
  const auto block = std::uint64_t{1} << config_.max_block;
  const auto room = kMaxQueued - stream.blocks.size();
  const auto add = [&](Address from, std::uint64_t at, std::uint64_t size) -> const Block& {
    auto& piece = stream.blocks.place();
    piece.context = context;
    piece.last = at + size == length;
    piece.total = length;
    piece.source = from;
    piece.offset = offset + at;
    piece.length = static_cast<std::uint32_t>(size);
    piece.flags = options.flags;
    piece.cancelled = false;
    piece.quiet = options.quiet && length <= Asking::kQuietMost;
    piece.told = options.told;
    return piece;
  };
  if (length <= block) {
    if (room == 0) return -EAGAIN;
    const auto& piece = add(source, 0, length);
    if (stream.sent + 1 == stream.blocks.size() && stream.sent < stream.window)
      send_last(stream, piece);
    return 0;
  }
  if (((length - 1) >> config_.max_block) >= room) return -EAGAIN;
  const auto from = source.linear(config_.local_bufsize);
  for (std::uint64_t at = 0; at < length; at += block)
    add(Address::from_linear(from + at, config_.local_bufsize), at, std::min(block, length - at));
  send(stream);
  return 0;
}

Puts::Stream* Puts::find(std::uint32_t r_id) {
  if (recent_ != nullptr && recent_->r_id == r_id) return recent_;
  const auto found = streams_.find(r_id);
  return found == streams_.end() ? nullptr : recent_ = &found->second;
}

void Puts::forget(Stream& stream) {
  recent_ = nullptr;
  stop_waiting(stream);
  const auto r_id = stream.r_id;
  streams_.erase(r_id);
}

// protocol: 9.11
void Puts::send(Stream& stream) {
  if (stream.sent == 0) stream.stalled_since = clock_.now();
  while (stream.sent < stream.blocks.size() && stream.sent < stream.window)
    send_next(stream, stream.blocks[stream.sent]);
  if (stream.sent != 0) has_sent(stream);
}

// `block`, the last one, and all before it have been sent.
void Puts::send_last(Stream& stream, const Block& block) {
  if (stream.sent == 0) stream.stalled_since = clock_.now();
  send_next(stream, block);
  has_sent(stream);
}

// `block` is the first one that has not been sent.
void Puts::send_next(Stream& stream, const Block& block) {
  const auto index = stream.sent++;
  send_block(stream, block, index, !block.quiet || must_ask(stream, block));
}

void Puts::has_sent(Stream& stream) {
  STP_ASSERT(stream.sent <= stream.blocks.size() && stream.sent <= stream.window,
             "no more Blocks are on their way than there are, and than the window holds");
  stream.awaited.number = outbox_.last_number();
  if (!stream.waits) wait(stream);
  if (stream.unasked.blocks > 0) clock_.due_at(Alarm::kPuts, stream.confirm_at);
}

// A quiet Block, the last one sent.
bool Puts::must_ask(Stream& stream, const Block& block) {
  auto& unasked = stream.unasked;
  if (unasked.blocks++ == 0) {
    stream.confirm_at = clock_.now() + Asking::kQuietest;
    unasked.bytes = 0;
  }
  unasked.bytes += block.length;
  return Asking::must(block.told, unasked, stream.sent, stream.window);
}

// A Block is on its way. From then on the alarm is set until none is.
void Puts::wait(Stream& stream) {
  STP_ASSERT(!stream.awaited.retry.running(), "the clock runs while a Block is on its way");
  stream.waits = true;
  ++waiting_;
  repeats_.start(stream.awaited, kAnswerPatience);
}

// The stream's clock stops. Once nothing of any stream is on its way, no time concerns the Puts.
void Puts::stop_waiting(Stream& stream) {
  stream.awaited.retry.stop();
  if (!std::exchange(stream.waits, false)) return;
  STP_ASSERT(waiting_ > 0, "a stream that waits is counted");
  if (--waiting_ == 0) clock_.stop(Alarm::kPuts);
}

// protocol: 9.10, 9.27
void Puts::send_block(Stream& stream, const Block& block, std::uint32_t index, bool asks) {
  STP_ASSERT(index < stream.sent, "a Block that is sent is counted");
  STP_ASSERT(block.offset + block.length <= stream.length, "a Block lies within its region");
  const auto to = Address::from_linear(stream.start + block.offset, config_.remote_bufsize);
  // Silent, unless it should wake its receiver: nobody waits for its header there.
  const auto wake = (block.flags & flag::kInterrupt) != 0;
  unsigned flags = block.flags & (flag::kInterrupt | flag::kOrder);
  if (!wake) flags |= flag::kSilent;
  if (asks) stream.unasked = {};
  const bool short_one = block.length <= Asking::kShort && (!wake || !asks);
  if (asks && !short_one) flags |= flag::kSendState;
  auto& entry = outbox_.add_put(stream.r_id, short_one, asks);
  wire::make_header(wire::Data{.r_mx = stream.mx,
                               .r_bufx = to.bufx,
                               .r_offset = to.offset,
                               .sync = outbox_.next_sync(),
                               .b_num = stream.b_seq + index,
                               .r_id = stream.r_id},
                    static_cast<std::uint16_t>(flags), entry.header);
  entry.bufx = block.source.bufx;
  entry.offset = block.source.offset;
  entry.length = block.length;
}

// Sends an RS: its answer covers all Blocks sent before it.
void Puts::ask_about(Stream& stream) {
  const auto sync = outbox_.ask_state(stream.r_id, stream.i_id, stream.b_seq);
  stream.question = {.b_num = stream.b_seq, .sync = sync};
  stream.asks = true;
  stream.awaited.number = outbox_.last_number();
  stream.unasked = {};
}

void Puts::confirm(Stream& stream) {
  if (stream.unasked.blocks == 0) return;
  if (outbox_.ask_with_last(stream.r_id))
    stream.unasked = {};
  else
    ask_about(stream);
}

void Puts::confirm() {
  for (auto& [r_id, stream] : streams_) confirm(stream);
}

// The put of which it is the last Block is complete.
inline PutDone Puts::done_of(const Block& block, int status) {
  if (block.cancelled) status = -ECANCELED;
  return {block.context, status == 0 ? block.total : 0, status};
}

inline void Puts::tell(const Block& block, int status) {
  const auto done = done_of(block, status);
  completions_.add_put(done.context, done.status, done.length);
}

// B_seq is the first incomplete Block of the region, whatever B_num says.
// protocol: 9.36, 10.16
bool Puts::on_state(const wire::RequestStateResponse& rsr, bool refused) {
  auto* const found = find(rsr.r_id);
  if (found == nullptr || found->i_id != rsr.i_id) return false;
  if (refused)
    abandon(*found, -ECANCELED);
  else
    on_progress(*found, rsr);
  return true;
}

void Puts::on_progress(Stream& stream, const wire::RequestStateResponse& rsr) {
  auto done = rsr.b_seq - stream.b_seq;
  if (done > stream.sent) return;  // an old answer
  const bool answers = stream.asks && stream.question.sync == rsr.sync;
  const bool lost = answers && rsr.b_seq == stream.question.b_num;
  if (answers) stream.asks = false;
  if (done == 0) {
    if (!answers) return;
    if (lost) {
      send_block(stream, stream.blocks.front(), 0, true);
      stream.awaited.number = outbox_.last_number();
    }
    return repeats_.answered(stream.awaited);
  }
  complete(stream, done);
}

void Puts::arrived(std::uint32_t r_id, std::uint32_t b_seq) {
  auto* const found = find(r_id);
  if (found == nullptr) return;
  const auto done = b_seq - found->b_seq;
  if (done != 0 && done <= found->sent) complete(*found, done);
}

void Puts::tell_of_first(const Stream& stream, std::uint32_t blocks) {
  constexpr std::size_t kAtOnce = 16;
  std::array<PutDone, kAtOnce> done;
  std::size_t count = 0;
  for (std::uint32_t next = 0; next != blocks;) {
    const auto row = stream.blocks.row(next, std::min<std::size_t>(blocks - next, kAtOnce));
    for (const auto& block : row)
      if (block.last) done[count++] = done_of(block, 0);
    completions_.add_puts({done.data(), std::exchange(count, 0)});
    next += static_cast<std::uint32_t>(row.size());
  }
}

// The first `blocks` Blocks have arrived.
void Puts::complete(Stream& stream, std::uint32_t blocks) {
  stream.b_seq += blocks;
  stream.sent -= blocks;
  if (blocks > 1)
    tell_of_first(stream, blocks);
  else if (const auto& block = stream.blocks.front(); block.last)
    tell(block, 0);
  stream.blocks.pop_front(blocks);
  stream.unasked.blocks = std::min(stream.unasked.blocks, stream.sent);
  stream.asks = false;  // it asked about a Block that is complete now
  stream.stalled_since = clock_.now();
  stop_waiting(stream);
  send(stream);
}

// Gives up the region: everything outstanding completes with `status`, and the peer is told.
void Puts::abandon(Stream& stream, int status) {
  const auto region = stream.region();
  outbox_.forget_data(region.r_id);
  endings_.end(region.r_id, stream.i_id, std::nullopt);
  // The peer has the region until it sees that END: nothing may be sent into it from memory that
  // has been returned.
  for (const auto& block : stream.blocks) {
    if (!block.last) continue;
    Completion given_up{};
    given_up.kind = Completion::Kind::kPut;
    given_up.context = block.context;
    given_up.status = block.cancelled ? -ECANCELED : status;
    completions_.add_once_taken(given_up);
  }
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
    if (block.last) tell(block, -ECANCELED);
  completions_.add(Completion::Kind::kRevoked, 0, 0).region = found->region();
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
    const bool stalled =
        stream.sent > 0 && now - stream.stalled_since >= clock_.progress_patience();
    if (what == Repeats::Next::kGiveUp || stalled) {
      abandon(stream, -ETIMEDOUT);
    } else if (what == Repeats::Next::kSend) {
      ask_about(stream);
    } else if (stream.unasked.blocks > 0) {
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
      if (block.last) tell(block, error);
  streams_.clear();
  recent_ = nullptr;
  waiting_ = 0;
}

std::size_t Puts::outstanding() const {
  std::size_t count = 0;
  for (const auto& [id, stream] : streams_) count += stream.blocks.size();
  return count;
}

namespace {

using wire::Function;
namespace flag = wire::flag;

constexpr std::uint64_t kMaxPiece = 65'536;  // the most that a GET's 16-bit length can express
// protocol: 9.16
constexpr std::size_t kOutstanding = 64;  // the most G_nums from the oldest to the newest
constexpr std::size_t kMaxQueuedGets = 65'536;

}  // namespace

int Gets::get(Context context, const RemoteRegion& region, std::uint64_t offset,
              const Landing& landing) {
  SendEntry pattern{};
  pattern.header = wire::to_header(wire::Get{});
  return add(context, Completion::Kind::kGet, region, offset, landing, pattern);
}

int Gets::fetch(Context context, const RemoteRegion& region, std::uint64_t offset,
                Function function, std::uint64_t operand, std::uint64_t compare,
                const Landing& landing) {
  const bool known = function != Function::kGet && function <= Function::kCompareAndSwap;
  if (!known || offset % 8 != 0 || landing.at.offset % 8 != 0 || landing.length < 8) return -EINVAL;
  SendEntry pattern{};
  pattern.header = wire::to_header(
      wire::Get{},
      static_cast<std::uint16_t>(static_cast<unsigned>(function) << wire::kFunctionShift));
  if (function == Function::kFetchAdd || function == Function::kCompareAndSwap) {
    pattern.payload_length = wire::kOptionSize;
    auto* const operands = reinterpret_cast<std::byte*>(pattern.payload);
    wire::store64(operands, operand);
    wire::store64(operands + 8, compare);
  }
  auto word = landing;
  word.length = 8;
  return add(context, Completion::Kind::kFetch, region, offset, word, pattern);
}

// protocol: 9.28
int Gets::add(Context context, Completion::Kind kind, const RemoteRegion& region,
              std::uint64_t offset, const Landing& landing, const SendEntry& pattern) {
  const auto length = landing.length;
  if (length == 0 || offset > region.length || length > region.length - offset) return -EINVAL;
  const auto count = length / kMaxPiece + (length % kMaxPiece != 0);
  if (count > kMaxQueuedGets - pieces_.size()) return -EAGAIN;
  for (std::uint64_t at = 0; at < length; at += kMaxPiece) {
    const auto bytes = std::min(kMaxPiece, length - at);
    const auto from = Address::from_linear(region.at.linear(config_.remote_bufsize) + offset + at,
                                           config_.remote_bufsize);
    const auto to =
        Address::from_linear(landing.at.linear(config_.local_bufsize) + at, config_.local_bufsize);
    const auto g_num = first_g_num_ + static_cast<std::uint32_t>(pieces_.size());
    auto& piece = pieces_.place();
    piece = {};
    piece.context = context;
    piece.kind = kind;
    piece.total = length;
    piece.last = at + bytes == length;
    piece.request = pattern;
    wire::encode_to(
        wire::Get{
            .t_len = static_cast<std::uint16_t>(bytes),  // 0 means 65536
            .i_mx = landing.mx,
            .r_bufx = from.bufx,
            .r_offset = from.offset,
            .i_bufx = to.bufx,
            .i_offset = to.offset,
            .r_id = region.r_id,
            .g_num = g_num,
        },
        piece.request.header);
  }
  send();
  return 0;
}

void Gets::send() {
  for (; sent_ < pieces_.size() && sent_ < kOutstanding; ++sent_) {
    auto& piece = pieces_[sent_];
    STP_ASSERT(wire::decode_as<wire::Get>(piece.request.header).g_num ==
                   first_g_num_ + static_cast<std::uint32_t>(sent_),
               "a Get's number is its place in the queue");
    if (piece.done) continue;  // cancelled before it left
    outbox_.add(piece.request);
    piece.awaited.number = outbox_.last_number();
    repeats_.start(piece.awaited, kAnswerPatience);
  }
}

bool Gets::on_answer(const wire::Data& data) {
  const auto index = data.b_num - first_g_num_;
  if (index >= sent_) return false;
  auto& piece = pieces_[index];
  const auto get = wire::decode_as<wire::Get>(piece.request.header);
  if (data.r_id != get.r_id || data.r_mx != get.i_mx || data.r_bufx != get.i_bufx ||
      data.r_offset != get.i_offset)
    return false;
  if (piece.done) return true;
  repeats_.measure(piece.awaited);
  piece.done = true;
  answered_at_ = clock_.now();
  if (static_cast<std::int32_t>(data.b_num - newest_answered_) > 0) newest_answered_ = data.b_num;
  if (piece.kind == Completion::Kind::kFetch) release(piece);
  finish();
  return true;
}

// FetchOp_Complete: the peer may drop the result, and our Node expects no answer any more.
// protocol: 9.19
void Gets::release(const Piece& piece) {
  const auto get = wire::decode_as<wire::Get>(piece.request.header);
  outbox_.add(wire::to_header(wire::Get{.r_id = get.r_id, .g_num = get.g_num}, flag::kFunction));
}

// Ignores a refusal that names another region: our Node still expects the answer.
void Gets::on_refused(const wire::Get& refused) {
  const auto index = refused.g_num - first_g_num_;
  if (index >= sent_ || pieces_[index].done) return;
  auto& piece = pieces_[index];
  if (refused.r_id != wire::decode_as<wire::Get>(piece.request.header).r_id) return;
  piece.done = true;
  piece.status = -ECONNREFUSED;
  finish();
}

void Gets::finish() {
  while (!pieces_.empty() && pieces_.front().done && sent_ > 0) {
    const auto& piece = pieces_.front();
    if (status_ == 0) status_ = piece.status;
    if (piece.last) {
      Completion c{};
      c.kind = piece.kind;
      c.context = piece.context;
      c.status = status_;
      c.length = status_ == 0 ? piece.total : 0;
      if (status_ == 0)
        completions_.add(c);
      else
        completions_.add_once_taken(c);
      status_ = 0;
    }
    STP_ASSERT(sent_ <= pieces_.size(), "what has been sent is in the queue");
    pieces_.pop_front();
    ++first_g_num_;
    --sent_;
  }
  send();
  STP_ASSERT(!pieces_.empty() || status_ == 0, "a status belongs to a Get that is not complete");
}

bool Gets::cancel(Context context) {
  bool found = false;
  for (std::size_t i = 0; i < pieces_.size(); ++i) {
    auto& piece = pieces_[i];
    if (piece.context != context || piece.done) continue;
    found = true;
    piece.done = true;
    piece.status = -ECANCELED;
    if (i < sent_) release(piece);
  }
  if (found) finish();
  return found;
}

// protocol: 10.6
void Gets::expire() {
  for (std::size_t i = 0; i < sent_; ++i) {
    auto& piece = pieces_[i];
    if (piece.done) continue;
    // The peer answers in order: this one waits for those before it.
    // protocol: 10.19
    const auto ahead = newest_answered_ - first_g_num_ - static_cast<std::uint32_t>(i);
    if (static_cast<std::int32_t>(ahead) < 0) piece.awaited.retry.waits(answered_at_);
    const auto what = repeats_.next(piece.awaited, Repeats::Answerer::kNode);
    if (what == Repeats::Next::kSend) {
      outbox_.add(piece.request);
      piece.awaited.number = outbox_.last_number();
    }
    if (what != Repeats::Next::kGiveUp) continue;
    piece.done = true;
    piece.status = -ETIMEDOUT;
    release(piece);
  }
  finish();
}

void Gets::fail(int error) {
  for (const auto& piece : pieces_)
    if (piece.last) completions_.add(piece.kind, piece.context, error);
  pieces_.clear();
  sent_ = 0;
}

}  // namespace stp
