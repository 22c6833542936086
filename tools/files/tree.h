// SPDX-License-Identifier: BSD-3-Clause
// A tree that is sent: its directories, the patterns that choose what of it is sent, and the walk
// through it.
#pragma once

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/types.h>

#include <functional>
#include <iosfwd>
#include <list>
#include <memory>
#include <string>
#include <vector>

#include "libst/os/unique_fd.h"
#include "tools/files/directory.h"

namespace stp::files {

// A directory of a tree that is sent or removed. It is opened in its open parent directory, never
// along a path, and no symbolic link is followed. Of all directories of a tree only a few are open
// at once: the others are opened again when they are used, and are then still the same or an error.
class SourceDirectory {
 public:
  using Pointer = std::shared_ptr<SourceDirectory>;
  // Open ones of a tree, whatever its breadth and depth.
  static constexpr std::size_t kMostOpen = 16;

  // `above`: nullptr for the root of a tree. Returns nullptr if it cannot be opened; see errno.
  static Pointer open(Pointer above, std::string name);
  // The root of a tree is an open directory.
  static Pointer of(const Directory& directory);
  ~SourceDirectory();
  SourceDirectory(const SourceDirectory&) = delete;
  SourceDirectory& operator=(const SourceDirectory&) = delete;

  // A descriptor that is good until another directory of the tree is used. -1: see errno; ESTALE
  // says that another directory has its name.
  int fd();

 private:
  using OpenOnes = std::list<SourceDirectory*>;  // the one that was used last comes first

  SourceDirectory(Directory base, Pointer above, std::string name);
  [[nodiscard]] int base() const { return base_ ? base_->get() : AT_FDCWD; }
  void use();
  bool open_below(int above);
  void close();

  const Directory base_;  // of the root; nullptr: the current one
  const Pointer above_;
  const std::string name_;
  const std::shared_ptr<OpenOnes> open_ones_;  // of the tree
  OpenOnes::iterator place_;                   // while it is open
  os::UniqueFd fd_;
  bool known_ = false;  // the following are
  dev_t device_ = 0;
  ino_t inode_ = 0;
};

// Calls `use` for each name in an open directory but "." and "..". Gives 0 or a positive errno.
int each_entry(int directory, const std::function<void(const dirent&)>& use);
// The same names, sorted.
int names_in(int directory, std::vector<std::string>& names);

struct FilterRule {
  bool include = false;  // what matches is sent; otherwise it is not
  std::string pattern;
};

// Rules of a file, one a line: "- PATTERN", "+ PATTERN", or PATTERN alone, which is `include`.
// Lines that are empty or begin with # or ; are comments.
std::vector<FilterRule> read_rules(std::istream& in, bool include);

// What of a tree is sent, by patterns as those of a shell.
class Filter {
 public:
  Filter() = default;
  // `root`: the prefix of the paths at the receiver. Patterns do not contain it.
  Filter(std::vector<FilterRule> rules, std::string root)
      : rules_(std::move(rules)), root_(std::move(root)) {}
  // `path`: below the receiver's directory. The first rule that matches decides; without one the
  // path is sent. A pattern without a slash matches a name at any depth. A pattern with a slash
  // matches a whole path below the root. A pattern that ends with a slash matches only directories.
  // The root itself is never left out.
  [[nodiscard]] bool leaves_out(const std::string& path_there, bool is_directory) const;

 private:
  std::vector<FilterRule> rules_;
  std::string root_;
};

// Walks a directory in an order that suits the receiver: the content of a directory comes before
// the directory itself, so its permissions and time are then final.
//
// The walk looks up each name in its open parent directory, never along a path, and follows no
// symbolic link. So a user who replaces a directory by a link meanwhile
// cannot lead the walk out of the tree. If `root` itself is a link, the caller decides.
struct TreeEntry {
  SourceDirectory::Pointer directory;  // where `name` is; nullptr: the current one
  std::string name;                    // "": the directory itself
  std::string path;                    // for messages
  std::string path_there;              // below the receiver's directory
  struct stat status {};               // as it was found

  // -1: it is not there any more; see errno.
  [[nodiscard]] int at() const { return directory ? directory->fd() : AT_FDCWD; }
};

using Visit = std::function<void(const TreeEntry&)>;
// Gets a path and the reason why it cannot be sent.
using Failed = std::function<void(const std::string&, const std::string&)>;

// Calls `visit` for each item that `filter` does not leave out. `path_there` begins with `name`, or
// has no prefix if that is empty. Calls `failed` for each item that cannot be read.
void walk_tree(const std::string& root, const std::string& name, const Filter& filter,
               const Visit& visit, const Failed& failed);

// The same for a part of the tree: `paths` below the root, directories with all that they hold, and
// the directories on the way. Nothing is visited twice.
void walk_listed(const std::string& root, const std::string& name,
                 const std::vector<std::string>& paths, const Filter& filter, const Visit& visit,
                 const Failed& failed);

// Visits only the root, whatever it holds.
void look_at_root(const std::string& root, const std::string& name, const Visit& visit,
                  const Failed& failed);
// Visits only what is listed below the root, whatever that holds.
void look_at_listed(const std::string& root, const std::string& name,
                    const std::vector<std::string>& paths, const Filter& filter, const Visit& visit,
                    const Failed& failed);

// The paths in a list: one a line, or, where there are zeros, one before each zero. Lines that
// begin with # or ; are comments.
std::vector<std::string> read_paths(std::istream& in);

}  // namespace stp::files
