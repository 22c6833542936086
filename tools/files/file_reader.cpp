// SPDX-License-Identifier: BSD-3-Clause
#include "tools/files/file_reader.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "tools/files/failure.h"

namespace stp::files {
namespace {

FileFailure unreadable(int error) {
  return FileFailure("cannot read it: " + error_text(error));
}

struct stat status_of(const TreeEntry& entry) {
  struct stat found {};
  constexpr int kFlags = AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH;
  if (::fstatat(entry.directory, entry.name.c_str(), &found, kFlags) != 0) throw unreadable(errno);
  return found;
}

std::string target_of(const TreeEntry& entry) {
  std::array<char, kMaxPathLength + 1> target;
  auto const length =
      ::readlinkat(entry.directory, entry.name.c_str(), target.data(), target.size());
  if (length < 0) throw unreadable(errno);
  if (static_cast<std::size_t>(length) > kMaxPathLength)
    throw FileFailure("points to a name that is too long to send");
  return {target.data(), static_cast<std::size_t>(length)};
}

// Opened without waiting, so that a FIFO is told from a file instead of hanging.
service::UniqueFd open_for_reading(int directory, const std::string& name, int flags,
                                   struct stat& found) {
  constexpr char kNoFile[] = "is no regular file; devices, sockets and FIFOs are not sent";
  service::UniqueFd fd(
      ::openat(directory, name.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | flags));
  if (!fd && errno == ELOOP && flags != 0)
    throw FileFailure("became a symbolic link while it was sent; send it again");
  if (!fd && errno == ENXIO) throw FileFailure(kNoFile);  // a socket, or a device that is not there
  if (!fd || ::fstat(fd.get(), &found) != 0) throw unreadable(errno);
  if (S_ISDIR(found.st_mode))
    throw FileFailure("is a directory; send it and all that it holds with -r");
  if (!S_ISREG(found.st_mode)) throw FileFailure(kNoFile);
  return fd;
}

std::string checked(std::string path_there) {
  if (accepted_path(path_there)) return path_there;
  throw FileFailure(
      "no receiver accepts a file of that name (control characters, or too long); "
      "rename it");
}

}  // namespace

FileReader FileReader::single(const std::string& path) {
  FileReader reader;
  struct stat found {};
  reader.fd_ = open_for_reading(AT_FDCWD, path, 0, found);
  reader.metadata_.path = checked(base_name(path));
  reader.metadata_.size = static_cast<std::uint64_t>(found.st_size);
  reader.metadata_.mode = static_cast<std::uint16_t>(found.st_mode & 0777);
  return reader;
}

FileReader FileReader::in_tree(const TreeEntry& entry) {
  FileReader reader;
  auto& metadata = reader.metadata_;
  metadata.path = checked(entry.path_there);
  auto found = status_of(entry);
  if (S_ISDIR(found.st_mode)) {
    metadata.kind = FileKind::kDirectory;
  } else if (S_ISLNK(found.st_mode)) {
    metadata.kind = FileKind::kSymbolicLink;
    metadata.target = target_of(entry);
    metadata.size = metadata.target.size();
  } else {
    reader.fd_ = open_for_reading(entry.directory, entry.name, O_NOFOLLOW, found);
    metadata.size = static_cast<std::uint64_t>(found.st_size);
  }
  metadata.mode = static_cast<std::uint16_t>(found.st_mode & 0777);
  metadata.modified = found.st_mtim;
  metadata.keep_times = metadata.resume = true;
  return reader;
}

void FileReader::read(std::span<std::byte> bytes) {
  while (!bytes.empty()) {
    auto const n = ::read(fd_.get(), bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) throw FileFailure("reading failed: " + error_text(errno));
    if (n == 0) throw FileFailure("it became shorter while it was sent; send it again");
    bytes = bytes.subspan(static_cast<std::size_t>(n));
  }
}

void FileReader::start_over() {
  if (::lseek(fd_.get(), 0, SEEK_SET) != 0)
    throw FileFailure("reading failed: " + error_text(errno));
}

}  // namespace stp::files
