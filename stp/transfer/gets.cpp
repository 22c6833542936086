// SPDX-License-Identifier: BSD-3-Clause
#include "stp/transfer/gets.h"

#include <algorithm>
#include <cerrno>

#include "stp/base/assert.h"
#include "stp/transfer/clock.h"
#include "stp/wire/big_endian.h"

namespace stp {
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
    if (static_cast<std::int32_t>(ahead) < 0) piece.awaited.retry.left(answered_at_);
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
