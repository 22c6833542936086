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

std::string target_of(const TreeEntry& entry) {
  std::array<char, kMaxPathLength + 1> target;
  const auto length = ::readlinkat(entry.at(), entry.name.c_str(), target.data(), target.size());
  if (length < 0) throw unreadable(errno);
  if (static_cast<std::size_t>(length) > kMaxPathLength)
    throw FileFailure("points to a name that is too long to send; make that shorter");
  return {target.data(), static_cast<std::size_t>(length)};
}

constexpr char kNoFile[] = "is no regular file; devices, sockets and FIFOs are not sent";

void refuse_others(const struct stat& found) {
  if (S_ISDIR(found.st_mode))
    throw FileFailure("is a directory; send it and all that it holds with -r");
  if (!S_ISREG(found.st_mode)) throw FileFailure(kNoFile);
}

// Opens with O_NONBLOCK, so that a FIFO is recognized instead of blocking.
service::UniqueFd open_for_reading(int directory, const std::string& name, int flags) {
  struct stat found {};
  service::UniqueFd fd(
      ::openat(directory, name.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | flags));
  if (!fd && errno == ELOOP && flags != 0)
    throw FileFailure("became a symbolic link while it was sent; send it again");
  if (!fd && errno == ENXIO) throw FileFailure(kNoFile);  // a socket or a missing device
  if (!fd || ::fstat(fd.get(), &found) != 0) throw unreadable(errno);
  refuse_others(found);
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
  if (::stat(path.c_str(), &found) != 0) throw unreadable(errno);
  refuse_others(found);
  reader.name_ = reader.path_ = path;
  reader.follow_ = true;
  auto& metadata = reader.metadata_;
  metadata.path = checked(base_name(path));
  metadata.size = static_cast<std::uint64_t>(found.st_size);
  metadata.mode = static_cast<std::uint16_t>(found.st_mode & 0777);
  metadata.modified = found.st_mtim;
  metadata.keep_times = metadata.resume = true;
  return reader;
}

FileReader FileReader::in_tree(const TreeEntry& entry) {
  FileReader reader;
  auto& metadata = reader.metadata_;
  metadata.path = checked(entry.path_there);
  const auto& found = entry.status;
  reader.directory_ = entry.directory;
  reader.name_ = entry.name;
  reader.path_ = entry.path;
  if (S_ISDIR(found.st_mode)) {
    metadata.kind = FileKind::kDirectory;
  } else if (S_ISLNK(found.st_mode)) {
    metadata.kind = FileKind::kSymbolicLink;
    metadata.target = target_of(entry);
    metadata.size = metadata.target.size();
  } else {
    refuse_others(found);
    metadata.size = static_cast<std::uint64_t>(found.st_size);
  }
  metadata.mode = static_cast<std::uint16_t>(found.st_mode & 0777);
  metadata.modified = found.st_mtim;
  metadata.keep_times = metadata.resume = true;
  return reader;
}

FileReader FileReader::stream(int fd, const std::string& name) {
  FileReader reader;
  reader.stream_ = fd;
  reader.path_ = name;
  reader.metadata_.path = checked(name);
  reader.metadata_.stream = true;
  reader.metadata_.mode = 0666;
  return reader;
}

void FileReader::open() {
  if (metadata_.stream) return;
  const auto at = directory_ ? directory_->get() : AT_FDCWD;
  fd_ = open_for_reading(at, name_, follow_ ? 0 : O_NOFOLLOW);
}

std::size_t FileReader::read_some(std::span<std::byte> bytes) {
  for (;;) {
    const auto n = ::read(fd(), bytes.data(), bytes.size());
    if (n >= 0) return static_cast<std::size_t>(n);
    if (errno != EINTR)
      throw FileFailure("reading failed: " + error_text(errno) + "; check its disk");
  }
}

void FileReader::read(std::span<std::byte> bytes) {
  while (!bytes.empty()) {
    const auto n = read_some(bytes);
    if (n == 0) throw FileFailure("it became shorter while it was sent; send it again");
    bytes = bytes.subspan(n);
  }
}

void FileReader::start_over() {
  if (::lseek(fd(), 0, SEEK_SET) != 0)
    throw FileFailure("reading failed: " + error_text(errno) + "; check its disk");
}

}  // namespace stp::files
