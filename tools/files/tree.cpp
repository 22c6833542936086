// SPDX-License-Identifier: BSD-3-Clause
#include "tools/files/tree.h"

#include <fcntl.h>
#include <fnmatch.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <istream>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <sstream>
#include <string_view>
#include <utility>
#include <vector>

#include "libst/os/unique_fd.h"
#include "tools/files/failure.h"
#include "tools/files/metadata.h"

namespace stp::files {
namespace {

struct CloseDirectory {
  void operator()(DIR* directory) const { ::closedir(directory); }
};

}  // namespace

SourceDirectory::SourceDirectory(Directory base, Pointer above, std::string name)
    : base_(std::move(base)),
      above_(std::move(above)),
      name_(std::move(name)),
      open_ones_(above_ ? above_->open_ones_ : std::make_shared<OpenOnes>()) {}

SourceDirectory::~SourceDirectory() {
  close();
}

SourceDirectory::Pointer SourceDirectory::open(Pointer above, std::string name) {
  // The constructor is private, so std::make_shared cannot call it.
  Pointer directory(new SourceDirectory(nullptr, std::move(above), std::move(name)));
  return directory->fd() < 0 ? nullptr : directory;
}

SourceDirectory::Pointer SourceDirectory::of(const Directory& directory) {
  Pointer root(new SourceDirectory(directory, nullptr, "."));
  return root->fd() < 0 ? nullptr : root;
}

int SourceDirectory::fd() {
  std::vector<SourceDirectory*> closed;
  auto* last = this;  // of those that are open
  for (; last != nullptr && !last->fd_; last = last->above_.get()) closed.push_back(last);
  if (last != nullptr) last->use();
  for (auto one = closed.rbegin(); one != closed.rend(); last = *one++)
    if (!(*one)->open_below(last != nullptr ? last->fd_.get() : (*one)->base())) return -1;
  return fd_.get();
}

void SourceDirectory::use() {
  open_ones_->splice(open_ones_->begin(), *open_ones_, place_);
}

bool SourceDirectory::open_below(int above) {
  // The parent was used last, and is not the one to close.
  if (open_ones_->size() >= kMostOpen) open_ones_->back()->close();
  os::UniqueFd opened(
      ::openat(above, name_.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  struct stat found {};
  if (!opened || ::fstat(opened.get(), &found) != 0) return false;
  if (!std::exchange(known_, true)) {
    device_ = found.st_dev;
    inode_ = found.st_ino;
  } else if (device_ != found.st_dev || inode_ != found.st_ino) {
    errno = ESTALE;
    return false;
  }
  fd_ = std::move(opened);
  place_ = open_ones_->insert(open_ones_->begin(), this);
  return true;
}

void SourceDirectory::close() {
  if (!fd_) return;
  fd_.reset();
  open_ones_->erase(place_);
}

int each_entry(int directory, const std::function<void(const dirent&)>& use) {
  // A new descriptor, because fdopendir() takes it over.
  os::UniqueFd fd(::openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  // It was opened when that was permitted.
  if (!fd && errno == EACCES) fd = os::UniqueFd(::fcntl(directory, F_DUPFD_CLOEXEC, 0));
  if (!fd) return errno;
  const std::unique_ptr<DIR, CloseDirectory> list(::fdopendir(fd.get()));
  if (!list) return errno;
  [[maybe_unused]] const auto taken = fd.release();
  ::rewinddir(list.get());
  for (;;) {
    errno = 0;
    const auto* const entry = ::readdir(list.get());
    if (entry == nullptr) return errno;
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") use(*entry);
  }
}

int names_in(int directory, std::vector<std::string>& names) {
  const auto error =
      each_entry(directory, [&](const dirent& entry) { names.emplace_back(entry.d_name); });
  std::sort(names.begin(), names.end());
  return error;
}

namespace {

bool matches(std::string pattern, const std::string& path, const std::string& name,
             bool is_directory) {
  if (pattern.ends_with('/')) {
    if (!is_directory) return false;
    pattern.pop_back();
  }
  if (pattern.find('/') == std::string::npos)
    return ::fnmatch(pattern.c_str(), name.c_str(), 0) == 0;
  if (pattern.starts_with('/')) pattern.erase(0, 1);
  return ::fnmatch(pattern.c_str(), path.c_str(), FNM_PATHNAME) == 0;
}

}  // namespace

std::vector<FilterRule> read_rules(std::istream& in, bool include) {
  std::vector<FilterRule> rules;
  for (std::string line; std::getline(in, line);) {
    if (line.ends_with('\r')) line.pop_back();
    if (line.empty() || line.starts_with('#') || line.starts_with(';')) continue;
    const auto marked = line.starts_with("+ ") || line.starts_with("- ");
    rules.push_back({marked ? line.front() == '+' : include, marked ? line.substr(2) : line});
  }
  return rules;
}

bool Filter::leaves_out(const std::string& path_there, bool is_directory) const {
  if (rules_.empty() || path_there == root_) return false;
  const auto path =
      root_.empty() ? path_there : path_there.substr(std::min(root_.size() + 1, path_there.size()));
  const auto name = path.substr(path.rfind('/') + 1);  // npos + 1 is 0
  const auto rule = std::find_if(rules_.begin(), rules_.end(), [&](const FilterRule& each) {
    return matches(each.pattern, path, name, is_directory);
  });
  return rule != rules_.end() && !rule->include;
}

namespace {

std::string joined(const std::string& above, const std::string& name) {
  return above.empty() || above.ends_with('/') ? above + name : above + '/' + name;
}

// "./a//b/" is "a/b", and "." is empty. nullopt: it leads out of the tree.
std::optional<std::string> plain_path(const std::string& path) {
  std::string plain;
  for (std::size_t begin = 0; begin <= path.size();) {
    const auto end = std::min(path.find('/', begin), path.size());
    const auto name = path.substr(begin, end - begin);
    begin = end + 1;
    if (name == "..") return std::nullopt;
    if (!name.empty() && name != ".") plain = joined(plain, name);
  }
  return plain;
}

// The directories on the way to listed paths.
class Ways {
 public:
  Ways(const std::string& root, const std::string& name) {
    auto directory = SourceDirectory::open(nullptr, root);
    error_ = errno;
    ways_[""] = {std::move(directory), "", root, name};
  }
  // The directory above the last name of a path; nullptr: see errno.
  const TreeEntry* above(const std::string& path) {
    const auto slash = path.rfind('/');
    if (slash == std::string::npos) return opened(ways_[""]);
    const auto way = path.substr(0, slash);
    if (const auto known = ways_.find(way); known != ways_.end()) return opened(known->second);
    const auto* const further_up = above(way);
    if (further_up == nullptr) return nullptr;
    const auto name = way.substr(way.rfind('/') + 1);  // npos + 1 is 0
    auto directory = SourceDirectory::open(further_up->directory, name);
    if (!directory) return nullptr;
    const auto added =
        ways_.emplace(way, TreeEntry{std::move(directory), "", joined(further_up->path, name),
                                     joined(further_up->path_there, name)});
    return &added.first->second;
  }
  // What is further down comes first.
  template <typename Use>
  void each(const Use& use) {
    for (auto way = ways_.rbegin(); way != ways_.rend(); ++way) use(way->first, way->second);
  }

 private:
  const TreeEntry* opened(const TreeEntry& entry) const {
    errno = error_;
    return entry.directory ? &entry : nullptr;
  }

  std::map<std::string, TreeEntry> ways_;
  int error_ = 0;  // of the root
};

bool is_below_one_of(const std::set<std::string>& paths, const std::string& path) {
  for (auto slash = path.find('/'); slash != std::string::npos; slash = path.find('/', slash + 1))
    if (paths.count(path.substr(0, slash)) != 0) return true;
  return false;
}

class Walk {
 public:
  // `below`: what directories hold is visited, too.
  Walk(const Filter& filter, const Visit& visit, const Failed& failed, bool below = true)
      : filter_(filter), visit_(visit), failed_(failed), below_(below) {}

  void go(TreeEntry entry) {
    const auto at = entry.at();
    if (at == -1 || ::fstatat(at, entry.name.c_str(), &entry.status, AT_SYMLINK_NOFOLLOW) != 0)
      return fail(entry, errno);
    const auto is_directory = S_ISDIR(entry.status.st_mode);
    if (filter_.leaves_out(entry.path_there, is_directory)) return;
    if (is_directory && below_)
      descend(entry);
    else
      visit_(entry);
  }

 private:
  void fail(const TreeEntry& entry, int error) { failed_(entry.path, unreadable(error).what()); }

  void descend(const TreeEntry& entry) {
    // Receivers refuse longer paths.
    if (entry.path_there.size() > kMaxPathLength) return fail(entry, ENAMETOOLONG);
    const auto here = SourceDirectory::open(entry.directory, entry.name);
    TreeEntry self{here, "", entry.path, entry.path_there};
    if (!here || ::fstat(here->fd(), &self.status) != 0) return fail(entry, errno);
    std::vector<std::string> names;
    const auto error = names_in(here->fd(), names);
    for (const auto& name : names)
      go({here, name, joined(entry.path, name), joined(entry.path_there, name)});
    if (error != 0) return fail(entry, error);
    // The root of "." has no name at the receiver.
    if (!entry.path_there.empty()) visit_(self);
  }

  const Filter& filter_;
  const Visit& visit_;
  const Failed& failed_;
  const bool below_;
};

// What is listed, without what leads out of the directory.
std::set<std::string> plain_paths(const std::string& root, const std::vector<std::string>& paths,
                                  const Failed& failed) {
  std::set<std::string> plain;
  for (const auto& path : paths) {
    if (auto inside = plain_path(path))
      plain.insert(std::move(*inside));
    else
      failed(joined(root, path), "leads out of the directory; list paths below it");
  }
  return plain;
}

// Goes to each of them, but to none that lies below another one.
void go_to_each(const std::set<std::string>& plain, const std::string& root,
                const std::string& name, Ways& ways, Walk& walk, const Failed& failed) {
  for (const auto& path : plain) {
    if (is_below_one_of(plain, path)) continue;
    const auto* const above = ways.above(path);
    if (above == nullptr) {
      failed(joined(root, path), unreadable(errno).what());
      continue;
    }
    const auto last = path.substr(path.rfind('/') + 1);  // npos + 1 is 0
    walk.go({above->directory, last, joined(root, path), joined(name, path)});
  }
}

}  // namespace

void walk_tree(const std::string& root, const std::string& name, const Filter& filter,
               const Visit& visit, const Failed& failed) {
  Walk(filter, visit, failed).go({nullptr, root, root, name});
}

void walk_listed(const std::string& root, const std::string& name,
                 const std::vector<std::string>& paths, const Filter& filter, const Visit& visit,
                 const Failed& failed) {
  const auto plain = plain_paths(root, paths, failed);
  if (plain.count("") != 0) return walk_tree(root, name, filter, visit, failed);
  Walk walk(filter, visit, failed);
  Ways ways(root, name);
  go_to_each(plain, root, name, ways, walk, failed);
  ways.each([&](const std::string& path, TreeEntry& way) {
    if (way.path_there.empty() || !way.directory) return;
    if (::fstat(way.directory->fd(), &way.status) != 0)
      return failed(joined(root, path), unreadable(errno).what());
    visit(way);
  });
}

void look_at_root(const std::string& root, const std::string& name, const Visit& visit,
                  const Failed& failed) {
  Walk({}, visit, failed, false).go({nullptr, root, root, name});
}

void look_at_listed(const std::string& root, const std::string& name,
                    const std::vector<std::string>& paths, const Filter& filter, const Visit& visit,
                    const Failed& failed) {
  const auto plain = plain_paths(root, paths, failed);
  if (plain.count("") != 0) return;
  Walk walk(filter, visit, failed, false);
  Ways ways(root, name);
  go_to_each(plain, root, name, ways, walk, failed);
}

std::vector<std::string> read_paths(std::istream& in) {
  const std::string text(std::istreambuf_iterator<char>(in), {});
  const auto end_of_path = text.find('\0') == std::string::npos ? '\n' : '\0';
  std::vector<std::string> paths;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line, end_of_path);) {
    const auto comment = end_of_path == '\n' && (line.starts_with('#') || line.starts_with(';'));
    if (!line.empty() && !comment) paths.push_back(std::move(line));
  }
  return paths;
}

}  // namespace stp::files
