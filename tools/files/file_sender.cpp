// SPDX-License-Identifier: BSD-3-Clause
#include "tools/files/file_sender.h"

#include <algorithm>

#include "tools/files/failure.h"
#include "tools/files/file_reader.h"

namespace stp::files {
namespace {

using Clock = std::chrono::steady_clock;

LinkFailure silence() {
  return LinkFailure("the receiver makes no progress any more; see what holds it up");
}

void refuse_failure(const Note& answer) {
  if (answer.reason != Reason::kNone) throw FileFailure(describe(answer));
}

}  // namespace

void FileSender::check_stop() const {
  if (stop_) throw Stopped();
}

std::uint64_t FileSender::send(FileReader& file,
                               const std::function<void(std::uint64_t)>& advance) {
  ++file_;
  channel_.send(MessageTag::kMetadata, encode(file.metadata()));
  auto const answer = await_answer();
  refuse_failure(answer);
  if (file.metadata().kind != FileKind::kRegular) return 0;

  ContentDigest digest;
  auto const from = choose_start(file, answer, digest);
  say(NoteKind::kGo, from, {});
  advance(from);
  send_content(file, from, digest, advance);
  say(NoteKind::kCommit, 0, digest.value());
  refuse_failure(await_answer());
  return file.metadata().size - from;
}

// What the receiver has is left out if it is what the file begins with.
std::uint64_t FileSender::choose_start(FileReader& file, const Note& answer,
                                       ContentDigest& digest) {
  if (answer.have == 0 || answer.have > file.metadata().size) return 0;
  std::vector<std::byte> bytes(kChunk);
  for (auto left = answer.have; left > 0;) {
    check_stop();
    auto const piece = std::span(bytes).first(std::min<std::uint64_t>(left, kChunk));
    load(file, piece);
    digest.add(piece);
    left -= piece.size();
  }
  if (digest.value() == answer.digest) return answer.have;
  digest = ContentDigest();
  file.start_over();
  return 0;
}

void FileSender::send_content(FileReader& file, std::uint64_t from, ContentDigest& digest,
                              const std::function<void(std::uint64_t)>& advance) {
  auto told = channel_.delivered();
  for (auto left = file.metadata().size - from; left > 0;) {
    auto const buffer = await_buffer();
    auto const piece = buffer.first(std::min<std::uint64_t>(left, buffer.size()));
    load(file, piece);
    digest.add(piece);
    channel_.send_content(piece);
    left -= piece.size();
    auto const delivered = channel_.delivered();
    advance(delivered - told);
    told = delivered;
  }
}

// Meanwhile the receiver may say that it has failed.
std::span<std::byte> FileSender::await_buffer() {
  auto const until = Clock::now() + kPatience;
  for (;;) {
    check_stop();
    if (auto const early = hear(Duration::zero())) {
      say(NoteKind::kAbandon, 0, {});
      refuse_failure(*early);
      throw LinkFailure("the receiver answered what nobody had asked");
    }
    if (auto const buffer = channel_.content_buffer(kAttention); !buffer.empty()) return buffer;
    if (Clock::now() > until) throw silence();
  }
}

void FileSender::load(FileReader& file, std::span<std::byte> bytes) {
  try {
    file.read(bytes);
  } catch (const FileFailure&) {
    say(NoteKind::kAbandon, 0, {});
    throw;
  }
}

void FileSender::say(NoteKind kind, std::uint64_t have, const Digest& digest) {
  Note note;
  note.kind = kind;
  note.file = file_;
  note.have = have;
  note.digest = digest;
  channel_.send(MessageTag::kNote, encode(note));
}

// An answer about the file at hand; one about an earlier file is passed over.
std::optional<Note> FileSender::hear(Duration wait) {
  Message message;
  if (!channel_.receive(message, wait)) return std::nullopt;
  auto const note = decode_note(message.bytes);
  channel_.done_with(message);
  if (!note || message.tag != MessageTag::kNote || note->kind != NoteKind::kAnswer)
    throw LinkFailure("the receiver is none of this version; use the same on both sides");
  return note->file == file_ ? note : std::nullopt;
}

Note FileSender::await_answer() {
  auto const until = Clock::now() + kDiskPatience;
  for (;;) {
    check_stop();
    if (auto const note = hear(kAttention)) return *note;
    if (Clock::now() > until) throw silence();
  }
}

}  // namespace stp::files
