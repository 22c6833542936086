// SPDX-License-Identifier: BSD-3-Clause
// Get and FetchOp: the requesting side.
#include <algorithm>
#include <cerrno>

#include "stp/base/assert.h"
#include "stp/transfer/sequencer_impl.h"
#include "stp/wire/big_endian.h"

namespace stp {
namespace {

constexpr std::uint64_t kMaxPiece = 65'536;  // the most that a GET's 16-bit length can express
// protocol: 9.16
constexpr std::size_t kOutstanding = 64;  // the most G_nums from the oldest to the newest
constexpr std::size_t kMaxQueued = 65'536;

}  // namespace

using wire::Function;
using wire::Op;
namespace flag = wire::flag;

int Sequencer::get(Context context, const RemoteRegion& region, std::uint64_t offset,
                   const Landing& landing) {
  SendEntry pattern{};
  pattern.header = Impl::header(wire::Get{});
  return impl_->add_get(context, Completion::Kind::kGet, region, offset, landing, pattern);
}

int Sequencer::fetch(Context context, const RemoteRegion& region, std::uint64_t offset,
                     Function function, std::uint64_t operand, std::uint64_t compare,
                     const Landing& landing) {
  const bool known = function != Function::kGet && function <= Function::kCompareAndSwap;
  if (!known || offset % 8 != 0 || landing.at.offset % 8 != 0 || landing.length < 8) return -EINVAL;
  SendEntry pattern{};
  pattern.header = Impl::header(
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
  return impl_->add_get(context, Completion::Kind::kFetch, region, offset, word, pattern);
}

// protocol: 9.28
int Sequencer::Impl::add_get(Context context, Completion::Kind kind, const RemoteRegion& region,
                             std::uint64_t offset, const Landing& landing,
                             const SendEntry& pattern) {
  if (ended != 0) return ended;
  const auto length = landing.length;
  if (length == 0 || offset > region.length || length > region.length - offset) return -EINVAL;
  const auto count = length / kMaxPiece + (length % kMaxPiece != 0);
  if (count > kMaxQueued - gets.size()) return -EAGAIN;
  for (std::uint64_t at = 0; at < length; at += kMaxPiece) {
    GetPiece piece;
    piece.context = context;
    piece.kind = kind;
    piece.total = length;
    piece.length = static_cast<std::uint32_t>(std::min(kMaxPiece, length - at));
    piece.last = at + piece.length == length;
    piece.request = pattern;
    const auto from = Address::from_linear(region.at.linear(config.remote_bufsize) + offset + at,
                                           config.remote_bufsize);
    const auto to =
        Address::from_linear(landing.at.linear(config.local_bufsize) + at, config.local_bufsize);
    wire::encode_to(
        wire::Get{
            .t_len = static_cast<std::uint16_t>(piece.length),  // 0 means 65536
            .i_mx = landing.mx,
            .r_bufx = from.bufx,
            .r_offset = from.offset,
            .i_bufx = to.bufx,
            .i_offset = to.offset,
            .r_id = region.r_id,
            .g_num = first_g_num + static_cast<std::uint32_t>(gets.size()),
        },
        piece.request.header);
    gets.push_back(piece);
  }
  send_gets();
  return 0;
}

void Sequencer::Impl::send_gets() {
  for (; gets_sent < gets.size() && gets_sent < kOutstanding; ++gets_sent) {
    auto& piece = gets[gets_sent];
    STP_ASSERT(wire::decode_as<wire::Get>(piece.request.header).g_num ==
                   first_g_num + static_cast<std::uint32_t>(gets_sent),
               "a Get's number is its place in the queue");
    if (piece.done) continue;  // cancelled before it left
    request(piece.request);
    piece.queued = last_number;
    piece.retry.start(clock, interval(), kAnswerPatience);
    due_at(piece.retry.deadline());
  }
}

// Handles DATA that answers a Get of ours. False: it belongs to something else.
bool Sequencer::Impl::on_get_answer(const wire::Data& data, Time now) {
  const auto index = data.b_num - first_g_num;
  if (index >= gets_sent) return false;
  auto& piece = gets[index];
  const auto get = wire::decode_as<wire::Get>(piece.request.header);
  if (data.r_id != get.r_id || data.r_mx != get.i_mx || data.r_bufx != get.i_bufx ||
      data.r_offset != get.i_offset)
    return false;
  if (piece.done) return true;
  if (const auto measured = piece.retry.measured(now, departures.before(piece.queued)))
    round_trip.sample(measured);
  piece.done = true;
  get_answered = now;
  if (static_cast<std::int32_t>(data.b_num - newest_answered) > 0) newest_answered = data.b_num;
  if (piece.kind == Completion::Kind::kFetch) release_get(piece);
  finish_gets();
  return true;
}

// FetchOp_Complete: the peer may drop the result, and our Node expects no answer any more.
// protocol: 9.19
void Sequencer::Impl::release_get(const GetPiece& piece) {
  const auto get = wire::decode_as<wire::Get>(piece.request.header);
  request(header(wire::Get{.r_id = get.r_id, .g_num = get.g_num}, flag::kFunction));
}

// Ignores a refusal that names another region: our Node still expects the answer.
void Sequencer::Impl::on_get_refused(const wire::Get& refused) {
  const auto index = refused.g_num - first_g_num;
  if (index >= gets_sent || gets[index].done) return;
  if (refused.r_id != wire::decode_as<wire::Get>(gets[index].request.header).r_id) return;
  gets[index].done = true;
  gets[index].status = -ECONNREFUSED;
  finish_gets();
}

void Sequencer::Impl::finish_gets() {
  while (!gets.empty() && gets.front().done && gets_sent > 0) {
    const auto& piece = gets.front();
    if (get_status == 0) get_status = piece.status;
    if (piece.last) {
      Completion c{};
      c.kind = piece.kind;
      c.context = piece.context;
      c.status = get_status;
      c.length = get_status == 0 ? piece.total : 0;
      if (get_status == 0)
        completions.push_back(c);
      else
        complete_once_taken(c);
      get_status = 0;
    }
    STP_ASSERT(gets_sent <= gets.size(), "what has been sent is in the queue");
    gets.pop_front();
    ++first_g_num;
    --gets_sent;
  }
  send_gets();
  STP_ASSERT(!gets.empty() || get_status == 0, "a status belongs to a Get that is not complete");
}

// protocol: 10.6
void Sequencer::Impl::expire_gets(Time now) {
  for (std::size_t i = 0; i < gets_sent; ++i) {
    auto& piece = gets[i];
    if (piece.done) continue;
    // The peer answers in order: this one waits for those before it.
    // protocol: 10.19
    const auto ahead = newest_answered - first_g_num - static_cast<std::uint32_t>(i);
    if (static_cast<std::int32_t>(ahead) < 0) piece.retry.left(get_answered);
    bool gave_up = false;
    if (again(piece.retry, piece.queued, Answerer::kNode, now, gave_up)) {
      request(piece.request);
      piece.queued = last_number;
    }
    if (!gave_up) continue;
    piece.done = true;
    piece.status = -ETIMEDOUT;
    release_get(piece);
  }
  finish_gets();
}

}  // namespace stp
