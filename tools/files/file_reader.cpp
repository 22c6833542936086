// SPDX-License-Identifier: BSD-3-Clause
#include "tools/files/file_reader.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <ctime>
#include <string_view>

#include "tools/files/failure.h"

namespace stp::files {
namespace {

std::string target_of(const TreeEntry& entry) {
  std::array<char, kMaxPathLength + 1> target;
  const auto at = entry.at();
  if (at == -1) throw unreadable(errno);
  const auto length = ::readlinkat(at, entry.name.c_str(), target.data(), target.size());
  if (length < 0) throw unreadable(errno);
  if (static_cast<std::size_t>(length) > kMaxPathLength)
    throw FileFailure("points to a name that is too long to send; make that shorter");
  return {target.data(), static_cast<std::size_t>(length)};
}

constexpr char kNoFile[] = "is no regular file; devices, sockets and FIFOs are not sent";
constexpr char kPipeIt[] = "; what comes out of one is: stp-send - HOST:PORT <FILE";

void refuse_others(const struct stat& found) {
  if (S_ISDIR(found.st_mode))
    throw FileFailure("is a directory; send it and all that it holds with -r");
  if (!S_ISREG(found.st_mode)) throw FileFailure(kNoFile);
}

bool same_time(const std::timespec& one, const std::timespec& other) {
  return one.tv_sec == other.tv_sec && one.tv_nsec == other.tv_nsec;
}

// The kernel's clock of files moves in steps of up to 10 ms. A change in the same step as the one
// before would not show in the times of the file. So waits until a step has ended that is not over.
void await_next_step(struct stat& found, int fd) {
  constexpr std::timespec kPause{0, 1'000'000};
  constexpr int kMostPauses = 20;
  for (int i = 0; i < kMostPauses; ++i) {
    std::timespec now{};
    ::clock_gettime(CLOCK_REALTIME_COARSE, &now);
    if (!same_time(found.st_ctim, now)) return;
    ::nanosleep(&kPause, nullptr);
    if (::fstat(fd, &found) != 0) throw unreadable(errno);
  }
}

// Opens with O_NONBLOCK, so that a FIFO is recognized instead of blocking.
os::UniqueFd open_regular(int directory, const std::string& name, int flags, struct stat& found) {
  os::UniqueFd fd(
      ::openat(directory, name.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | flags));
  if (!fd && errno == ELOOP && flags != 0)
    throw FileFailure("became a symbolic link while it was sent; send it again");
  if (!fd && errno == ENXIO) throw FileFailure(kNoFile);  // a socket or a missing device
  if (!fd || ::fstat(fd.get(), &found) != 0) throw unreadable(errno);
  refuse_others(found);
  return fd;
}

void describe_content(const struct stat& found, Metadata& metadata) {
  metadata.size = static_cast<std::uint64_t>(found.st_size);
  metadata.mode = static_cast<std::uint16_t>(found.st_mode & 0777);
  metadata.modified = found.st_mtim;
}

std::uint64_t stored_bytes(const struct stat& found) {
  constexpr std::uint64_t kBlock = 512;  // of st_blocks
  return std::min(static_cast<std::uint64_t>(found.st_size),
                  static_cast<std::uint64_t>(found.st_blocks) * kBlock);
}

// Why no receiver accepts a file of that name.
std::string reason_against(std::string_view path_there) {
  for (std::size_t begin = 0; begin <= path_there.size();) {
    const auto end = std::min(path_there.find('/', begin), path_there.size());
    const auto name = path_there.substr(begin, end - begin);
    begin = end + 1;
    if (name.starts_with(kTemporaryPrefix))
      return "its name begins as those of unfinished files of stp-recv do (" +
             std::string(kTemporaryPrefix) +
             "), so that no receiver accepts it; rename it, or remove what is left of a broken "
             "transfer";
    if (name.size() > kMaxNameLength)
      return "no receiver accepts a name of more than " + std::to_string(kMaxNameLength) +
             " bytes; rename it";
  }
  if (path_there.size() > kMaxPathLength)
    return "no receiver accepts a path of more than " + std::to_string(kMaxPathLength) +
           " bytes; send a directory that is further down";
  return "no receiver accepts a file of that name (empty, control characters, or .. in its path); "
         "rename it";
}

std::string checked(std::string path_there) {
  if (accepted_path(path_there)) return path_there;
  throw FileFailure(reason_against(path_there));
}

}  // namespace

FileReader FileReader::single(const std::string& path, const std::optional<std::string>& name) {
  FileReader reader;
  struct stat found {};
  if (::stat(path.c_str(), &found) != 0) throw unreadable(errno);
  if (S_ISFIFO(found.st_mode) || S_ISCHR(found.st_mode))
    throw FileFailure(std::string(kNoFile) + kPipeIt);
  refuse_others(found);
  reader.name_ = reader.path_ = path;
  reader.follow_ = true;
  auto& metadata = reader.metadata_;
  metadata.path = checked(name.value_or(base_name(path)));
  describe_content(found, metadata);
  reader.stored_ = stored_bytes(found);
  metadata.keep_times = metadata.resume = true;
  return reader;
}

FileReader FileReader::in_tree(const TreeEntry& entry) {
  FileReader reader;
  auto& metadata = reader.metadata_;
  metadata.path = checked(entry.path_there);
  const auto& found = entry.status;
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
    reader.stored_ = stored_bytes(found);
    reader.directory_ = entry.directory;
    reader.name_ = entry.name;
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

FileReader FileReader::way(const std::string& path_there) {
  FileReader reader;
  reader.path_ = path_there;
  auto& metadata = reader.metadata_;
  metadata.kind = FileKind::kDirectory;
  metadata.path = checked(path_there);
  metadata.mode = 0777;
  metadata.only_make = true;
  return reader;
}

void FileReader::change_mode(const ModeChanges& changes) {
  mode_changes_ = &changes;
  if (metadata_.kind != FileKind::kSymbolicLink)
    metadata_.mode = changes.apply(metadata_.mode, metadata_.kind == FileKind::kDirectory);
}

os::UniqueFd FileReader::opened(struct stat& found) const {
  const auto at = directory_ ? directory_->fd() : AT_FDCWD;
  if (at == -1) throw unreadable(errno);
  return open_regular(at, name_, follow_ ? 0 : O_NOFOLLOW, found);
}

void FileReader::check_opens() const {
  struct stat found {};
  if (stream_ < 0 && metadata_.kind == FileKind::kRegular) opened(found);
}

bool FileReader::open() {
  if (stream_ >= 0) return true;
  fd_ = opened(opened_);
  await_next_step(opened_, fd_.get());
  data_until_ = 0;
  const auto offered = metadata_;
  describe_content(opened_, metadata_);
  if (mode_changes_ != nullptr) metadata_.mode = mode_changes_->apply(metadata_.mode, false);
  if (unsized_) {
    metadata_.stream = true;
    metadata_.resume = false;
    metadata_.size = 0;
  }
  return metadata_.size == offered.size && metadata_.mode == offered.mode &&
         metadata_.stream == offered.stream && same_time(metadata_.modified, offered.modified);
}

// A file system that knows nothing of holes has none.
FileReader::Extent FileReader::next_extent(std::uint64_t at, std::uint64_t size) {
  constexpr std::uint64_t kLeast = std::uint64_t{64} << 10;  // shorter ones are sent as zeros
  if (at < data_until_) return {false, std::min(data_until_, size) - at};
  const auto data = ::lseek(fd(), static_cast<off_t>(at), SEEK_DATA);
  const auto to_the_end = data < 0 && errno == ENXIO;
  const auto hole_until = to_the_end ? size
                          : data < 0 ? at
                                     : std::min(static_cast<std::uint64_t>(data), size);
  const auto is_hole = hole_until - at >= kLeast;
  if (!is_hole) {
    const auto hole = data < 0 ? data : ::lseek(fd(), data, SEEK_HOLE);
    data_until_ = hole < 0 ? size : static_cast<std::uint64_t>(hole);
  }
  const auto next = is_hole ? hole_until : at;
  if (::lseek(fd(), static_cast<off_t>(next), SEEK_SET) < 0)
    throw FileFailure("reading failed: " + error_text(errno) + "; check its disk");
  return {is_hole, (is_hole ? hole_until : std::min(data_until_, size)) - at};
}

// The time of the last change of the inode counts only if nothing but the content can have changed
// it: a new name or mode does so too.
bool FileReader::is_as_opened() const {
  struct stat now {};
  if (::fstat(fd_.get(), &now) != 0) return false;
  const auto other_inode_change = now.st_nlink != opened_.st_nlink ||
                                  now.st_mode != opened_.st_mode || now.st_uid != opened_.st_uid ||
                                  now.st_gid != opened_.st_gid;
  return now.st_size == opened_.st_size && same_time(now.st_mtim, opened_.st_mtim) &&
         (other_inode_change || same_time(now.st_ctim, opened_.st_ctim));
}

void FileReader::check_whole() {
  if (metadata_.stream) return;
  if (!is_as_opened()) throw FileChanged();
  std::byte more{};
  if (metadata_.size != 0 || read_some({&more, 1}) == 0) return;
  unsized_ = is_as_opened();
  throw FileChanged();
}

bool FileReader::is_ready(std::chrono::nanoseconds wait) const {
  if (stream_ < 0) return true;
  const auto milliseconds = std::chrono::ceil<std::chrono::milliseconds>(wait).count();
  pollfd input{stream_, POLLIN, 0};
  return ::poll(&input, 1, static_cast<int>(milliseconds)) > 0;
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
    if (n == 0) {
      unsized_ = is_as_opened();
      throw FileChanged();
    }
    bytes = bytes.subspan(n);
  }
}

void FileReader::start_over() {
  if (::lseek(fd(), 0, SEEK_SET) != 0)
    throw FileFailure("reading failed: " + error_text(errno) + "; check its disk");
}

}  // namespace stp::files
