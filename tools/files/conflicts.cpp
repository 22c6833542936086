// SPDX-License-Identifier: BSD-3-Clause
#include "tools/files/conflicts.h"

#include <algorithm>

#include "stp/base/printable.h"
#include "tools/files/name.h"
#include "tools/files/names_there.h"

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
      return "--delete with " + printable(path) +
             " would delete what the other arguments send; send it alone";
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
    return "--into " + printable(sending.into) +
           ": no receiver has such a directory; write a path below its directory, without slashes "
           "at its ends and without ..";
  if (sending.verbose && quiet) return "--verbose and --quiet contradict each other; leave one out";
  return {};
}

}  // namespace stp::files
