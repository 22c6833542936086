// SPDX-License-Identifier: BSD-3-Clause
#include "tools/files/file_writer.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <vector>

#include "tools/files/directory.h"
#include "tools/files/name.h"

namespace stp::files {
namespace {

// The same for the same name, and never too long.
std::string part_name(const std::string& name) {
  ContentDigest digest;
  digest.add(std::as_bytes(std::span(name)));
  std::string text(kTemporaryPrefix);
  for (auto const byte : digest.value()) {
    constexpr char kHex[] = "0123456789abcdef";
    text += {kHex[byte >> 4], kHex[byte & 15]};
  }
  return text + ".part";
}

// The name of a partial file can be guessed, and others may write to the directory: a FIFO would
// block the first write, a link would lead to another file, a file of somebody else's stays theirs.
bool is_own(const struct stat& part) {
  return S_ISREG(part.st_mode) && part.st_nlink == 1 && part.st_uid == ::geteuid();
}

}  // namespace

int FileWriter::open(service::UniqueFd directory, const std::string& name,
                     const Metadata& metadata) {
  discard();
  name_ = name;
  metadata_ = metadata;
  have_ = written_ = 0;
  if (auto const error = refuse_directory(directory.get(), name_); error != 0) return error;
  directory_ = std::move(directory);
  auto error = metadata_.resume ? find_complete() : 0;
  if (error == 0 && !complete_) error = open_temporary();
  if (error == 0) error = refuse_size();
  if (error != 0) discard();
  return error;
}

// No file of that name and no permission to read it are both no reason to fail.
int FileWriter::find_complete() {
  service::UniqueFd file(
      ::openat(directory_.get(), name_.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK));
  struct stat found {};
  if (!file) return 0;
  if (::fstat(file.get(), &found) != 0) return -errno;
  auto const same = S_ISREG(found.st_mode) &&
                    static_cast<std::uint64_t>(found.st_size) == metadata_.size &&
                    metadata_.keep_times && found.st_mtim.tv_sec == metadata_.modified.tv_sec &&
                    found.st_mtim.tv_nsec == metadata_.modified.tv_nsec;
  if (!same) return 0;
  complete_ = std::move(file);
  have_ = metadata_.size;
  return 0;
}

int FileWriter::open_temporary() {
  auto const flags = metadata_.resume ? 0 : O_EXCL;
  temporary_ = metadata_.resume ? part_name(name_) : temporary_name();
  part_.reset(::openat(directory_.get(), temporary_.c_str(),
                       O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | flags, 0600));
  if (part_ && ::flock(part_.get(), LOCK_EX | LOCK_NB) == 0) {
    struct stat part {};
    auto const error = ::fstat(part_.get(), &part) != 0 ? -errno : is_own(part) ? 0 : -EEXIST;
    if (error != 0) {
      temporary_.clear();  // not ours to remove
      return error;
    }
    have_ = std::min(static_cast<std::uint64_t>(part.st_size), metadata_.size);
    return 0;
  }
  auto const error = errno == EWOULDBLOCK ? -EBUSY : -errno;
  temporary_.clear();  // not ours to remove
  return error;
}

// What would make the last append() fail is better said before the content travels.
int FileWriter::refuse_size() const {
  struct statvfs space {};
  auto const missing = metadata_.size - have_;
  auto const known = ::fstatvfs(directory_.get(), &space) == 0 && space.f_frsize != 0;
  return known && missing > 0 && missing / space.f_frsize >= space.f_bavail ? -ENOSPC : 0;
}

int FileWriter::read_back(ContentDigest& digest, const std::atomic<bool>& stop) const {
  constexpr std::size_t kPiece = std::size_t{1} << 20;
  std::vector<std::byte> bytes(static_cast<std::size_t>(std::min<std::uint64_t>(kPiece, have_)));
  auto const fd = complete_ ? complete_.get() : part_.get();
  for (std::uint64_t at = 0; at < have_;) {
    if (stop) return -ECANCELED;
    auto const want = static_cast<std::size_t>(std::min<std::uint64_t>(bytes.size(), have_ - at));
    auto const n = ::pread(fd, bytes.data(), want, static_cast<off_t>(at));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return n < 0 ? -errno : -EIO;
    digest.add(std::span(bytes).first(static_cast<std::size_t>(n)));
    at += static_cast<std::uint64_t>(n);
  }
  return 0;
}

int FileWriter::go_on_from(std::uint64_t at) {
  if (at > have_) return -EINVAL;
  written_ = at;
  if (complete_ && at == metadata_.size) return 0;
  complete_.reset();
  if (!part_) {
    if (auto const error = open_temporary(); error != 0) return error;
  }
  have_ = at;
  auto const from = static_cast<off_t>(at);
  return ::ftruncate(part_.get(), from) == 0 && ::lseek(part_.get(), from, SEEK_SET) == from
             ? 0
             : -errno;
}

int FileWriter::append(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    auto const n = ::write(part_.get(), bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return -errno;
    bytes = bytes.subspan(static_cast<std::size_t>(n));
    written_ += static_cast<std::uint64_t>(n);
  }
  return 0;
}

int FileWriter::give_name() {
  if (complete_) return apply(complete_.get(), metadata_);
  if (auto const error = apply(part_.get(), metadata_); error != 0) return error;
  if (::fsync(part_.get()) != 0 ||
      ::renameat(directory_.get(), temporary_.c_str(), directory_.get(), name_.c_str()) != 0)
    return -errno;
  temporary_.clear();
  return ::fsync(directory_.get()) == 0 ? 0 : -errno;
}

int FileWriter::commit() {
  auto const error = give_name();
  discard();
  return error;
}

void FileWriter::discard() {
  // What is there is worth keeping for a transfer that will be resumed.
  if (!temporary_.empty() && !(metadata_.resume && (written_ > 0 || have_ > 0)))
    ::unlinkat(directory_.get(), temporary_.c_str(), 0);
  temporary_.clear();
  part_.reset();
  complete_.reset();
  directory_.reset();
}

}  // namespace stp::files
