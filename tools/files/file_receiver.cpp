// SPDX-License-Identifier: BSD-3-Clause
#include "tools/files/file_receiver.h"

#include <algorithm>

#include "tools/files/failure.h"

namespace stp::files {
namespace {

using Clock = std::chrono::steady_clock;

Note because(Reason reason) {
  Note note;
  note.reason = reason;
  return note;
}

}  // namespace

void FileReceiver::serve() {
  try {
    serve_messages();
  } catch (const Closed& closed) {
    if (!file_.under_way()) return;
    ++failures_;
    throw LinkFailure(file_.name() + ": " + closed.what());
  } catch (const LinkFailure& failure) {
    ++failures_;
    throw LinkFailure((file_.under_way() ? file_.name() + ": " : "") + failure.what());
  }
}

void FileReceiver::serve_messages() {
  Message message;
  for (;;) {
    await(message);
    handle(message);
    channel_.done_with(message);
  }
}

void FileReceiver::await(Message& message) {
  presence_.hear();
  auto const since = Clock::now();
  while (!channel_.receive(message, kAttention)) {
    if (context_.stop) {
      if (file_.under_way()) fail(because(Reason::kStopped));
      throw Stopped();
    }
    if (presence_.leave) give_up("it was silent while others waited for its place");
    if (Clock::now() - since >= patience())
      give_up(
          "nothing came from the sender for as long as --idle-timeout says; see what holds it up");
  }
  presence_.hear();
  if (context_.stop && file_.under_way()) fail(because(Reason::kStopped));
}

Duration FileReceiver::patience() const {
  return comparing_ ? std::max(kDiskPatience, context_.idle_timeout) : context_.idle_timeout;
}

void FileReceiver::give_up(const std::string& why) {
  if (file_.under_way()) fail(because(Reason::kTimeout));
  throw LinkFailure(why);
}

void FileReceiver::handle(const Message& message) {
  switch (message.tag) {
    case MessageTag::kMetadata:
      announced(message);
      break;
    case MessageTag::kContent:
      if (!passing_over_) append(message.bytes);
      break;
    case MessageTag::kNote:
      if (auto const note = decode_note(message.bytes)) {
        told(*note);
        break;
      }
      [[fallthrough]];
    default:
      throw LinkFailure("the sender is none of this version; use the same on both sides");
  }
}

void FileReceiver::announced(const Message& message) {
  ++number_;
  passing_over_ = false;
  auto const note = file_.announce(message.bytes);
  say(note);
  passing_over_ = note.reason != Reason::kNone;
  comparing_ = file_.under_way() && note.have > 0;
  if (passing_over_ || file_.metadata().kind != FileKind::kRegular) report(note);
}

void FileReceiver::told(const Note& note) {
  comparing_ = false;
  if (note.kind == NoteKind::kAbandon && !passing_over_) {
    report(because(Reason::kAbandoned));
    file_.discard();
    passing_over_ = true;
  }
  if (passing_over_) return;
  if (note.kind == NoteKind::kGo) {
    if (auto const went = file_.go_on_from(note.have); went.reason != Reason::kNone) fail(went);
  } else if (note.kind == NoteKind::kCommit && file_.under_way()) {
    auto const went = file_.commit(note.digest);
    say(went);
    report(went);
    passing_over_ = true;
  } else {
    fail(because(Reason::kProtocol));
  }
}

void FileReceiver::append(std::span<const std::byte> bytes) {
  auto const fits = file_.under_way() && bytes.size() <= file_.missing();
  auto const note = fits ? file_.append(bytes) : because(Reason::kProtocol);
  if (note.reason != Reason::kNone) fail(note);
}

void FileReceiver::fail(Note note) {
  say(note);
  report(note);
  file_.discard();
  passing_over_ = true;
}

void FileReceiver::say(Note note) {
  note.kind = NoteKind::kAnswer;
  note.file = number_;
  channel_.send(MessageTag::kNote, encode(note));
}

void FileReceiver::report(const Note& note) {
  if (note.reason == Reason::kNone) {
    ++files_;
    context_.progress.say("received " + file_.name() +
                          (file_.metadata().kind == FileKind::kRegular
                               ? ": " + rate_text(file_.metadata().size, file_.seconds())
                               : ""));
  } else {
    ++failures_;
    context_.progress.complain((file_.name().empty() ? "a file" : file_.name()) + ": " +
                               describe(note));
  }
}

}  // namespace stp::files
