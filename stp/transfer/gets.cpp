// SPDX-License-Identifier: BSD-3-Clause
// Get and FetchOp: the requesting side.
#include <algorithm>
#include <cerrno>

#include "stp/transfer/sequencer_impl.h"
#include "stp/wire/big_endian.h"

namespace stp {
namespace {

constexpr std::uint64_t kMaxPiece = 65'536;  // what a GET's 16-bit length can say
// protocol: 9.16
constexpr std::size_t kOutstanding = 64;  // G_nums between the oldest and the newest
constexpr std::size_t kMaxQueued = 65'536;

}  // namespace

using wire::Function;
using wire::Op;
namespace flag = wire::flag;

int Sequencer::get(Context context, const RemoteRegion& region, std::uint64_t offset,
                   const Landing& landing) {
  SendEntry pattern{};
  pattern.header = Impl::header(Op::kGet);
  return impl_->add_get(context, Completion::Kind::kGet, region, offset, landing, pattern);
}

int Sequencer::fetch(Context context, const RemoteRegion& region, std::uint64_t offset,
                     Function function, std::uint64_t operand, std::uint64_t compare,
                     const Landing& landing) {
  bool const known = function != Function::kGet && function <= Function::kCompareAndSwap;
  if (!known || offset % 8 != 0 || landing.at.offset % 8 != 0 || landing.length < 8) return -EINVAL;
  SendEntry pattern{};
  pattern.header = Impl::header(Op::kGet, static_cast<std::uint16_t>(static_cast<unsigned>(function)
                                                                     << wire::kFunctionShift));
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
  auto const length = landing.length;
  if (length == 0 || offset > region.length || length > region.length - offset) return -EINVAL;
  auto const count = length / kMaxPiece + (length % kMaxPiece != 0);
  if (count > kMaxQueued - gets.size()) return -EAGAIN;
  for (std::uint64_t at = 0; at < length; at += kMaxPiece) {
    GetPiece piece;
    piece.context = context;
    piece.kind = kind;
    piece.total = length;
    piece.length = static_cast<std::uint32_t>(std::min(kMaxPiece, length - at));
    piece.last = at + piece.length == length;
    piece.request = pattern;
    auto& h = piece.request.header;
    auto const from = Address::from_linear(region.at.linear(config.remote_bufsize) + offset + at,
                                           config.remote_bufsize);
    auto const to =
        Address::from_linear(landing.at.linear(config.local_bufsize) + at, config.local_bufsize);
    h.param = static_cast<std::uint16_t>(piece.length);  // 65536 is said as 0
    h.mx = landing.mx;
    h.bufx = from.bufx;
    h.offset = from.offset;
    h.sync = to.bufx;
    h.b_num = to.offset;
    h.d_id = region.r_id;
    h.s_id = first_g_num + static_cast<std::uint32_t>(gets.size());
    gets.push_back(piece);
  }
  send_gets();
  return 0;
}

void Sequencer::Impl::send_gets() {
  for (; gets_sent < gets.size() && gets_sent < kOutstanding; ++gets_sent) {
    auto& piece = gets[gets_sent];
    if (piece.done) continue;  // cancelled before it left
    request(piece.request);
    piece.queued = last_number;
    piece.retry.start(clock, interval(), kAnswerPatience);
    due_at(piece.retry.deadline());
  }
}

// DATA that answers a Get of ours. False: it belongs to something else.
bool Sequencer::Impl::on_get_answer(const wire::Header& h, Time now) {
  auto const index = h.b_num - first_g_num;
  if (index >= gets_sent) return false;
  auto& piece = gets[index];
  auto const& asked_for = piece.request.header;
  if (h.d_id != asked_for.d_id || h.mx != asked_for.mx || h.bufx != asked_for.sync ||
      h.offset != asked_for.b_num)
    return false;
  if (piece.done) return true;
  if (auto const measured = piece.retry.measured(now)) round_trip.sample(measured);
  piece.done = true;
  get_answered = now;
  if (static_cast<std::int32_t>(h.b_num - newest_answered) > 0) newest_answered = h.b_num;
  if (piece.kind == Completion::Kind::kFetch) release_get(piece);
  finish_gets();
  return true;
}

// FetchOp_Complete: the peer may drop the result, and our Node places no answer any more.
// protocol: 9.19
void Sequencer::Impl::release_get(const GetPiece& piece) {
  auto h = header(Op::kGet, flag::kFunction);
  h.d_id = piece.request.header.d_id;
  h.s_id = piece.request.header.s_id;
  request(h);
}

// A refusal that names another region leaves our Node ready to place the answer: it refuses
// nothing.
void Sequencer::Impl::on_get_refused(const wire::Header& h) {
  auto const index = h.s_id - first_g_num;
  if (!h.has(flag::kReject) || index >= gets_sent || gets[index].done) return;
  if (h.d_id != gets[index].request.header.d_id) return;
  gets[index].done = true;
  gets[index].status = -ECONNREFUSED;
  finish_gets();
}

void Sequencer::Impl::finish_gets() {
  while (!gets.empty() && gets.front().done && gets_sent > 0) {
    auto const& piece = gets.front();
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
    gets.pop_front();
    ++first_g_num;
    --gets_sent;
  }
  send_gets();
}

// protocol: 10.6
void Sequencer::Impl::expire_gets(Time now) {
  for (std::size_t i = 0; i < gets_sent; ++i) {
    auto& piece = gets[i];
    if (piece.done) continue;
    // The peer answers in order: it has its turn behind those before it.
    // protocol: 10.19
    auto const ahead = newest_answered - first_g_num - static_cast<std::uint32_t>(i);
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
