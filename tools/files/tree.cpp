// SPDX-License-Identifier: BSD-3-Clause
#include "tools/files/tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <vector>

#include "libst/os/unique_fd.h"
#include "tools/files/failure.h"
#include "tools/files/name.h"

namespace stp::files {
namespace {

using Visit = std::function<void(const TreeEntry&)>;
using Failed = std::function<void(const std::string&, const std::string&)>;

struct CloseDirectory {
  void operator()(DIR* directory) const { ::closedir(directory); }
};

std::string joined(const std::string& above, const std::string& name) {
  return above.empty() || above.ends_with('/') ? above + name : above + '/' + name;
}

// Returns 0 or a positive errno.
int names_in(int directory, std::vector<std::string>& names) {
  // A new descriptor, because fdopendir() takes it over.
  service::UniqueFd fd(::openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd) return errno;
  const std::unique_ptr<DIR, CloseDirectory> list(::fdopendir(fd.get()));
  if (!list) return errno;
  [[maybe_unused]] const auto taken = fd.release();
  for (;;) {
    errno = 0;
    const auto* const entry = ::readdir(list.get());
    if (entry == nullptr) break;
    std::string name = entry->d_name;
    if (name != "." && name != "..") names.push_back(std::move(name));
  }
  const auto error = errno;
  std::sort(names.begin(), names.end());
  return error;
}

class Walk {
 public:
  Walk(const Exclude& exclude, const Visit& visit, const Failed& failed)
      : exclude_(exclude), visit_(visit), failed_(failed) {}

  void go(TreeEntry entry) {
    if (::fstatat(entry.at(), entry.name.c_str(), &entry.status, AT_SYMLINK_NOFOLLOW) != 0)
      return fail(entry, errno);
    const auto is_directory = S_ISDIR(entry.status.st_mode);
    if (exclude_.matches(entry.path_there, is_directory)) return;
    if (is_directory)
      descend(entry);
    else
      visit_(entry);
  }

 private:
  void fail(const TreeEntry& entry, int error) {
    failed_(entry.path, "cannot read it: " + error_text(error));
  }

  void descend(const TreeEntry& entry) {
    // Receivers refuse longer paths.
    if (entry.path_there.size() > kMaxPathLength) return fail(entry, ENAMETOOLONG);
    service::UniqueFd opened(
        ::openat(entry.at(), entry.name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    TreeEntry self{nullptr, "", entry.path, entry.path_there};
    if (!opened || ::fstat(opened.get(), &self.status) != 0) return fail(entry, errno);
    self.directory = std::make_shared<const service::UniqueFd>(std::move(opened));
    const auto& here = self.directory;
    std::vector<std::string> names;
    const auto error = names_in(here->get(), names);
    for (const auto& name : names)
      go({here, name, joined(entry.path, name), joined(entry.path_there, name)});
    if (error != 0) return fail(entry, error);
    // The root of "." has no name at the receiver.
    if (!entry.path_there.empty()) visit_(self);
  }

  const Exclude& exclude_;
  const Visit& visit_;
  const Failed& failed_;
};

}  // namespace

bool Exclude::matches(const std::string& path_there, bool is_directory) const {
  if (patterns_.empty() || path_there == root_) return false;
  const auto below =
      root_.empty() ? path_there : path_there.substr(std::min(root_.size() + 1, path_there.size()));
  const auto name = below.substr(below.rfind('/') + 1);  // npos + 1 is 0
  return std::any_of(patterns_.begin(), patterns_.end(), [&](std::string pattern) {
    if (pattern.ends_with('/')) {
      if (!is_directory) return false;
      pattern.pop_back();
    }
    if (pattern.find('/') == std::string::npos)
      return ::fnmatch(pattern.c_str(), name.c_str(), 0) == 0;
    if (pattern.starts_with('/')) pattern.erase(0, 1);
    return ::fnmatch(pattern.c_str(), below.c_str(), FNM_PATHNAME) == 0;
  });
}

void walk_tree(const std::string& root, const Exclude& exclude, const Visit& visit,
               const Failed& failed) {
  Walk(exclude, visit, failed).go({nullptr, root, root, base_name(root)});
}

}  // namespace stp::files
