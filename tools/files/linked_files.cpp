// SPDX-License-Identifier: BSD-3-Clause
#include "tools/files/linked_files.h"

#include <fcntl.h>
#include <sys/stat.h>

namespace stp::files {
namespace {

// What the entry of a file takes beside its path.
constexpr std::size_t kOfEntry = 128;

}  // namespace

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

}  // namespace stp::files
