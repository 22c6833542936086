// SPDX-License-Identifier: BSD-3-Clause
#include "tools/files/receiver.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>

#include "tools/files/failure.h"
#include "tools/files/metadata.h"

namespace stp::files {
namespace {

// What the entry of a file takes beside its path.
constexpr std::size_t kOfEntry = 128;

}  // namespace

std::string from_station(const std::string& station) {
  return station.empty() ? "" : "from " + station + ": ";
}

bool LinkedFiles::File::is_named(int directory, const std::string& name) const {
  struct stat status {};
  return is_found && ::fstatat(directory, name.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0 &&
         S_ISREG(status.st_mode) && status.st_dev == device && status.st_ino == inode;
}

void LinkedFiles::begin(std::uint32_t number, const std::string& path) {
  const auto size = path.size() + kOfEntry;
  if (size > kMostBytes - bytes_ || !files_.try_emplace(number, File{path}).second) return;
  bytes_ += size;
}

void LinkedFiles::found(std::uint32_t number, int directory, const std::string& name) {
  const auto file = files_.find(number);
  struct stat status {};
  if (file == files_.end()) return;
  if (::fstatat(directory, name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) return;
  file->second.device = status.st_dev;
  file->second.inode = status.st_ino;
  file->second.is_found = true;
}

void LinkedFiles::arrived(std::uint32_t number) {
  if (const auto file = files_.find(number); file != files_.end()) file->second.has_arrived = true;
}

void LinkedFiles::forget(std::uint32_t number) {
  const auto file = files_.find(number);
  if (file == files_.end()) return;
  bytes_ -= file->second.path.size() + kOfEntry;
  files_.erase(file);
}

bool LinkedFiles::is_under_way(std::uint32_t number) const {
  const auto file = files_.find(number);
  return file != files_.end() && !file->second.has_arrived;
}

std::optional<LinkedFiles::File> LinkedFiles::find(std::uint32_t number) const {
  const auto file = files_.find(number);
  if (file == files_.end()) return std::nullopt;
  return file->second;
}

IncomingFiles::IncomingFiles(const std::string& root, Progress& progress,
                             const std::atomic<bool>& stop, WorkFor whom, Answer answer,
                             std::function<void()> settled, const Descriptors& most)
    : progress_(progress),
      stop_(stop),
      whom_(std::move(whom)),
      answer_(std::move(answer)),
      most_(most),
      directories_(root),
      settler_(std::move(settled)) {
  permitted(0);  // reads the umask, which disturbs files that are made meanwhile
}

std::uint32_t IncomingFiles::number_after_all() const {
  return first_ + static_cast<std::uint32_t>(offers_.size());
}

IncomingFiles::Offer* IncomingFiles::find(std::uint32_t number) {
  if (number < first_ || number >= number_after_all()) return nullptr;
  return &offers_[number - first_];
}

std::string IncomingFiles::name_under_way() const {
  if (under_way_ < first_ || under_way_ >= number_after_all()) return {};
  return offers_[under_way_ - first_].metadata.path;
}

bool IncomingFiles::offers(std::span<const std::byte> message) {
  while (!message.empty()) {
    const auto before = message.size();
    auto metadata = take_offer(message);
    const auto size = before - message.size();
    if (!metadata || offers_.size() >= kMostOffered || size > kMostOfferedBytes - offered_bytes_)
      return false;
    Offer offer;
    offer.metadata = std::move(*metadata);
    offer.size = size;
    offered_bytes_ += size;
    offers_.push_back(std::move(offer));
  }
  asked_to_settle_ = false;
  advance();
  return true;
}

void IncomingFiles::advance() {
  while (to_look_ != number_after_all() && compared_ < most_.compared && !stop_) {
    const auto number = to_look_++;
    look_at(number, offers_[number - first_]);
  }
  while (!offers_.empty()) {
    auto& front = offers_.front();
    if (front.state == State::kName) {
      if (!add_name(first_, front)) break;
      settle_in_time();
    }
    if (front.state == State::kLast) {
      finish_directory(first_, front);
      settle_in_time();  // each holds a descriptor
    }
    if (front.state != State::kOver) break;
    offered_bytes_ -= front.size;
    offers_.pop_front();
    ++first_;
  }
  settle_in_time();
  flush_done();
}

void IncomingFiles::look_at(std::uint32_t number, Offer& offer) {
  auto path = accepted_path(offer.metadata.path);
  if (!failed_.empty()) failed_.erase(offer.metadata.path);
  if (!path) return fail(number, offer, because(Reason::kName));
  offer.path = std::move(*path);
  if (offer.metadata.dry) return look_at_dry(number, offer);
  if (sink_ >= 0) return look_at_for_sink(number, offer);
  if (offer.metadata.more_names && offer.metadata.first == 0)
    linked_.begin(number, offer.metadata.path);
  const auto is_directory = offer.metadata.kind == FileKind::kDirectory;
  const auto above = std::span(offer.path).first(offer.path.size() - (is_directory ? 0 : 1));
  const auto only_make = is_directory && offer.metadata.only_make;
  Directory directory;
  if (const auto error =
          only_make ? directories_.make(above, directory) : directories_.open(above, directory);
      error != 0)
    return fail(number, offer, no_way(above, error));
  if (only_make) {
    over(offer);
    done(number);
  } else if (is_directory) {
    offer.state = State::kLast;
  } else if (offer.metadata.kind == FileKind::kSymbolicLink) {
    look_at_link(number, offer, directory);
  } else if (offer.metadata.first != 0) {
    offer.state = State::kName;
  } else {
    look_at_file(number, offer, directory);
  }
}

// Why there is no such directory: `have` is how many names lead to what is in its way.
Note IncomingFiles::no_way(std::span<const std::string> names, int error) const {
  auto note = result_of(error);
  if (error != -ENOTDIR && error != -ELOOP) return note;
  Directory directory;
  for (note.have = 1; note.have < names.size(); ++note.have)
    if (directories_.find(names.first(note.have), directory) != 0) break;
  return note;
}

// Says what would be done, and does nothing.
void IncomingFiles::look_at_dry(std::uint32_t number, Offer& offer) {
  const auto& metadata = offer.metadata;
  const auto is_file = metadata.kind == FileKind::kRegular;
  if (sink_ >= 0) return want(number, offer, because(is_file ? Reason::kNone : Reason::kOnlyOne));
  const auto& name = offer.path.back();
  Directory directory;
  struct stat found {};
  const auto error =
      directories_.find(std::span(offer.path).first(offer.path.size() - 1), directory);
  if (error != 0 && error != -ENOENT && error != -EAGAIN)
    return fail(number, offer, no_way(std::span(offer.path).first(offer.path.size() - 1), error));
  const auto at = error == 0 ? directory->get() : -1;
  const auto is_there = error == 0 && ::fstatat(at, name.c_str(), &found, AT_SYMLINK_NOFOLLOW) == 0;
  const auto in_the_way =
      is_there && S_ISDIR(found.st_mode) != (metadata.kind == FileKind::kDirectory);
  if (in_the_way && S_ISDIR(found.st_mode)) return fail(number, offer, result_of(-EISDIR));
  if (in_the_way && metadata.kind == FileKind::kDirectory && !S_ISREG(found.st_mode))
    return fail(number, offer, no_way(offer.path, -ENOTDIR));
  const auto same_size = is_there && S_ISREG(found.st_mode) &&
                         static_cast<std::uint64_t>(found.st_size) == metadata.size;
  if (is_file && !may_be_unchanged(number, metadata, at, same_size)) return want(number, offer, {});
  if (is_file && same_size && metadata.checksum && metadata.size != 0)
    return want(number, offer, open_to_compare(offer, directory));
  const auto same = metadata.kind == FileKind::kDirectory ? is_there && !in_the_way
                    : is_file ? same_size && (metadata.checksum || has_time(found, metadata))
                              : is_there && S_ISLNK(found.st_mode) && has_time(found, metadata) &&
                                    is_link_to(at, name, metadata.target);
  // A directory that is missing would be where the root is.
  if (!same && is_file && (error == 0 || directories_.find({}, directory) == 0))
    return want_all(number, offer, directory->get(), is_there);
  if (!same) return want(number, offer, {});
  over(offer);
  done(number);
  ++files_;
}

// Of files with several names: false if it would become a further name of another file.
bool IncomingFiles::may_be_unchanged(std::uint32_t number, const Metadata& metadata, int directory,
                                     bool same_size) {
  const auto name = accepted_path(metadata.path)->back();
  if (metadata.more_names && metadata.first == 0) {
    linked_.begin(number, metadata.path);
    // One that would be replaced has no further names there.
    struct stat found {};
    if (same_size && ::fstatat(directory, name.c_str(), &found, AT_SYMLINK_NOFOLLOW) == 0 &&
        (metadata.checksum || has_time(found, metadata)))
      linked_.found(number, directory, name);
  }
  if (metadata.first == 0) return true;
  const auto first = linked_.find(metadata.first);
  if (!metadata.more_names) linked_.forget(metadata.first);
  return !first || first->is_named(directory, name);
}

// A file that has gone meanwhile is wanted without a digest.
Note IncomingFiles::open_to_compare(Offer& offer, const Directory& directory) {
  offer.file = std::make_unique<IncomingFile>(offer.metadata, progress_, whom_);
  auto note = offer.file->open(directory, offer.path.back());
  if (note.reason == Reason::kNone) return note;
  offer.file.reset();
  return {};
}

void IncomingFiles::look_at_for_sink(std::uint32_t number, Offer& offer) {
  if (offer.metadata.kind != FileKind::kRegular || std::exchange(sink_taken_, true))
    return fail(number, offer, because(Reason::kOnlyOne));
  // A sink is written in order and cannot be read back.
  offer.metadata.resume = offer.metadata.checksum = false;
  want(number, offer, {});
}

void IncomingFiles::look_at_link(std::uint32_t number, Offer& offer, const Directory& directory) {
  const auto& name = offer.path.back();
  struct stat found {};
  const auto same = ::fstatat(directory->get(), name.c_str(), &found, AT_SYMLINK_NOFOLLOW) == 0 &&
                    S_ISLNK(found.st_mode) && has_time(found, offer.metadata) &&
                    is_link_to(directory->get(), name, offer.metadata.target);
  if (const auto error = same ? 0 : make_link(directory->get(), name, offer.metadata); error != 0)
    return fail(number, offer, result_of(error));
  over(offer);
  done(number);
  ++files_;
}

// Decides with one fstatat() of the name.
void IncomingFiles::look_at_file(std::uint32_t number, Offer& offer, const Directory& directory) {
  const auto& metadata = offer.metadata;
  const auto& name = offer.path.back();
  const auto at = directory->get();
  struct stat found {};
  const auto is_there = ::fstatat(at, name.c_str(), &found, AT_SYMLINK_NOFOLLOW) == 0;
  if (is_there && S_ISDIR(found.st_mode)) return fail(number, offer, result_of(-EISDIR));
  const auto same_size = is_there && S_ISREG(found.st_mode) && !metadata.stream &&
                         static_cast<std::uint64_t>(found.st_size) == metadata.size;
  const auto is_there_already = [&] {
    linked_.found(number, at, name);
    linked_.arrived(number);
    over(offer);
    done(number);
    ++files_;
  };
  if (same_size && !metadata.checksum && metadata.resume && has_time(found, metadata)) {
    const auto right = (found.st_mode & 07777U) == permitted(metadata.mode);
    if (const auto error = right ? 0 : correct_mode(at, name, metadata); error != 0)
      return fail(number, offer, result_of(error));
    return is_there_already();
  }
  // Of an empty file there is nothing to compare.
  if (same_size && metadata.size == 0 && metadata.checksum && correct(at, name, metadata) == 0)
    return is_there_already();
  const auto is_large = metadata.size > kMostPacked && metadata.resume && !metadata.stream;
  if ((same_size && metadata.size != 0 && metadata.checksum) || (is_large && has_part(at, name)))
    return want(number, offer, open(offer));
  metadata.stream ? want(number, offer, {}) : want_all(number, offer, at, is_there);
}

// Nothing of it is there. A file that it replaces makes room in the end, so how much there is says
// little.
void IncomingFiles::want_all(std::uint32_t number, Offer& offer, int directory, bool replaces) {
  std::optional<std::uint64_t> room;
  auto note = result_of(refuse_size(directory, offer.metadata.size, &room));
  if (room && !replaces && note.reason == Reason::kNone) put_room(note, *room);
  want(number, offer, note);
}

// False: what it is a further name of is not settled yet. If that has not arrived, or cannot get
// another name, the file is one as any other.
bool IncomingFiles::add_name(std::uint32_t number, Offer& offer) {
  const auto first = offer.metadata.first;
  if (first < number && linked_.is_under_way(first)) begin_to_settle();
  if (first < number && linked_.is_under_way(first)) return false;
  const auto file = first < number ? linked_.find(first) : std::nullopt;
  if (!offer.metadata.more_names) linked_.forget(first);
  Directory directory;
  const auto above = std::span(offer.path).first(offer.path.size() - 1);
  if (const auto error = directories_.open(above, directory); error != 0)
    fail(number, offer, result_of(error));
  else if (!file || !give_name(number, offer, *file, directory))
    look_at_file(number, offer, directory);
  return true;
}

// False: this file cannot have that name.
bool IncomingFiles::give_name(std::uint32_t number, Offer& offer, const LinkedFiles::File& file,
                              const Directory& directory) {
  const auto path = accepted_path(file.path);
  Directory above;
  if (!path || directories_.open(std::span(*path).first(path->size() - 1), above) != 0)
    return false;
  WholeFile whole_file;
  whole_file.directory = directory;
  whole_file.name = offer.path.back();
  whole_file.is_link = true;
  if (refuse_directory(directory->get(), whole_file.name) != 0) return false;
  if (!file.is_named(directory->get(), whole_file.name)) {
    auto temporary = temporary_name();
    if (::linkat(above->get(), path->back().c_str(), directory->get(), temporary.c_str(), 0) != 0)
      return false;
    if (!file.is_named(directory->get(), temporary)) {
      ::unlinkat(directory->get(), temporary.c_str(), 0);
      return false;
    }
    whole_file.temporary = std::move(temporary);
  }
  told_[number] = {offer.metadata.path, 0, 0, false};
  batch_->add(number, std::move(whole_file));
  over(offer);
  return true;
}

Note IncomingFiles::open(Offer& offer) {
  if (sink_ >= 0) {
    offer.file = std::make_unique<IncomingFile>(offer.metadata, progress_, whom_);
    return offer.file->open_sink(sink_);
  }
  Directory directory;
  const auto above = std::span(offer.path).first(offer.path.size() - 1);
  if (const auto error = directories_.open(above, directory); error != 0) return result_of(error);
  offer.file = std::make_unique<IncomingFile>(offer.metadata, progress_, whom_);
  auto note = offer.file->open(std::move(directory), offer.path.back());
  if (note.reason != Reason::kNone) offer.file.reset();
  return note;
}

void IncomingFiles::want(std::uint32_t number, Offer& offer, Note note) {
  if (note.reason != Reason::kNone) return fail(number, offer, note);
  offer.state = State::kWanted;
  if (offer.file) ++compared_;
  note.kind = NoteKind::kWanted;
  note.file = number;
  flush_done();
  answer_(note);
}

// What came of the content, and what was found here to go on from, belongs to another state of the
// file.
bool IncomingFiles::changed(std::span<const std::byte> message) {
  auto changed = decode_changed(message);
  if (!changed || changed->file == 0 || changed->file >= to_look_) return false;
  auto* const offer = find(changed->file);
  if (offer == nullptr || offer->state != State::kWanted) return true;  // it has failed meanwhile
  if (offer->metadata.dry) return false;
  if (changed->file == under_way_) under_way_ = 0;
  linked_.forget(changed->file);  // its further names may be of what it was before
  const auto begun = offer->file != nullptr;
  if (begun) {
    offer->file->forget();
    offer->file.reset();
    --compared_;
  }
  changed->metadata.path = std::move(offer->metadata.path);
  offer->metadata = std::move(changed->metadata);
  if (sink_ >= 0) offer->metadata.resume = offer->metadata.checksum = false;
  // What went to a sink cannot be taken back.
  if (sink_ >= 0 && begun) fail(changed->file, *offer, because(Reason::kDigest));
  advance();
  return true;
}

bool IncomingFiles::told(const Note& note) {
  if (note.kind == NoteKind::kSettle) {
    asked_to_settle_ = true;
    begin_to_settle();
    return true;
  }
  if (note.file == 0 || note.file >= to_look_) return false;
  auto* const offer = find(note.file);
  if (offer == nullptr || offer->state != State::kWanted) return true;  // it has failed meanwhile
  if (offer->metadata.dry && note.kind != NoteKind::kAbandon) return false;
  switch (note.kind) {
    case NoteKind::kGo:
      if (find(under_way_) != nullptr && find(under_way_)->state == State::kWanted) return false;
      go(note.file, *offer, note.have);
      break;
    case NoteKind::kHole:
      if (note.file != under_way_ || note.have == 0 || note.have > kMostHole) return false;
      if (const auto went = offer->file->skip(note.have); went.reason != Reason::kNone)
        fail(note.file, *offer, went);
      break;
    case NoteKind::kCommit:
      if (note.file != under_way_) return false;
      commit(note.file, *offer, note);
      break;
    case NoteKind::kAbandon:
      abandon(note.file, *offer);
      break;
    default:
      return false;
  }
  advance();
  return true;
}

void IncomingFiles::go(std::uint32_t number, Offer& offer, std::uint64_t at) {
  const auto was_compared = offer.file != nullptr;
  if (!was_compared) {
    if (const auto note = open(offer); note.reason != Reason::kNone)
      return fail(number, offer, note);
    ++compared_;
  }
  if (const auto note = offer.file->go_on_from(at); note.reason != Reason::kNone)
    return fail(number, offer, note);
  under_way_ = number;
}

void IncomingFiles::content(std::span<const std::byte> bytes) {
  auto* const offer = find(under_way_);
  if (offer == nullptr || offer->state != State::kWanted) return;
  const auto note = offer->file->append(bytes);
  if (note.reason == Reason::kNone) return;
  fail(under_way_, *offer, note);
  advance();
}

void IncomingFiles::commit(std::uint32_t number, Offer& offer, const Note& note) {
  WholeFile file;
  const auto was_there = offer.file->began_at();
  const auto went = offer.file->commit(note.have, note.digest, file);
  under_way_ = 0;
  if (went.reason != Reason::kNone) return fail(number, offer, went);
  whole(number, offer, std::move(file), was_there);
}

void IncomingFiles::abandon(std::uint32_t number, Offer& offer) {
  if (number == under_way_) under_way_ = 0;
  if (offer.metadata.dry) {
    ++files_;
  } else {
    fail(0, offer.metadata.path, because(Reason::kAbandoned));
    linked_.forget(number);
  }
  over(offer);
}

bool IncomingFiles::pack(std::span<const std::byte> message) {
  std::vector<SmallFile> files;
  while (!message.empty()) {
    const auto packed = take_packed(message);
    if (!packed || packed->file == 0 || packed->file >= to_look_) return false;
    auto* const offer = find(packed->file);
    if (offer == nullptr || offer->state != State::kWanted) continue;
    if (packed->content.size() != offer->metadata.size || offer->file || offer->metadata.dry ||
        offer->metadata.size > kMostPacked)
      return false;
    if (sink_ >= 0) {
      pack_into_sink(packed->file, *offer, *packed);
      continue;
    }
    offer->state = State::kWritten;
    auto& file = files.emplace_back();
    file.packed = *packed;
    file.metadata = &offer->metadata;
    file.name = &offer->path.back();
    const auto above = std::span(offer->path).first(offer->path.size() - 1);
    file.result = result_of(directories_.open(above, file.directory));
    if (files.size() == most_.small_files) write(files);
  }
  write(files);
  advance();
  return true;
}

void IncomingFiles::write(std::vector<SmallFile>& files) {
  small_files_.write(files);
  for (auto& file : files) {
    const auto number = file.packed.file;
    auto& offer = *find(number);
    if (file.result.reason != Reason::kNone)
      fail(number, offer, file.result);
    else
      whole(number, offer, std::move(file.file), 0);
    settle_in_time();
  }
  files.clear();
}

void IncomingFiles::pack_into_sink(std::uint32_t number, Offer& offer, const Packed& packed) {
  WholeFile file;
  auto note = open(offer);
  ++compared_;
  if (note.reason == Reason::kNone) note = offer.file->go_on_from(0);
  if (note.reason == Reason::kNone) note = offer.file->append(packed.content);
  if (note.reason == Reason::kNone)
    note = offer.file->commit(packed.content.size(), packed.digest, file);
  if (note.reason != Reason::kNone) return fail(number, offer, note);
  whole(number, offer, std::move(file), 0);
}

void IncomingFiles::finish_directory(std::uint32_t number, Offer& offer) {
  Directory directory;
  if (const auto error = directories_.open(offer.path, directory); error != 0)
    return fail(number, offer, result_of(error));
  if (!batch_->is_empty() || settler_.is_busy()) {
    told_[number] = {offer.metadata.path, 0, 0, false};
    batch_->add_directory(number, std::move(directory), offer.metadata);
    return over(offer);
  }
  if (const auto error = apply(directory->get(), offer.metadata); error != 0)
    return fail(number, offer, result_of(error));
  over(offer);
  done(number);
  ++files_;
}

void IncomingFiles::whole(std::uint32_t number, Offer& offer, WholeFile file,
                          std::uint64_t was_there) {
  const auto arrived = file.bytes == 0 || file.bytes != was_there;
  told_[number] = {offer.metadata.path, file.bytes, was_there, arrived};
  if (file.directory)
    linked_.found(number, file.directory->get(),
                  file.temporary.empty() ? file.name : file.temporary);
  batch_->add(number, std::move(file));
  over(offer);
}

void IncomingFiles::begin_to_settle() {
  if (batch_->is_empty()) return;
  if (const auto before = settler_.wait()) report(*before);
  settler_.begin(std::exchange(batch_, std::make_unique<Batch>(most_)));
}

void IncomingFiles::settle_in_time() {
  if (batch_->is_full() || (batch_->is_worthwhile() && !settler_.is_busy())) begin_to_settle();
}

void IncomingFiles::collect() {
  if (const auto batch = settler_.collect()) {
    report(*batch);
    advance();  // further names may have waited for it
    if (asked_to_settle_) begin_to_settle();
  }
  settle_in_time();
}

void IncomingFiles::settle() {
  begin_to_settle();
  if (const auto batch = settler_.wait()) report(*batch);
}

void IncomingFiles::report(const Batch& batch) {
  batch.report([this](std::uint32_t number, int error) {
    const auto told = told_.extract(number);
    const auto& about = told.mapped();
    if (error != 0) return fail(number, about.name, result_of(error));
    linked_.arrived(number);
    done(number);
    ++files_;
    if (about.arrived)
      lines_.push_back("received " + about.name + ": " + std::to_string(about.bytes) + " bytes" +
                       (about.was_there == 0 ? ""
                                             : ", " + std::to_string(about.was_there) +
                                                   " of them were there already"));
  });
  flush_done();
  say_lines();
}

void IncomingFiles::say_lines() {
  progress_.say(lines_);
  lines_.clear();
}

// Frees all but what find() needs.
void IncomingFiles::over(Offer& offer) {
  if (offer.file) --compared_;
  offer.file.reset();
  offer.state = State::kOver;
  offer.metadata = {};
  offer.path = {};
}

void IncomingFiles::done(std::uint32_t number) {
  if (done_.have != 0 && number != done_.file + done_.have) flush_done();
  if (done_.have == 0) {
    done_.kind = NoteKind::kDone;
    done_.file = number;
  }
  ++done_.have;
}

void IncomingFiles::flush_done() {
  if (done_.have == 0) return;
  const auto note = std::exchange(done_, {});
  answer_(note);
}

void IncomingFiles::fail(std::uint32_t number, Offer& offer, Note note) {
  const auto name = offer.metadata.path;
  const auto dry = offer.metadata.dry;
  if (number == under_way_) under_way_ = 0;
  over(offer);
  if (!dry) return fail(number, name, note);
  ++files_;  // looked at: the sender tells
  refuse(number, note);
}

// With number 0 the sender already knows and is not notified.
void IncomingFiles::fail(std::uint32_t number, const std::string& name, Note note) {
  linked_.forget(number);
  // Not of a directory.
  const auto of_output = sink_ >= 0 && note.error != 0 && note.reason != Reason::kTimeout;
  if (of_output) note.reason = Reason::kWrite;
  const auto way = note.have == 0 ? std::string() : beginning(name, note.have);
  const auto line = (!way.empty()   ? way
                     : name.empty() ? "a file"
                                    : name) +
                    ": " +
                    (of_output ? "standard output cannot be written: " + error_text(note.error) +
                                     "; redirect it to where there is room, or to a program that "
                                     "reads all"
                               : describe_here(note));
  const auto known = failed_.size() < kMostFailed;
  // A sender with --delete removes the directory, and sends the file again.
  const auto later = known && note.reason == Reason::kWrite && note.error == EISDIR;
  if (known)
    failed_[name] = later ? line : "";
  else
    ++failed_unnamed_;
  const auto told = !way.empty() && std::exchange(told_way_, way) == way;
  if (!later && !told && (note.reason != Reason::kNoSpace || without_space_++ == 0)) complain(line);
  if (number != 0) refuse(number, note);
}

void IncomingFiles::refuse(std::uint32_t number, Note note) {
  flush_done();
  note.kind = NoteKind::kFailed;
  note.file = number;
  answer_(note);
}

std::uint32_t IncomingFiles::first_that_is_missing() const {
  const auto at =
      std::ranges::find_if(offers_, [](const Offer& offer) { return offer.state != State::kOver; });
  return at == offers_.end() ? 0 : first_ + static_cast<std::uint32_t>(at - offers_.begin());
}

void IncomingFiles::end(Reason reason, int error) {
  settle();
  const auto* const coming = find(under_way_);
  const auto under_way = coming != nullptr && coming->state == State::kWanted;
  const auto number = under_way ? under_way_ : first_that_is_missing();
  if (auto* const offer = find(number)) {
    auto note = because(reason);
    note.error = static_cast<std::uint16_t>(error);
    fail(number, *offer, note);
  }
  flush_done();
  complain_of_the_rest();
}

void IncomingFiles::complain_of_the_rest() {
  for (auto& [name, line] : failed_)
    if (!line.empty()) complain(std::exchange(line, {}));
  if (without_space_ > 1)
    complain(std::to_string(without_space_ - 1) +
             " more files were not received: no space is left");
}

}  // namespace stp::files
