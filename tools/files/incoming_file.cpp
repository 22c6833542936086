// SPDX-License-Identifier: BSD-3-Clause
#include "tools/files/incoming_file.h"

#include <cerrno>

namespace stp::files {
namespace {

Note result(int error) {
  Note note;
  if (error == 0) return note;
  note.reason =
      error == -ENOSPC || error == -EDQUOT || error == -EFBIG ? Reason::kNoSpace : Reason::kWrite;
  note.error = -error;
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
  auto decoded =
      decode_metadata({reinterpret_cast<const std::uint8_t*>(metadata.data()), metadata.size()});
  if (!decoded) return result(Reason::kProtocol);
  metadata_ = std::move(*decoded);
  auto const name = accepted_name(metadata_.name);
  if (!name) return result(Reason::kName);
  digest_ = ContentDigest();
  began_ = std::chrono::steady_clock::now();
  auto const error = writer_.open(directory_, *name, metadata_.size, metadata_.mode);
  if (error == 0) bar_.emplace(progress_, printable(*name), metadata_.size);
  return result(error);
}

Note IncomingFile::append(std::span<const std::byte> bytes) {
  digest_.add(bytes);
  if (bar_) bar_->advance(bytes.size());
  return result(writer_.append(bytes));
}

Note IncomingFile::commit(const Digest& expected) {
  auto note = writer_.written() != metadata_.size || digest_.value() != expected
                  ? result(Reason::kDigest)
                  : result(writer_.commit());
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
