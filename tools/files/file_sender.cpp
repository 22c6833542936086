// SPDX-License-Identifier: BSD-3-Clause
#include "tools/files/send_all.h"

#include <algorithm>
#include <utility>

#include "tools/files/failure.h"

namespace stp::files {
namespace {

using Clock = std::chrono::steady_clock;

LinkFailure silence(const Channel& channel) {
  const auto why = channel.trouble();
  return LinkFailure("the receiver makes no progress any more" +
                     (why.empty() ? "; see what holds it up" : ": " + why));
}

LinkFailure nonsense() {
  return LinkFailure("the receiver has another version; use the same on both sides");
}

// How often a file is sent that changes meanwhile.
constexpr unsigned kMostTries = 3;
// Memory for the names in one directory of a receiver: some four million.
constexpr std::size_t kMostOfDirectory = std::size_t{256} << 20;

// Bytes compared between two looks at the receiver's messages.
constexpr std::size_t kComparedAtOnce = kChunk;

// The receiver may have to settle other files before it answers.
bool is_late(const Metadata& metadata) {
  return metadata.kind == FileKind::kDirectory || metadata.first != 0;
}

}  // namespace

void FileSender::check_stop() const {
  if (stop_) throw Stopped();
}

void FileSender::tell_of_stop() {
  try {
    if (!channel_.ready_to_send()) return;
    Note note;
    note.kind = NoteKind::kAbandon;
    note.reason = Reason::kStopped;
    channel_.send(MessageTag::kNotes, encode(note));
  } catch (const LinkFailure&) {
    // There is nobody left to be told.
  }
}

FileSender::Entry* FileSender::find(std::uint32_t number) {
  if (number < first_ || number - first_ >= entries_.size()) return nullptr;
  return &entries_[number - first_];
}

std::uint32_t FileSender::offer(FileReader file) {
  const auto size = offer_size(file.metadata());
  work_until(
      [&] { return entries_.size() < kMostOffered && entry_bytes_ + size <= kMostOfferedBytes; });
  if (offers_.size() + size > Channel::kControlRoom) {
    send_offers();
    while (hear(Duration::zero()) || work()) {
    }
  }
  append_offer(offers_, file.metadata());
  entry_bytes_ += size;
  ++offered_;
  if (is_late(file.metadata())) {
    ++offered_late_;
    ++unsettled_;  // sent after its files
  }
  const auto bytes = file.metadata().size;
  entries_.push_back({std::move(file), State::kOffered, 0, 0, bytes, 0, {}, 0});
  return first_ + static_cast<std::uint32_t>(entries_.size()) - 1;
}

void FileSender::finish() {
  work_until([this] { return entries_.empty(); });
}

void FileSender::names_there(const std::string& path, Visit visit) {
  visit_ = std::move(visit);
  name_room_ = kMostOfDirectory;
  send_control(MessageTag::kList, std::as_bytes(std::span(path)));
  await_answer();
  visit_ = nullptr;
}

void FileSender::remove_there(const std::string& path, const NamesToRemove& names) {
  auto message = begin_removal(path);
  const auto empty = message.size();
  const auto send = [&] {
    send_control(MessageTag::kRemove, message);
    await_answer();
    message.resize(empty);
  };
  names.each([&](std::string_view name) {
    add_name(message, name);
    if (message.size() >= empty + kMostOfNames / 2) send();
  });
  if (message.size() != empty) send();
}

void FileSender::await_answer() {
  asked_ = true;
  answer_.reset();
  for (auto until = Clock::now() + kDiskPatience; !answer_;) {
    if (hear(kAttention)) until = Clock::now() + kDiskPatience;
    if (Clock::now() > until) throw silence(channel_);
  }
  if (answer_->reason != Reason::kNone) throw FileFailure(describe(*answer_));
}

void FileSender::heard_names(std::span<const std::byte> message) {
  std::vector<NameThere> names;
  const auto is_last = take_names(message, names, name_room_);
  if (!asked_ || !visit_ || !is_last) throw nonsense();
  for (const auto& name : names) visit_(name);
  if (!*is_last) return;
  asked_ = false;
  answer_.emplace();
}

void FileSender::work_until(const std::function<bool()>& enough) {
  auto until = Clock::now() + patience();
  while (!enough()) {
    if (hear(Duration::zero()) || work()) {
      until = Clock::now() + patience();
      continue;
    }
    send_offers();
    send_pack();
    // While files are not answered, more can follow: each request to settle costs the receiver a
    // sync of its disk.
    if (unsettled_ != 0 && offered_ == offered_late_) {
      unsettled_ = 0;
      say(NoteKind::kSettle, 0, 0, {});
    }
    if (offered_ == offered_late_ && wanted_.empty()) progress_.await_disk();
    if (hear(kAttention)) until = Clock::now() + patience();
    if (Clock::now() > until) throw silence(channel_);
  }
}

// Longer while the receiver may be busy with its disk: reading existing files or writing new ones.
Duration FileSender::patience() const {
  return offered_ != 0 || wanted_.empty() ? kDiskPatience : kPatience;
}

bool FileSender::work() {
  if (wanted_.empty()) return false;
  const auto number = wanted_.front();
  wanted_.pop_front();
  if (const auto* const entry = find(number); entry != nullptr && entry->state == State::kWanted)
    send(number);
  let_go();
  return true;
}

bool FileSender::hear(Duration wait) {
  check_stop();  // a receiver that never falls silent does not keep the program
  Message message;
  if (!channel_.receive(message, wait)) {
    if (wait > Duration::zero()) look_at_way();
    return false;
  }
  if (message.tag == MessageTag::kNames) {
    heard_names(message.bytes);
    channel_.done_with(message);
    return true;
  }
  const auto notes = decode_notes(message.bytes);
  if (message.tag != MessageTag::kNotes || notes.empty()) throw nonsense();
  for (const auto& note : notes) heard(note);
  channel_.done_with(message);  // fails when they were the receiver's last word
  let_go();
  return true;
}

// Tells once what may keep messages from arriving.
void FileSender::look_at_way() {
  if (channel_.stuck() < kStuck) {
    told_stuck_ = false;
    return;
  }
  if (told_stuck_) return;
  told_stuck_ = true;
  way_ = channel_.trouble();
  if (!way_.empty()) progress_.complain("nothing arrives at the receiver any more: " + way_);
}

// The receiver has given a file up.
std::string FileSender::why_failed(const Note& note) {
  const auto* const entry = find(note.file);
  if (note.reason == Reason::kNoSpace && entry != nullptr && entry->size != 0)
    return "not enough space in the receiver's directory for its " + std::to_string(entry->size) +
           " bytes; free some";
  if (note.reason != Reason::kTimeout || note.error != 0) return describe(note);
  const auto is_stream = entry != nullptr && entry->file.metadata().stream;
  if (is_stream && input_is_silent_ && channel_.stuck() == Duration::zero())
    return "nothing came from standard input for as long as the receiver waits; start stp-recv "
           "there with a longer --idle-timeout";
  auto why = channel_.trouble();
  if (why.empty()) why = way_;
  return why.empty() ? describe(note) : "the data stopped coming: " + why;
}

void FileSender::heard(const Note& note) {
  const auto end = std::uint64_t{first_} + entries_.size();
  switch (note.kind) {
    case NoteKind::kDone:
      if (note.have == 0 || note.have > kMostOffered || note.file + note.have > end)
        throw nonsense();
      for (std::uint64_t i = 0; i < note.have; ++i)
        over(static_cast<std::uint32_t>(note.file + i), Reason::kNone, "");
      break;
    case NoteKind::kFailed:
      if (note.file >= end || note.reason == Reason::kNone) throw nonsense();
      over(note.file, note.reason, why_failed(note), note.error,
           note.reason == Reason::kWrite ? note.have : 0);
      break;
    case NoteKind::kWanted:
      if (note.file >= end) throw nonsense();
      way_.clear();
      wanted(note.file, note);
      break;
    case NoteKind::kRemoved:
      if (!std::exchange(asked_, false)) throw nonsense();
      answer_ = note;
      break;
    default:
      throw nonsense();
  }
}

void FileSender::wanted(std::uint32_t number, const Note& note) {
  auto* const entry = find(number);
  if (entry == nullptr || entry->state != State::kOffered) throw nonsense();
  const auto& metadata = entry->file.metadata();
  if (metadata.kind != FileKind::kRegular && !metadata.dry) throw nonsense();
  --offered_;
  if (is_late(metadata)) --offered_late_;
  entry->state = State::kWanted;
  entry->have = note.have;
  entry->digest = note.digest;
  if (const auto room = room_in(note)) compare_with_room(*entry, *room);
  wanted_.push_back(number);
}

// Tells once that not all will fit. What is under way to the receiver counts as if it had its room
// already.
void FileSender::compare_with_room(Entry& entry, std::uint64_t room) {
  entry.to_come = entry.file.stored();
  to_come_ += entry.to_come;
  if (to_come_ <= room || std::exchange(told_room_, true)) return;
  progress_.complain("the receiver's directory has room for " + std::to_string(room) +
                     " bytes, and what is to come takes " + std::to_string(to_come_) +
                     " or more: free some there, or not all will fit");
}

// Where nothing is sent, all that is wanted is to come.
void FileSender::came(Entry& entry, std::uint64_t bytes) {
  if (entry.file.metadata().dry) return;
  const auto counted = std::min(bytes, entry.to_come);
  entry.to_come -= counted;
  to_come_ -= counted;
}

void FileSender::over(std::uint32_t number, Reason reason, const std::string& failure, int error,
                      std::uint64_t way) {
  auto* const entry = find(number);
  if (entry == nullptr || entry->state == State::kOver) return;  // this side has given it up
  if (reason == Reason::kNone && entry->state == State::kWanted) throw nonsense();
  if (entry->state == State::kOffered) {
    --offered_;
    if (is_late(entry->file.metadata())) --offered_late_;
  }
  if (entry->state == State::kSent) progress_.sent(--sent_);
  const auto all_was_there = entry->from != 0 && entry->from == entry->size;
  const auto unchanged = entry->state == State::kOffered || all_was_there;
  entry->state = State::kOver;
  came(*entry, entry->to_come);
  has_more(1 + (reason == Reason::kNone ? entry->size : 0), delivered_);
  report_(
      {entry->file, entry->sent, entry->size, entry->from, unchanged, reason, failure, error, way});
}

void FileSender::has_more(std::uint64_t done, std::uint64_t delivered) {
  done_ += done;
  delivered_ = delivered;
  if (more_) more_();
}

void FileSender::is_sent(Entry& entry) {
  entry.state = State::kSent;
  came(entry, entry.to_come);
  progress_.sent(++sent_);
}

void FileSender::let_go() {
  for (; !entries_.empty() && entries_.front().state == State::kOver; entries_.pop_front()) {
    entry_bytes_ -= offer_size(entries_.front().file.metadata());
    ++first_;
  }
}

void FileSender::give_up(std::uint32_t number, const std::string& failure) {
  say(NoteKind::kAbandon, number, 0, {});
  over(number, Reason::kAbandoned, failure);
}

void FileSender::send(std::uint32_t number) {
  if (find(number)->file.metadata().dry) return only_compare(number);
  try {
    for (unsigned tries = 1;; ++tries) {
      try {
        send_as_it_is(number, tries > 1);
        break;
      } catch (const FileChanged&) {
        if (tries == kMostTries)
          throw FileFailure("it changed each of the " + std::to_string(kMostTries) +
                            " times that it was sent; send it when no program writes to it");
      }
    }
  } catch (const FileFailure& failure) {
    give_up(number, failure.what());
  }
  if (auto* const sent = find(number); sent != nullptr) sent->file.close();
}

// The receiver would want it. With its digest, the content decides.
void FileSender::only_compare(std::uint32_t number) {
  auto& entry = *find(number);
  try {
    ContentDigest digest;
    if (entry.have != 0 && entry.have == entry.size) {
      if (entry.file.open()) entry.from = choose_start(entry, digest);
      entry.file.close();
    }
  } catch (const FileFailure& failure) {
    return give_up(number, failure.what());
  } catch (const FileChanged&) {
    entry.from = 0;
  }
  say(NoteKind::kAbandon, number, 0, {});
  if (auto* const asked = find(number); asked != nullptr && asked->state == State::kWanted) {
    is_sent(*asked);
    over(number, Reason::kNone, "");
  }
}

// Sends one state of the file, or throws FileChanged.
void FileSender::send_as_it_is(std::uint32_t number, bool again) {
  if (!find(number)->file.open() || again) tell_of_change(number);
  auto* const entry = find(number);
  if (entry == nullptr || entry->state != State::kWanted) return;  // refused meanwhile
  const auto small =
      !entry->file.metadata().stream && entry->have == 0 && entry->size <= most_packed_;
  if (small)
    send_packed(number);
  else
    send_alone(number);
}

void FileSender::tell_of_change(std::uint32_t number) {
  auto& entry = *find(number);
  entry.size = entry.file.metadata().size;
  entry.have = 0;
  auto metadata = entry.file.metadata();
  metadata.checksum = false;  // it is not compared any more
  send_control(MessageTag::kChanged, encode_changed(number, std::move(metadata)));
}

void FileSender::send_packed(std::uint32_t number) {
  const auto size = static_cast<std::size_t>(find(number)->size);
  if (packed_ + kPackHead + size > pack_.size()) {
    send_pack();
    pack_ = await_buffer();
  }
  // The receiver may have refused it meanwhile.
  auto* const entry = find(number);
  if (entry == nullptr || entry->state != State::kWanted) return;
  const auto content = pack_.subspan(packed_ + kPackHead, size);
  entry->file.read(content);
  entry->file.check_whole();
  put_pack_head(pack_.subspan(packed_), number, size, digest_of(content));
  packed_ += kPackHead + size;
  is_sent(*entry);
  entry->sent = size;
  ++unsettled_;
  progress_.moved(size);
  pace_.spend(size);
}

void FileSender::send_alone(std::uint32_t number) {
  auto& entry = *find(number);
  const auto& metadata = entry.file.metadata();
  Progress::Item bar(progress_, metadata.path,
                     metadata.stream ? std::nullopt : std::optional(entry.size));
  ContentDigest digest;
  const auto from = choose_start(entry, digest);
  entry.sent = 0;
  say(NoteKind::kGo, number, from, {});
  bar.skip(from);
  has_more(0, from);
  const auto end = send_content(number, from, digest, bar);
  has_more(0, 0);  // it counts when it is done
  auto* const sent = find(number);
  if (sent == nullptr || sent->state != State::kWanted) return;  // refused meanwhile
  sent->file.check_whole();
  is_sent(*sent);
  sent->from = from;
  sent->size = end;
  ++unsettled_;
  say(NoteKind::kCommit, number, end, digest.value());
}

// Skips the bytes that the receiver already has if they equal the beginning of the file.
std::uint64_t FileSender::choose_start(Entry& entry, ContentDigest& digest) {
  if (entry.have == 0 || entry.have > entry.size || entry.file.metadata().stream) return 0;
  std::vector<std::byte> bytes(kComparedAtOnce);
  for (auto left = entry.have; left > 0;) {
    check_stop();
    const auto piece = std::span(bytes).first(std::min<std::uint64_t>(left, bytes.size()));
    entry.file.read(piece);
    digest.add(piece);
    left -= piece.size();
    progress_.pause();  // it only reads
  }
  if (digest.value() == entry.digest) return entry.have;
  digest = ContentDigest();
  entry.file.start_over();
  return 0;
}

// Returns the offset at which it ended. Stops early if the receiver reports that the file has
// failed; the offset has no meaning then.
std::uint64_t FileSender::send_content(std::uint32_t number, std::uint64_t from,
                                       ContentDigest& digest, Progress::Item& bar) {
  const auto* const before = find(number);
  if (before == nullptr) return from;
  auto told = channel_.delivered();
  const auto is_stream = before->file.metadata().stream;
  const auto size = before->size;
  for (auto at = from;;) {
    if (!is_stream && at == size) return at;
    const auto buffer = await_buffer();
    auto* const entry = find(number);
    if (entry == nullptr || entry->state != State::kWanted) return at;
    auto piece = buffer;
    if (is_stream) {
      input_is_silent_ = !entry->file.is_ready(kAttention);
      if (input_is_silent_) {
        progress_.pause();
        continue;  // a stop, or the end of the receiver, may come first
      }
      piece = buffer.first(entry->file.read_some(buffer));
    } else {
      const auto next = entry->file.next_extent(at, size);
      if (next.is_hole) {
        send_hole(number, next.length, digest);
        bar.skip(next.length);
        at += next.length;
        continue;
      }
      piece = buffer.first(std::min<std::uint64_t>(next.length, buffer.size()));
      entry->file.read(piece);
    }
    entry->sent += piece.size();
    came(*entry, piece.size());
    if (piece.empty()) return at;
    digest.add(piece);
    channel_.send_content(MessageTag::kContent, piece);
    at += piece.size();
    pace_.spend(piece.size());
    const auto delivered = channel_.delivered();
    bar.advance(delivered - told);
    has_more(0, delivered_ + delivered - told);
    told = delivered;
  }
}

void FileSender::send_hole(std::uint32_t number, std::uint64_t length, ContentDigest& digest) {
  while (length != 0) {
    const auto part = std::min(length, kMostHole);
    digest.add_hole(part);
    say(NoteKind::kHole, number, part, {});
    length -= part;
  }
}

std::span<std::byte> FileSender::await_buffer() {
  const auto until = Clock::now() + (offered_ != 0 ? kDiskPatience : kPatience);
  for (;;) {
    while (hear(Duration::zero())) {
    }
    if (const auto wait = pace_.to_wait(); wait > Duration::zero()) {
      progress_.pause();
      hear(std::min(wait, kAttention));
      continue;
    }
    if (const auto buffer = channel_.content_buffer(kAttention); !buffer.empty()) return buffer;
    look_at_way();
    if (Clock::now() > until) throw silence(channel_);
  }
}

void FileSender::send_offers() {
  if (offers_.empty()) return;
  send_control(MessageTag::kOffers, offers_);
  offers_.clear();
}

void FileSender::send_pack() {
  if (packed_ != 0) channel_.send_content(MessageTag::kPack, pack_.first(packed_));
  pack_ = {};
  packed_ = 0;
}

void FileSender::say(NoteKind kind, std::uint32_t file, std::uint64_t have, const Digest& digest) {
  Note note;
  note.kind = kind;
  note.file = file;
  note.have = have;
  note.digest = digest;
  if (kind == NoteKind::kSettle || kind == NoteKind::kGo) send_pack();
  send_control(MessageTag::kNotes, encode(note));
}

// Reads the receiver's messages while it waits, because the receiver may block on them.
void FileSender::send_control(MessageTag tag, std::span<const std::byte> bytes) {
  const auto until = Clock::now() + kDiskPatience;
  while (!channel_.ready_to_send()) {
    if (!hear(kAttention) && Clock::now() > until) throw silence(channel_);
  }
  channel_.send(tag, bytes);
}

}  // namespace stp::files
