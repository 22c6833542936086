// SPDX-License-Identifier: BSD-3-Clause
#include "tools/files/incoming_file.h"

#include <cerrno>
#include <utility>

#include "stp/base/printable.h"

namespace stp::files {

Note result_of(int error) {
  Note note;
  if (error == 0) return note;
  if (error == -ECANCELED) return because(Reason::kStopped);
  note.reason =
      error == -ENOSPC || error == -EDQUOT || error == -EFBIG ? Reason::kNoSpace : Reason::kWrite;
  note.error = static_cast<std::uint16_t>(-error);
  return note;
}

Note because(Reason reason) {
  Note note;
  note.reason = reason;
  return note;
}

Note IncomingFile::open(Directory directory, const std::string& name) {
  auto error = writer_.open(std::move(directory), name, metadata_);
  if (error == 0) error = writer_.read_back(digest_, whom_);
  auto note = result_of(error);
  if (error != 0) return note;
  note.have = writer_.have();
  note.digest = digest_.value();
  return note;
}

Note IncomingFile::go_on_from(std::uint64_t at) {
  if (at != 0 && at != writer_.have()) return because(Reason::kProtocol);
  if (at == 0) digest_ = ContentDigest();
  began_at_ = at;
  const auto error = writer_.go_on_from(at);
  if (error == 0) {
    bar_.emplace(progress_, printable(metadata_.path),
                 metadata_.stream ? std::nullopt : std::optional(metadata_.size));
    bar_->skip(at);
  }
  return result_of(error);
}

Note IncomingFile::append(std::span<const std::byte> bytes) {
  if (!metadata_.stream && bytes.size() > metadata_.size - writer_.written())
    return because(Reason::kProtocol);
  digest_.add(bytes);
  if (bar_) bar_->advance(bytes.size());
  const auto error = writer_.append(bytes);
  // After a write error, drops the partial file: on a full disk it would take the room of others.
  if (error != 0) writer_.go_on_from(0);
  return result_of(error);
}

Note IncomingFile::skip(std::uint64_t length) {
  if (metadata_.stream || length > metadata_.size - writer_.written())
    return because(Reason::kProtocol);
  digest_.add_hole(length);
  if (bar_) bar_->skip(length);
  const auto error = writer_.skip(length, whom_.attend);
  if (error != 0) writer_.go_on_from(0);
  return result_of(error);
}

Note IncomingFile::commit(std::uint64_t size, const Digest& expected, WholeFile& whole) {
  bar_.reset();
  const auto expected_size = metadata_.stream ? size : metadata_.size;
  if (writer_.written() == expected_size && digest_.value() == expected)
    return result_of(writer_.finish(whole));
  // Wrong bytes are not kept for a resumed transfer.
  writer_.go_on_from(0);
  return because(Reason::kDigest);
}

}  // namespace stp::files
