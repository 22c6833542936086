// SPDX-License-Identifier: BSD-3-Clause
#include "tools/files/transfer_receiver.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "tools/files/failure.h"

namespace stp::files {
namespace {

constexpr Duration kAttention = std::chrono::milliseconds(100);  // how soon a stop is noticed
constexpr Duration kEndPatience = std::chrono::seconds(5);
constexpr unsigned kLeastGrants = 2;

// RTS again with the same I_id, or of an earlier Transfer.
bool is_old(std::uint32_t i_id, std::uint32_t last) {
  return static_cast<std::int32_t>(i_id - last) <= 0;
}

Note because(Reason reason) {
  Note note;
  note.reason = reason;
  return note;
}

}  // namespace

std::size_t TransferReceiver::Transfer::block_length(std::uint32_t block) const {
  auto const at = std::uint64_t{block} << block_log2;
  return static_cast<std::size_t>(std::min(length - at, std::uint64_t{1} << block_log2));
}

TransferReceiver::TransferReceiver(Endpoint& endpoint, Connection& connection,
                                   std::uint32_t first_bufx, ReceiverContext& context)
    : connection_(connection),
      context_(context),
      stu_log2_(connection.stu_log2(false)),
      block_log2_(connection.block_log2(false)),
      memory_(endpoint, ST_MAP_RX, std::size_t{kDepth} << block_log2_, first_bufx),
      mx_(connection.alloc_mx(memory_)),
      file_(context.directory, context.progress),
      progress_at_(Clock::now()) {
  ++context_.busy;
}

void TransferReceiver::serve() {
  try {
    for (;;) turn();
  } catch (const Closed& closed) {
    if (!file_.under_way()) return;
    ++failures_;
    throw LinkFailure(file_.name() + ": " + closed.what());
  } catch (const LinkFailure& failure) {
    ++failures_;
    throw LinkFailure((file_.under_way() ? file_.name() + ": " : "") + failure.what());
  }
}

void TransferReceiver::turn() {
  if (context_.stop) {
    if (transfer_) conclude(ST_OP_END, because(Reason::kStopped));
    throw Stopped();
  }
  Message message;
  auto const work = transfer_ && transfer_->window.ready();
  if (connection_.receive(message, work ? Duration::zero() : wait(Clock::now())))
    handle(message);
  else if (work)
    use_block();
  auto const now = Clock::now();
  if (transfer_) grant(now);
  if (end_retry_ && end_retry_->given_up(now)) end_retry_.reset();
  if (end_retry_ && end_retry_->due(now)) {
    say(*outcome_);
    end_retry_->repeated(now);
  }
  if (now - progress_at_ < kPatience) return;
  if (transfer_) conclude(ST_OP_END, because(Reason::kTimeout));
  throw LinkFailure("the sender made no progress for a minute; see what holds it up");
}

Duration TransferReceiver::wait(Time now) const {
  auto longest = kAttention;
  if (transfer_ && transfer_->window.next_deadline() != Time::max())
    longest = std::min(longest, transfer_->window.next_deadline() - now);
  if (end_retry_) longest = std::min(longest, end_retry_->wait(now));
  return longest;
}

void TransferReceiver::handle(const Message& message) {
  auto const& header = message.header;
  switch (message.op()) {
    case ST_OP_RTS:
      use_all_blocks();
      requested(message);
      break;
    case ST_OP_DATA: {
      auto const now = Clock::now();
      if (transfer_ && header.d_id == transfer_->r_id &&
          transfer_->window.complete(header.b_num, now))
        progress_at_ = now;
      break;
    }
    case ST_OP_END:
      use_all_blocks();
      ended(message);
      break;
    case ST_OP_EA:
      if (outcome_ && header.d_id == outcome_->r_id) end_retry_.reset();
      break;
    default:
      break;
  }
}

void TransferReceiver::requested(const Message& message) {
  auto const i_id = message.header.s_id;
  if (is_old(i_id, last_i_id_)) {
    if (transfer_ && transfer_->i_id == i_id && !transfer_->window.done())
      transfer_->window.ask_again();
    else if (outcome_ && outcome_->i_id == i_id)
      say(*outcome_);
    return;
  }
  last_i_id_ = i_id;
  progress_at_ = Clock::now();
  if (transfer_) conclude(ST_OP_END, because(Reason::kProtocol));
  end_retry_.reset();
  auto const note = examine(message);
  if (note.reason == Reason::kNone) {
    begin(message.note->kind, message.header);
    return;
  }
  outcome_ = Outcome{ST_OP_RA, i_id, ++last_r_id_, note};
  say(*outcome_);
  report(note);
}

unsigned TransferReceiver::block_log2_of(const st_header_t& request) const {
  return std::min<unsigned>(block_log2_, request.max_block);
}

// Whether the Transfer that an RTS asks for can begin.
Note TransferReceiver::examine(const Message& message) {
  if (!message.note) return because(Reason::kProtocol);
  auto const length = st_t_len(&message.header);
  switch (message.note->kind) {
    case NoteKind::kMetadata:
      return because(length == 0 || length > kMaxMetadata ? Reason::kProtocol : Reason::kNone);
    case NoteKind::kContent: {
      if (announced_.reason != Reason::kNone) return announced_;
      auto const blocks = length >> block_log2_of(message.header);
      auto const fits = blocks < std::numeric_limits<std::uint32_t>::max() - 1;
      auto const expected = file_.under_way() && length == file_.size();
      return because(expected && fits ? Reason::kNone : Reason::kProtocol);
    }
    default:
      return because(Reason::kProtocol);
  }
}

void TransferReceiver::begin(NoteKind kind, const st_header_t& request) {
  auto const length = st_t_len(&request);
  auto const log2 = block_log2_of(request);
  auto const blocks = length == 0 ? 1 : ((length - 1) >> log2) + 1;
  auto const depth = std::clamp<unsigned>(request.cts_req, 1, kDepth);
  transfer_ = Transfer{kind,
                       request.s_id,
                       ++last_r_id_,
                       length,
                       log2,
                       depth,
                       GrantWindow(static_cast<std::uint32_t>(blocks), depth)};
}

// Grants in the order of need: what was lost first.
void TransferReceiver::grant(Time now) {
  auto const stus_log2 = std::max(transfer_->block_log2, stu_log2_) - stu_log2_;
  auto const share = (kStusUnderWay >> stus_log2) / std::max(1U, context_.busy.load());
  transfer_->window.set_limit(std::max(kLeastGrants, share));
  while (auto const block = transfer_->window.next_grant(now)) {
    send_grant(*block);
    transfer_->window.granted(*block, now);
  }
}

void TransferReceiver::send_grant(std::uint32_t block) {
  auto const at = transfer_->buffer_at(block);
  st_header_t cts{};
  cts.op_flags = ST_OP_FLAGS(ST_OP_CTS, 0);
  cts.blocksize = static_cast<std::uint16_t>(transfer_->block_log2);
  cts.mx = static_cast<std::uint16_t>(mx_);
  cts.bufx = memory_.bufx(at);
  cts.offset = MappedMemory::offset(at);
  cts.b_num = block;
  cts.d_id = transfer_->i_id;
  cts.s_id = transfer_->r_id;
  connection_.send(cts);
}

// The sender goes on as soon as all Blocks have arrived: before they were used.
void TransferReceiver::use_all_blocks() {
  while (transfer_ && transfer_->window.ready()) use_block();
}

// The next Block in order is there.
void TransferReceiver::use_block() {
  auto& window = transfer_->window;
  auto const block = window.first();
  auto const bytes =
      memory_.bytes().subspan(transfer_->buffer_at(block), transfer_->block_length(block));
  if (transfer_->kind == NoteKind::kMetadata) {
    // How it went is the answer to the content's RTS.
    announced_ = file_.announce(bytes);
    transfer_.reset();
    return;
  }
  auto const note = file_.append(bytes);
  window.used();
  if (note.reason != Reason::kNone) conclude(ST_OP_END, note);
}

void TransferReceiver::ended(const Message& message) {
  auto const& header = message.header;
  if (!transfer_ || header.d_id != transfer_->r_id) {
    if (!outcome_ || outcome_->i_id != header.s_id) return;
    // Its END has crossed ours, or our EA was lost.
    end_retry_.reset();
    outcome_->op = ST_OP_EA;
    say(*outcome_);
    return;
  }
  progress_at_ = Clock::now();
  if (!message.note || message.note->kind != NoteKind::kCommit)
    conclude(ST_OP_EA, because(Reason::kAbandoned));
  else if (!transfer_->window.done())
    conclude(ST_OP_EA, because(Reason::kProtocol));
  else
    conclude(ST_OP_EA, file_.commit(message.note->digest));
}

// The Transfer is over, well or not: tells the sender and the user.
void TransferReceiver::conclude(unsigned op, const Note& note) {
  outcome_ = Outcome{op, transfer_->i_id, transfer_->r_id, note};
  repeats_ += transfer_->window.repeats();
  transfer_.reset();
  say(*outcome_);
  if (op == ST_OP_END) end_retry_.emplace(kEndPatience, Clock::now());
  report(note);
  file_.discard();
  progress_at_ = Clock::now();
}

void TransferReceiver::say(const Outcome& outcome) {
  st_header_t header{};
  auto const reject = outcome.op != ST_OP_END && outcome.note.reason != Reason::kNone;
  header.op_flags = ST_OP_FLAGS(outcome.op, reject ? ST_FLAG_REJECT : 0);
  header.d_id = outcome.i_id;
  header.s_id = outcome.r_id;
  connection_.send(header, outcome.note);
}

void TransferReceiver::report(const Note& note) {
  if (note.reason == Reason::kNone) {
    ++files_;
    context_.progress.say("received " + file_.name() + ": " +
                          rate_text(file_.size(), file_.seconds()) + ", " +
                          std::to_string(std::exchange(repeats_, 0)) + " Blocks asked for again");
  } else {
    ++failures_;
    context_.progress.complain((file_.name().empty() ? "a file" : file_.name()) + ": " +
                               describe(note));
  }
}

}  // namespace stp::files
