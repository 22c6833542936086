// SPDX-License-Identifier: BSD-3-Clause
#include "tools/files/transfer_sender.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "tools/files/digest.h"
#include "tools/files/failure.h"
#include "tools/files/file_reader.h"

namespace stp::files {
namespace {

[[noreturn]] void refuse(const Message& message) {
  throw FileFailure(message.note ? describe(*message.note) : "the receiver refuses it");
}

LinkFailure silence() {
  return LinkFailure("the receiver makes no progress any more; see what holds it up");
}

}  // namespace

struct TransferSender::Transfer {
  Transfer(NoteKind transfer_kind, std::uint64_t bytes)
      : kind(transfer_kind), length(bytes), retry(kPatience, Clock::now()) {}

  [[nodiscard]] std::uint64_t at(std::uint32_t block) const {
    return std::min(length, std::uint64_t{block} << block_log2);
  }
  [[nodiscard]] std::uint64_t block_length(std::uint32_t block) const {
    return std::min(length - at(block), std::uint64_t{1} << block_log2);
  }

  NoteKind kind;
  std::uint64_t length;
  Retry retry;
  unsigned block_log2 = 0;           // both fixed by the first CTS
  std::optional<SendWindow> window;  // none: not granted yet
};

TransferSender::TransferSender(Endpoint& endpoint, Connection& connection,
                               const std::atomic<bool>& stop)
    : connection_(connection),
      stop_(stop),
      stu_log2_(connection.stu_log2(true)),
      max_block_log2_(connection.block_log2(true)),
      remote_bufsize_(connection.remote_bufsize()),
      memory_(endpoint, ST_MAP_TX, std::size_t{kDepth} << max_block_log2_, 0) {}

void TransferSender::check_stop() const {
  if (stop_) throw Stopped();
}

void TransferSender::send(FileReader& file, const Advance& advance) {
  try {
    send_file(file, advance);
  } catch (const Closed&) {
    throw LinkFailure(why_closed());
  }
}

// A receiver that ends says why before it disconnects: perhaps nobody has read that yet.
std::string TransferSender::why_closed() {
  try {
    Message message;
    while (connection_.receive(message, Duration::zero()))
      if (message.op() == ST_OP_END && message.header.d_id == i_id_ && message.note)
        return describe(*message.note);
  } catch (const LinkFailure&) {
    // All is read.
  }
  return Closed().what();
}

void TransferSender::send_file(FileReader& file, const Advance& advance) {
  auto const described = encode(file.metadata());
  transfer(
      NoteKind::kMetadata, described.size(),
      [&](std::span<std::byte> to) { std::memcpy(to.data(), described.data(), to.size()); },
      [](std::uint64_t) {});

  ContentDigest digest;
  transfer(
      NoteKind::kContent, file.metadata().size,
      [&](std::span<std::byte> to) {
        file.read(to);
        digest.add(to);
      },
      advance);

  Note commit;
  commit.kind = NoteKind::kCommit;
  commit.digest = digest.value();
  auto const answer = conclude(commit, kCommitPatience);
  if (answer.reason != Reason::kNone) throw FileFailure(describe(answer));
}

void TransferSender::transfer(NoteKind kind, std::uint64_t length, const Load& load,
                              const Advance& advance) {
  ++i_id_;
  r_id_ = ST_NO_ID;
  Transfer transfer(kind, length);
  request(transfer);
  Message message;
  while (!transfer.window || !transfer.window->done()) {
    check_stop();
    auto const now = Clock::now();
    if (transfer.retry.given_up(now)) throw silence();
    if (transfer.retry.due(now)) request(transfer);
    auto const can_load = transfer.window && transfer.window->can_load();
    auto const before = transfer.window ? transfer.window->b_seq() : 0;
    if (connection_.receive(message, can_load ? Duration::zero() : transfer.retry.wait(now))) {
      if (handle(transfer, message)) transfer.retry.progress(Clock::now());
    } else if (can_load) {
      load_next(transfer, load);
    }
    if (!transfer.window) continue;
    answer_grants(transfer);
    advance(transfer.at(transfer.window->b_seq()) - transfer.at(before));
  }
  repeats_ += transfer.window->repeats();
}

// Request_To_Send until the first CTS has come; from then on Request_State, for a lost RSR.
void TransferSender::request(Transfer& transfer) {
  st_header_t header{};
  header.s_id = i_id_;
  if (transfer.window) {
    header.op_flags = ST_OP_FLAGS(ST_OP_RS, 0);
    header.d_id = r_id_;
    header.b_num = ST_NO_ID;
    header.sync = ++sync_;
    connection_.send(header);
  } else {
    header.op_flags = ST_OP_FLAGS(ST_OP_RTS, 0);
    header.d_id = ST_NO_ID;
    header.cts_req = kDepth;
    header.max_block = static_cast<std::uint16_t>(max_block_log2_);
    st_set_t_len(&header, transfer.length);
    Note note;
    note.kind = transfer.kind;
    connection_.send(header, note);
  }
  transfer.retry.repeated(Clock::now());
}

void TransferSender::begin(Transfer& transfer, const st_header_t& cts) {
  constexpr unsigned kMinBlockLog2 = 8;
  if (cts.blocksize < kMinBlockLog2 || cts.blocksize > max_block_log2_)
    throw LinkFailure("the receiver granted Blocks of a size that was not offered");
  transfer.block_log2 = cts.blocksize;
  auto const blocks = transfer.length == 0 ? 1 : ((transfer.length - 1) >> transfer.block_log2) + 1;
  if (blocks > std::numeric_limits<std::uint32_t>::max() - 1)
    throw FileFailure("too large for one Transfer on this link; split it");
  r_id_ = cts.s_id;
  transfer.window.emplace(static_cast<std::uint32_t>(blocks), kDepth);
}

// True: the Transfer got further.
bool TransferSender::handle(Transfer& transfer, const Message& message) {
  auto const& header = message.header;
  switch (message.op()) {
    case ST_OP_CTS:
      if (header.d_id != i_id_) return false;
      if (!transfer.window) begin(transfer, header);
      if (header.s_id != r_id_ || header.blocksize != transfer.block_log2) return false;
      return transfer.window->ask(header);
    case ST_OP_RSR:
      return transfer.window && header.s_id == r_id_ && transfer.window->acknowledge(header.b_seq);
    case ST_OP_RA:
      if (header.d_id == i_id_ && message.rejects()) refuse(message);
      return header.d_id == i_id_ && !transfer.window;
    case ST_OP_END:
      if (handle_end(message)) refuse(message);
      return false;
    default:
      return false;
  }
}

// The receiver ends a Transfer. True: the one at hand.
bool TransferSender::handle_end(const Message& message) {
  st_header_t answer{};
  answer.op_flags = ST_OP_FLAGS(ST_OP_EA, 0);
  answer.d_id = message.header.s_id;
  answer.s_id = message.header.d_id;
  connection_.send(answer);
  return message.header.d_id == i_id_;
}

void TransferSender::load_next(Transfer& transfer, const Load& load) {
  auto& window = *transfer.window;
  if (window.flush_before_load()) connection_.flush();
  auto const block = window.next_load();
  auto const at = std::size_t{block % kDepth} << max_block_log2_;
  try {
    load(memory_.bytes().subspan(at, transfer.block_length(block)));
  } catch (const FileFailure&) {
    Note note;
    note.kind = NoteKind::kAbandon;
    conclude(note, kPatience);
    throw;
  }
  window.loaded();
}

void TransferSender::answer_grants(Transfer& transfer) {
  while (auto const cts = transfer.window->answer()) send_block(transfer, *cts);
}

void TransferSender::send_block(Transfer& transfer, const st_header_t& cts) {
  auto const length = transfer.block_length(cts.b_num);
  auto const to = (std::uint64_t{cts.bufx} << remote_bufsize_) + cts.offset;
  // A repeat begins with the STU that holds the first missing byte.
  std::uint64_t skip = 0, stu = 0;
  if (cts.f_offset < length) {
    stu = ((to + cts.f_offset) >> stu_log2_) - (to >> stu_log2_);
    if (stu != 0) skip = (((to >> stu_log2_) + stu) << stu_log2_) - to;
  }
  st_header_t data{};
  data.op_flags = ST_OP_FLAGS(ST_OP_DATA, ST_FLAG_SEND_STATE);
  data.mx = cts.mx;
  data.bufx = static_cast<std::uint32_t>((to + skip) >> remote_bufsize_);
  data.offset =
      static_cast<std::uint32_t>((to + skip) & ((std::uint64_t{1} << remote_bufsize_) - 1));
  data.sync = ++sync_;
  data.b_num = cts.b_num;
  data.d_id = r_id_;
  data.opaque = i_id_;
  auto const from = (std::size_t{cts.b_num % kDepth} << max_block_log2_) + skip;
  connection_.send_block(data, length - skip, memory_.bufx(from), MappedMemory::offset(from));
}

// END until the EA has come.
Note TransferSender::conclude(const Note& note, Duration patience) {
  st_header_t end{};
  end.op_flags = ST_OP_FLAGS(ST_OP_END, 0);
  end.d_id = r_id_;
  end.s_id = i_id_;
  Retry retry(patience, Clock::now());
  connection_.send(end, note);
  Message message;
  for (;;) {
    check_stop();
    auto const now = Clock::now();
    if (retry.given_up(now)) throw silence();
    if (retry.due(now)) {
      connection_.send(end, note);
      retry.repeated(now);
    }
    if (!connection_.receive(message, retry.wait(now))) continue;
    if (message.op() == ST_OP_END && handle_end(message)) refuse(message);
    if (message.op() != ST_OP_EA || message.header.d_id != i_id_) continue;
    if (!message.note) refuse(message);
    return *message.note;
  }
}

}  // namespace stp::files
