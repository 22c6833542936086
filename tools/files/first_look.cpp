// SPDX-License-Identifier: BSD-3-Clause
#include "tools/files/first_look.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "tools/files/failure.h"
#include "tools/files/file_reader.h"
#include "tools/files/names_there.h"
#include "tools/files/tree.h"

namespace stp::files {
namespace {

void check_entry(const TreeEntry& entry) {
  if (S_ISDIR(entry.status.st_mode) && !SourceDirectory::open(entry.directory, entry.name))
    throw unreadable(errno);
  // The root of "." has no name at the receiver.
  if (!entry.path_there.empty()) FileReader::in_tree(entry).check_opens();
}

void check_root(const TreeEntry& entry, bool has_list) {
  check_entry(entry);
  if (has_list && !S_ISDIR(entry.status.st_mode))
    throw FileFailure("is no directory; --files-from lists what is below one");
}

// Throws FileFailure if it is known that the argument cannot be sent.
void check_argument(const Sending& sending, const std::string& path) {
  const auto name = name_there(sending, path);
  if (path == "-") return FileReader::stream(STDIN_FILENO, name).check_opens();
  if (!sending.trees) return FileReader::single(path, name).check_opens();
  look_at_root(
      path, name, [&](const TreeEntry& entry) { check_root(entry, sending.listed.has_value()); },
      [](const std::string&, const std::string& why) { throw FileFailure(why); });
}

void check_listed(const Sending& sending, const std::string& root, const Failed& failed) {
  const auto name = name_there(sending, root);
  const auto visit = [&](const TreeEntry& entry) {
    try {
      check_entry(entry);
    } catch (const FileFailure& failure) {
      failed(entry.path, failure.what());
    }
  };
  look_at_listed(root, name, *sending.listed, Filter(sending.rules, name), visit, failed);
}

}  // namespace

std::vector<std::string> first_look(const Sending& sending, const Failed& failed) {
  std::vector<std::string> left;
  for (const auto& path : sending.paths) {
    try {
      check_argument(sending, path);
      left.push_back(path);
    } catch (const FileFailure& failure) {
      failed(path, failure.what());
    }
  }
  if (sending.listed && !left.empty()) check_listed(sending, left.front(), failed);
  return left;
}

}  // namespace stp::files
