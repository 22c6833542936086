// SPDX-License-Identifier: BSD-3-Clause
#include "tools/files/incoming_file.h"

#include <cerrno>

#include "tools/files/directory.h"

namespace stp::files {
namespace {

Note result(int error) {
  Note note;
  if (error == 0) return note;
  if (error == -ECANCELED) {
    note.reason = Reason::kStopped;
    return note;
  }
  note.reason =
      error == -ENOSPC || error == -EDQUOT || error == -EFBIG ? Reason::kNoSpace : Reason::kWrite;
  note.error = static_cast<std::uint16_t>(-error);
  return note;
}

Note result(Reason reason) {
  Note note;
  note.reason = reason;
  return note;
}

}  // namespace

Note IncomingFile::announce(std::span<const std::byte> metadata) {
  discard();
  metadata_ = {};
  auto decoded = decode_metadata(metadata);
  if (!decoded) return result(Reason::kProtocol);
  metadata_ = std::move(*decoded);
  auto const path = accepted_path(metadata_.path);
  if (!path) return result(Reason::kName);
  digest_ = ContentDigest();
  began_ = std::chrono::steady_clock::now();
  return open(*path);
}

Note IncomingFile::open(std::span<const std::string> path) {
  service::UniqueFd directory;
  auto const is_directory = metadata_.kind == FileKind::kDirectory;
  auto const above = is_directory ? path : path.first(path.size() - 1);
  if (auto const error = open_below(directory_, above, directory); error != 0) return result(error);
  if (is_directory) return result(apply(directory.get(), metadata_));
  if (metadata_.kind == FileKind::kSymbolicLink)
    return result(make_link(directory.get(), path.back(), metadata_));

  auto error = writer_.open(std::move(directory), path.back(), metadata_);
  if (error == 0) error = writer_.read_back(digest_, stop_);
  auto note = result(error);
  if (error != 0) return note;
  note.have = writer_.have();
  note.digest = digest_.value();
  return note;
}

Note IncomingFile::go_on_from(std::uint64_t at) {
  if (!under_way() || (at != 0 && at != writer_.have())) return result(Reason::kProtocol);
  if (at == 0) digest_ = ContentDigest();
  auto const error = writer_.go_on_from(at);
  if (error == 0) {
    bar_.emplace(progress_, name(), metadata_.size);
    bar_->advance(at);
  }
  return result(error);
}

Note IncomingFile::append(std::span<const std::byte> bytes) {
  digest_.add(bytes);
  if (bar_) bar_->advance(bytes.size());
  return result(writer_.append(bytes));
}

Note IncomingFile::commit(const Digest& expected) {
  auto note = missing() != 0 || digest_.value() != expected ? result(Reason::kDigest)
                                                            : result(writer_.commit());
  // Bytes that are wrong are not worth keeping.
  if (note.reason == Reason::kDigest && under_way()) writer_.go_on_from(0);
  discard();
  return note;
}

void IncomingFile::discard() {
  bar_.reset();
  writer_.discard();
}

double IncomingFile::seconds() const {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - began_).count();
}

}  // namespace stp::files
