// SPDX-License-Identifier: BSD-3-Clause
#include "tools/files/receiver.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <system_error>
#include <utility>
#include <vector>

#include "tools/files/metadata.h"
#include "tools/files/note.h"

namespace stp::files {
namespace {

// Derived from a digest of the name: the same for the same name, and of limited length.
std::string part_name(const std::string& name) {
  ContentDigest digest;
  digest.add(std::as_bytes(std::span(name)));
  std::string text(kTemporaryPrefix);
  for (const auto byte : digest.value()) {
    constexpr char kHex[] = "0123456789abcdef";
    text += {kHex[byte >> 4], kHex[byte & 15]};
  }
  return text + ".part";
}

// The name of a partial file can be guessed, and others may be able to write to the directory. So
// accepts only a regular file of this user without other links: a FIFO would block the first write,
// a link would lead to another file, and another user's file must not be changed.
bool is_own(const struct stat& part) {
  return S_ISREG(part.st_mode) && part.st_nlink == 1 && part.st_uid == ::geteuid();
}

int write_all(int fd, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const auto n = ::write(fd, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return -errno;
    bytes = bytes.subspan(static_cast<std::size_t>(n));
  }
  return 0;
}

}  // namespace

int FileWriter::open(Directory directory, const std::string& name, const Metadata& metadata) {
  discard();
  name_ = name;
  metadata_ = metadata;
  have_ = written_ = 0;
  if (const auto error = refuse_directory(directory->get(), name_); error != 0) return error;
  directory_ = std::move(directory);
  auto error = metadata_.resume ? find_complete() : 0;
  if (error == 0 && !complete_) error = metadata_.dry ? -ENOENT : open_temporary();
  if (error == 0 && !metadata_.stream)
    error = refuse_size(directory_->get(), metadata_.size - have_);
  if (error != 0) discard();
  return error;
}

int FileWriter::open_sink(int fd, const Metadata& metadata) {
  discard();
  metadata_ = metadata;
  have_ = written_ = 0;
  part_.reset(::fcntl(fd, F_DUPFD_CLOEXEC, 0));
  is_sink_ = static_cast<bool>(part_);
  return is_sink_ ? 0 : -errno;
}

// A missing or unreadable file is no error: it is then not complete.
int FileWriter::find_complete() {
  os::UniqueFd file(
      ::openat(directory_->get(), name_.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK));
  struct stat found {};
  if (!file) return 0;
  if (::fstat(file.get(), &found) != 0) return -errno;
  const auto same = S_ISREG(found.st_mode) &&
                    static_cast<std::uint64_t>(found.st_size) == metadata_.size &&
                    (metadata_.checksum || has_time(found, metadata_));
  if (!same) return 0;
  complete_ = std::move(file);
  have_ = metadata_.size;
  return 0;
}

int FileWriter::open_temporary() {
  // Another transfer renames or removes its part when it ends. Then the next one is a new file.
  constexpr int kTries = 8;
  temporary_ = metadata_.resume ? part_name(name_) : temporary_name();
  auto error = open_part();
  for (int i = 1; error == -ESTALE && i < kTries; ++i) error = open_part();
  if (error == 0) return 0;
  part_.reset();
  temporary_.clear();  // not ours to remove
  return error == -ESTALE ? -EBUSY : error;
}

// -ESTALE: the file that was opened has lost its name before it could be locked.
int FileWriter::open_part() {
  const auto at = directory_->get();
  const auto flags =
      O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | (metadata_.resume ? 0 : O_EXCL);
  part_.reset(::openat(at, temporary_.c_str(), flags, 0600));
  if (!part_) {
    // A receiver that was killed may have left it complete and with its final permissions.
    const auto error = errno;
    const auto mended = error == EACCES && grant_to_owner(at, temporary_, S_IRUSR | S_IWUSR);
    if (mended) part_.reset(::openat(at, temporary_.c_str(), flags, 0600));
    if (!part_) return -error;
  }
  if (::flock(part_.get(), LOCK_EX | LOCK_NB) != 0) return errno == EWOULDBLOCK ? -EBUSY : -errno;
  struct stat part {
  }, named{};
  if (::fstat(part_.get(), &part) != 0) return -errno;
  const auto found = ::fstatat(at, temporary_.c_str(), &named, AT_SYMLINK_NOFOLLOW) == 0;
  if (!found || named.st_dev != part.st_dev || named.st_ino != part.st_ino) return -ESTALE;
  if (!is_own(part)) return -EEXIST;
  have_ = metadata_.stream ? 0 : std::min(static_cast<std::uint64_t>(part.st_size), metadata_.size);
  return 0;
}

int FileWriter::read_back(ContentDigest& digest, const WorkFor& whom) const {
  constexpr std::size_t kPiece = std::size_t{1} << 20;
  std::vector<std::byte> bytes(static_cast<std::size_t>(std::min<std::uint64_t>(kPiece, have_)));
  const auto fd = complete_ ? complete_.get() : part_.get();
  Turns::Work work(whom);
  for (std::uint64_t at = 0; at < have_;) {
    if (!work.go_on()) return -ECANCELED;
    const auto want = static_cast<std::size_t>(std::min<std::uint64_t>(bytes.size(), have_ - at));
    const auto n = ::pread(fd, bytes.data(), want, static_cast<off_t>(at));
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
  if (is_sink_) return 0;
  if (complete_ && at == metadata_.size) return 0;
  complete_.reset();
  if (!part_) {
    if (const auto error = open_temporary(); error != 0) return error;
  }
  have_ = at;
  const auto from = static_cast<off_t>(at);
  return ::ftruncate(part_.get(), from) == 0 && ::lseek(part_.get(), from, SEEK_SET) == from
             ? 0
             : -errno;
}

int FileWriter::append(std::span<const std::byte> bytes) {
  const auto error = write_all(part_.get(), bytes);
  if (error == 0) written_ += bytes.size();
  return error;
}

int FileWriter::skip(std::uint64_t length, const Turns::Attend& attend) {
  if (!is_sink_) {
    const auto end = static_cast<off_t>(written_ + length);
    if (::ftruncate(part_.get(), end) != 0 || ::lseek(part_.get(), end, SEEK_SET) != end)
      return -errno;
    written_ += length;
    return 0;
  }
  const std::vector<std::byte> zeros(std::min<std::uint64_t>(length, kChunk));
  int error = 0;
  for (; length != 0 && error == 0; length -= std::min<std::uint64_t>(length, zeros.size()))
    error = attend() ? append(std::span(zeros).first(std::min<std::uint64_t>(length, zeros.size())))
                     : -ECANCELED;
  return error;
}

int FileWriter::finish(WholeFile& file) {
  if (is_sink_) {
    file.bytes = written_;
    discard();
    return 0;
  }
  const auto fd = complete_ ? complete_.get() : part_.get();
  const auto error = apply(fd, metadata_);
  if (error == 0) {
    file = {directory_, complete_ ? std::string() : std::exchange(temporary_, {}),
            name_,      std::move(complete_ ? complete_ : part_),
            written_,   metadata_.resume};
  }
  discard();
  return error;
}

void FileWriter::discard() {
  // Keeps a partial file for a transfer that can be resumed.
  if (!temporary_.empty() && !(metadata_.resume && (written_ > 0 || have_ > 0)))
    ::unlinkat(directory_->get(), temporary_.c_str(), 0);
  temporary_.clear();
  is_sink_ = false;
  part_.reset();
  complete_.reset();
  directory_.reset();
}

int write_whole(Directory directory, const std::string& name, const Metadata& metadata,
                std::span<const std::byte> content, WholeFile& file) {
  auto temporary = temporary_name();
  // The kernel applies the umask to the mode.
  os::UniqueFd part(::openat(directory->get(), temporary.c_str(),
                             O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, metadata.mode));
  if (!part) return -errno;
  auto error = write_all(part.get(), content);
  if (error == 0) error = apply_times(part.get(), metadata);
  if (error != 0) {
    ::unlinkat(directory->get(), temporary.c_str(), 0);
    return error;
  }
  file = {std::move(directory), std::move(temporary), name, std::move(part), content.size(), false};
  return 0;
}

bool has_part(int directory, const std::string& name) {
  struct stat found {};
  return ::fstatat(directory, part_name(name).c_str(), &found, AT_SYMLINK_NOFOLLOW) == 0 &&
         found.st_size > 0;
}

Note result_of(int error) {
  Note note;
  if (error == 0) return note;
  if (error == -ECANCELED) return because(Reason::kStopped);
  note.reason = error == -ENOSPC || error == -EDQUOT ? Reason::kNoSpace : Reason::kWrite;
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
    bar_.emplace(progress_, metadata_.path,
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

Helper::~Helper() {
  if (!thread_.joinable()) return;
  {
    const Lock lock(mutex_);
    end_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void Helper::share(const std::function<void()>& work) {
  try {
    if (!thread_.joinable()) thread_ = std::thread([this] { run(); });
  } catch (const std::system_error&) {  // no thread is to be had
    return work();
  }
  {
    const Lock lock(mutex_);
    offered_ = &work;
  }
  changed_.notify_all();
  work();
  Lock lock(mutex_);
  offered_ = nullptr;
  while (busy_) lock.wait(changed_);
}

void Helper::run() {
  Lock lock(mutex_);
  for (;;) {
    while (offered_ == nullptr && !end_) lock.wait(changed_);
    if (end_) return;
    const auto& work = *std::exchange(offered_, nullptr);
    busy_ = true;
    lock.unlock();
    work();
    lock.lock();
    busy_ = false;
    changed_.notify_all();
  }
}

namespace {

void write_one(SmallFile& file) {
  if (file.result.reason != Reason::kNone) return;
  const auto& content = file.packed.content;
  if (digest_of(content) != file.packed.digest)
    file.result = because(Reason::kDigest);
  else
    file.result =
        result_of(write_whole(file.directory, *file.name, *file.metadata, content, file.file));
}

}  // namespace

// In one directory two threads would wait for each other, so each takes all files of a directory.
void SmallFiles::write(std::span<SmallFile> files) {
  std::vector<std::span<SmallFile>> by_directory;
  for (std::size_t begin = 0, end = 0; begin < files.size(); begin = end) {
    while (end < files.size() && files[end].directory == files[begin].directory) ++end;
    by_directory.push_back(files.subspan(begin, end - begin));
  }
  std::atomic<std::size_t> next{0};
  const auto work = [&] {
    for (auto i = next++; i < by_directory.size(); i = next++)
      for (auto& file : by_directory[i]) write_one(file);
  };
  if (by_directory.size() > 1)
    helper_.share(work);
  else
    work();
}

}  // namespace stp::files
