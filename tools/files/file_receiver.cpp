// SPDX-License-Identifier: BSD-3-Clause
#include "tools/files/file_receiver.h"

#include <algorithm>
#include <array>
#include <cerrno>

#include "stp/base/printable.h"
#include "tools/files/failure.h"
#include "tools/files/name.h"
#include "tools/files/remover.h"

namespace stp::files {
namespace {

using Clock = std::chrono::steady_clock;

// The names of a path below the receiver's directory; none: that itself.
std::optional<std::vector<std::string>> accepted_or_root(const std::string& path) {
  if (path.empty()) return std::vector<std::string>();
  return accepted_path(path);
}

}  // namespace

void FileReceiver::serve() {
  try {
    serve_messages();
  } catch (const LinkFailure& failure) {
    // Complete files stay. The answers can no longer be sent.
    answers_.clear();
    const auto name = files_.name_under_way();
    files_.settle();
    files_.complain_of_the_rest();
    const auto closed = dynamic_cast<const Closed*>(&failure) != nullptr;
    if (closed && name.empty()) return;
    ++broken_;
    throw LinkFailure((name.empty() ? "" : name + ": ") + failure.what());
  }
}

void FileReceiver::serve_messages() {
  Message message;
  for (;;) {
    await(message);
    const auto understood = handle(message);
    files_.collect();
    flush();
    if (!understood)
      throw LinkFailure("the sender has another version; use the same on both sides");
    channel_.done_with(message);
  }
}

void FileReceiver::await(Message& message) {
  presence_.hear();
  auto since = Clock::now();
  while (!channel_.receive(message, kAttention)) {
    if (context_.stop) give_up(Reason::kStopped, "");
    if (presence_.leave)
      give_up(Reason::kTimeout, "it was silent while others waited for its place");
    look_at_way(Clock::now() - since);
    if (Clock::now() - since >= patience())
      give_up(Reason::kTimeout, "nothing came from the sender for as long as --idle-timeout says" +
                                    (way_.empty() ? "; see what holds it up" : ": " + way_));
    files_.collect();
    if (files_.is_settling()) {
      since = Clock::now();
      presence_.hear();
    }
    // A slow sender's files do not wait for each other.
    if (Clock::now() - since >= kAttention) files_.begin_to_settle();
    flush();
  }
  presence_.hear();
  if (context_.stop) give_up(Reason::kStopped, "");
}

// Work for a sender that has gone ends: channel_.look() throws.
bool FileReceiver::attend() {
  if (context_.stop) return false;
  presence_.work();
  if (presence_.leave)
    give_up(Reason::kTimeout,
            "its files take long to compare, its host has more than its share of the places, and "
            "others wait for one");
  channel_.look();
  return true;
}

// Asks once: later, when nothing is sent any more, the link may know nothing of the way.
void FileReceiver::look_at_way(Duration silence) {
  constexpr auto kStuck = std::chrono::seconds(3);
  const bool stuck = silence >= std::min<Duration>(kStuck, patience());
  if (stuck && !has_looked_) way_ = channel_.trouble();
  has_looked_ = stuck;
}

Duration FileReceiver::patience() const {
  return files_.is_compared() ? std::max(kDiskPatience, context_.idle_timeout)
                              : context_.idle_timeout;
}

void FileReceiver::give_up(Reason reason, const std::string& why) {
  files_.end(reason);
  flush();
  if (reason == Reason::kStopped) throw Stopped();
  throw LinkFailure(why);
}

bool FileReceiver::handle(const Message& message) {
  switch (message.tag) {
    case MessageTag::kOffers:
      return files_.offers(message.bytes);
    case MessageTag::kPack:
      return files_.pack(message.bytes);
    case MessageTag::kChanged:
      return files_.changed(message.bytes);
    case MessageTag::kList:
      list(message.bytes);
      return true;
    case MessageTag::kRemove:
      return remove(message.bytes);
    case MessageTag::kNames:
      return false;
    case MessageTag::kContent:
      files_.content(message.bytes);
      return true;
    case MessageTag::kNotes: {
      const auto notes = decode_notes(message.bytes);
      return !notes.empty() && std::all_of(notes.begin(), notes.end(),
                                           [this](const Note& note) { return files_.told(note); });
    }
  }
  return false;
}

void FileReceiver::list(std::span<const std::byte> path) {
  flush();
  Directory directory;
  const auto reason = reason_against_removal(path, directory);
  if (reason.reason != Reason::kNone) return say(reason);
  const auto answer = [this](std::span<const std::byte> names) {
    presence_.hear();
    channel_.send(MessageTag::kNames, names);
  };
  if (directory)
    list_names(directory->get(), answer);
  else
    answer(std::to_array({std::byte{1}}));
}

bool FileReceiver::remove(std::span<const std::byte> message) {
  const auto texts = take_removal(message);
  if (texts.size() < 2) return false;
  Directory directory;
  const auto& path = texts.front();
  auto answer = reason_against_removal(std::as_bytes(std::span(path)), directory);
  // It is there: so this makes nothing, but lets the user write into it.
  if (directory) DirectoriesBelow(context_.directory).open(*accepted_or_root(path), directory);
  Removal removal;
  for (std::size_t i = 1; i < texts.size() && answer.reason == Reason::kNone && directory; ++i) {
    // A name of one component, and not one of our own.
    const auto name = accepted_path(texts[i]);
    if (!name || name->size() != 1) return false;
    presence_.hear();
    const auto before = removal.removed;
    remove_all(directory, texts[i], context_.stop, removal);
    if (removal.removed != before)
      context_.progress.say("deleted " + printable(path + (path.empty() ? "" : "/") + texts[i]));
  }
  if (removal.error != 0) answer = result_of(removal.error);
  answer.kind = NoteKind::kRemoved;
  answer.have = removal.removed;
  say(answer);
  return true;
}

// A directory that is missing is none, and no reason.
Note FileReceiver::reason_against_removal(std::span<const std::byte> path,
                                          Directory& directory) const {
  Note note;
  const auto names =
      accepted_or_root(std::string(reinterpret_cast<const char*>(path.data()), path.size()));
  const DirectoriesBelow below(context_.directory);
  int error = 0;
  if (!context_.allow_delete || context_.to_stdout)
    note = because(Reason::kKeeps);
  else if (!names)
    note = because(Reason::kName);
  else if (error = below.look(*names, directory); error != 0 && error != -ENOENT)
    note = result_of(error == -EAGAIN ? -EACCES : error);
  note.kind = NoteKind::kRemoved;
  return note;
}

void FileReceiver::say(const Note& note) {
  const auto bytes = encode(note);
  if (answers_.size() + bytes.size() > Channel::kControlRoom) flush();
  answers_.insert(answers_.end(), bytes.begin(), bytes.end());
}

void FileReceiver::flush() {
  if (answers_.empty()) return;
  channel_.send(MessageTag::kNotes, answers_);
  answers_.clear();
}

}  // namespace stp::files
