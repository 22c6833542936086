// SPDX-License-Identifier: BSD-3-Clause
#include "tools/files/send_all.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <map>
#include <stdexcept>
#include <system_error>

#include "tools/files/failure.h"
#include "tools/files/file_reader.h"
#include "tools/files/metadata.h"
#include "tools/files/tree.h"

namespace stp::files {
namespace {

std::string without_trees(const Sending& sending, const std::vector<std::string>& filters) {
  const auto useless = sending.hard_links ? std::string("--hard-links")
                       : sending.remove   ? "--delete"
                       : !filters.empty() ? filters.front()
                                          : "";
  if (sending.trees || useless.empty()) return {};
  return useless + " is for directories: it needs -r (or --files-from)";
}

std::string of_filters(const std::vector<std::string>& filters) {
  if (filters.empty() || filters.back() != "--include") return {};
  return "an --include without a later --exclude has no effect: it keeps what that would skip; "
         "write --exclude behind it";
}

std::string of_name(const Sending& sending) {
  if (!sending.name) return {};
  if (sending.name->empty()) return "--name is empty; name the file at the receiver";
  if (!accepted_path(*sending.name))
    return "--name " + *sending.name +
           ": no receiver has such a file; write a path below its directory, of names of at most " +
           std::to_string(kMaxNameLength) + " bytes, without slashes at its ends and without ..";
  if (sending.paths.size() == 1 || has_stream(sending)) return {};
  return "--name is for one FILE, and here are " + std::to_string(sending.paths.size()) +
         "; send them one by one";
}

std::string of_stream(const Sending& sending) {
  if (!has_stream(sending)) return {};
  if (sending.dry) return "--dry-run says nothing of standard input; name files";
  const auto is_stream = [](const std::string& path) { return path == "-"; };
  if (!std::all_of(sending.paths.begin(), sending.paths.end(), is_stream)) return {};
  if (sending.trees) return "--recursive is for directories, and standard input is none";
  if (sending.checksum)
    return "--checksum has no effect on standard input, which is always sent; leave it out";
  return {};
}

std::string of_deletion(const Sending& sending) {
  if (!sending.remove) return {};
  if (sending.listed) return "--delete is for whole directories: it takes no --files-from";
  if (sending.paths.size() == 1) return {};
  for (const auto& path : sending.paths)
    if (name_there(sending, path) == sending.into)
      return "--delete with " + path + " would delete what the other arguments send; send it alone";
  return {};
}

}  // namespace

std::string conflict_of(const Sending& sending, const std::vector<std::string>& filters,
                        bool quiet) {
  for (const auto& found : {without_trees(sending, filters), of_filters(filters), of_name(sending),
                            of_stream(sending), of_deletion(sending)})
    if (!found.empty()) return found;
  if (sending.listed && (sending.paths.size() != 1 || has_stream(sending)))
    return "--files-from is for one directory; name that as the only FILE";
  if (!sending.into.empty() && !accepted_path(sending.into))
    return "--into " + sending.into +
           ": no receiver has such a directory; write a path below its directory, without slashes "
           "at its ends and without ..";
  if (sending.verbose && quiet) return "--verbose and --quiet contradict each other; leave one out";
  return {};
}

namespace {

// Without --into.
std::string own_name(const Sending& sending, const std::string& path) {
  if (path == "-") return sending.name.value_or("stdin");
  return sending.name && !has_stream(sending) ? *sending.name : base_name(path);
}

// The first names that the argument gets. A directory that cannot be read has none; the walk tells.
std::vector<std::string> first_names(const Sending& sending, const std::string& path) {
  const auto name = own_name(sending, path);
  if (!name.empty() || !sending.trees) return {name};
  std::vector<std::string> names;
  const Filter filter(sending.rules, "");
  std::error_code error;
  for (std::filesystem::directory_iterator entry(path, error), end; !error && entry != end;
       entry.increment(error)) {
    auto below = entry->path().filename().string();
    std::error_code unknown;
    const auto is_directory =
        entry->symlink_status(unknown).type() == std::filesystem::file_type::directory;
    if (!filter.leaves_out(below, is_directory)) names.push_back(std::move(below));
  }
  return names;
}

std::string title(const std::string& path) {
  return path == "-" ? "standard input" : path;
}

}  // namespace

bool has_stream(const Sending& sending) {
  return std::find(sending.paths.begin(), sending.paths.end(), "-") != sending.paths.end();
}

std::string name_there(const Sending& sending, const std::string& path) {
  const auto name = own_name(sending, path);
  if (sending.into.empty() || name.empty()) return sending.into + name;
  return sending.into + "/" + name;
}

bool overlap(const std::vector<std::string>& paths) {
  std::vector<std::string> places;
  for (const auto& path : paths) {
    std::error_code unknown;  // the walk tells
    const auto place = std::filesystem::canonical(path, unknown).string();
    if (path != "-" && !unknown) places.push_back(place + "/");
  }
  // What lies below a place comes next to it.
  std::sort(places.begin(), places.end());
  const auto is_below = [](const std::string& above, const std::string& place) {
    return place.starts_with(above);
  };
  return std::adjacent_find(places.begin(), places.end(), is_below) != places.end();
}

void check_names(const Sending& sending) {
  if (sending.paths.size() < 2) return;
  std::map<std::string, const std::string*> from;
  for (const auto& path : sending.paths) {
    for (const auto& name : first_names(sending, path)) {
      const auto [place, is_new] = from.emplace(name, &path);
      if (!is_new)
        throw std::runtime_error(title(*place->second) + " and " + title(path) +
                                 " would both arrive as " + name +
                                 "; send one of them by itself, under another name (--name)");
    }
  }
}

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
