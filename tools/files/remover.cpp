// SPDX-License-Identifier: BSD-3-Clause
#include "tools/files/remover.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <memory>

#include "tools/files/metadata.h"
#include "tools/files/tree.h"

namespace stp::files {
namespace {

// Deeper than any tree that a sender can make.
constexpr unsigned kMostDepth = kMaxPathLength;

constexpr std::byte kZero{0}, kMore{0}, kLastOnes{1};

void add_text(std::vector<std::byte>& message, std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text));
  message.insert(message.end(), bytes.begin(), bytes.end());
  message.push_back(kZero);
}

bool is_directory_at(int directory, const dirent& entry) {
  if (entry.d_type != DT_UNKNOWN) return entry.d_type == DT_DIR;
  struct stat found {};
  return ::fstatat(directory, entry.d_name, &found, AT_SYMLINK_NOFOLLOW) == 0 &&
         S_ISDIR(found.st_mode);
}

void note_result(Removal& removal, int error) {
  if (error == 0)
    ++removal.removed;
  else if (removal.error == 0)
    removal.error = error;
}

// Opens what is to be emptied. A directory of this user becomes writable for it.
SourceDirectory::Pointer open_to_empty(const SourceDirectory::Pointer& above,
                                       const std::string& name) {
  auto opened = SourceDirectory::open(above, name);
  if (!opened && errno == EACCES && grant_to_owner(above->fd(), name, S_IRWXU))
    opened = SourceDirectory::open(above, name);
  if (opened && ::faccessat(opened->fd(), ".", W_OK | X_OK, AT_EACCESS) != 0)
    grant_to_owner(above->fd(), name, S_IRWXU);
  return opened;
}

void remove_below(const SourceDirectory::Pointer& above, const std::string& name, unsigned depth,
                  const std::atomic<bool>& stop, Removal& removal) {
  if (stop) return note_result(removal, -ECANCELED);
  if (::unlinkat(above->fd(), name.c_str(), 0) == 0) return note_result(removal, 0);
  if (errno != EISDIR) return note_result(removal, -errno);
  if (depth == kMostDepth) return note_result(removal, -ENAMETOOLONG);
  auto directory = open_to_empty(above, name);
  if (!directory) return note_result(removal, -errno);
  std::vector<std::string> names;
  if (const auto error = names_in(directory->fd(), names); error != 0) note_result(removal, -error);
  for (const auto& each : names) remove_below(directory, each, depth + 1, stop, removal);
  directory.reset();
  note_result(removal, ::unlinkat(above->fd(), name.c_str(), AT_REMOVEDIR) == 0 ? 0 : -errno);
}

}  // namespace

void list_names(int directory, const std::function<void(std::span<const std::byte>)>& say) {
  std::vector<std::byte> message{kMore};
  each_entry(directory, [&](const dirent& entry) {
    const std::string_view name = entry.d_name;
    if (name.starts_with(kTemporaryPrefix)) return;
    if (message.size() + name.size() > kMostOfNames) {
      say(message);
      message = {kMore};
    }
    message.push_back(static_cast<std::byte>(is_directory_at(directory, entry) ? 'd' : '-'));
    add_text(message, name);
  });
  message.front() = kLastOnes;
  say(message);
}

std::optional<bool> take_names(std::span<const std::byte> message, std::vector<NameThere>& names,
                               std::size_t& room) {
  if (message.empty() || (message.size() == 1 && message.front() != kLastOnes) ||
      (message.size() > 1 && message.back() != kZero))
    return std::nullopt;
  const std::string_view text(reinterpret_cast<const char*>(message.data()), message.size());
  for (std::size_t at = 1; at < text.size();) {
    const auto end = text.find('\0', at + 1);
    if (end == std::string_view::npos || end == at + 1) return std::nullopt;
    const auto name = text.substr(at + 1, end - at - 1);
    const auto size = sizeof(NameThere) + name.size();
    if (name.find('/') != std::string_view::npos || size > room) return std::nullopt;
    room -= size;
    names.push_back({text[at] == 'd', std::string(name)});
    at = end + 1;
  }
  return message.front() == kLastOnes;
}

bool NamesToRemove::add(std::string_view name) {
  if (name.size() + 1 > kMostBytes - text_.size()) return false;
  text_ += name;
  text_ += '\0';
  return true;
}

void NamesToRemove::each(const std::function<void(std::string_view)>& visit) const {
  for (std::string_view rest = text_; !rest.empty();) {
    const auto end = rest.find('\0');
    visit(rest.substr(0, end));
    rest.remove_prefix(end + 1);
  }
}

std::vector<std::byte> begin_removal(std::string_view path) {
  std::vector<std::byte> message;
  add_text(message, path);
  return message;
}

void add_name(std::vector<std::byte>& message, std::string_view name) {
  add_text(message, name);
}

std::vector<std::string> take_removal(std::span<const std::byte> message) {
  std::vector<std::string> texts;
  if (message.empty() || message.back() != kZero) return texts;
  const std::string_view text(reinterpret_cast<const char*>(message.data()), message.size());
  for (std::size_t at = 0; at < text.size();) {
    const auto end = text.find('\0', at);
    texts.emplace_back(text.substr(at, end - at));
    at = end + 1;
  }
  return texts;
}

void remove_all(const Directory& directory, const std::string& name, const std::atomic<bool>& stop,
                Removal& removal) {
  const auto above = SourceDirectory::of(directory);
  if (!above) return note_result(removal, -errno);
  remove_below(above, name, 0, stop, removal);
}

}  // namespace stp::files
