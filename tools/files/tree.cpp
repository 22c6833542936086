// SPDX-License-Identifier: BSD-3-Clause
#include "tools/files/tree.h"

#include <fts.h>

#include <cstring>
#include <memory>
#include <new>

#include "tools/files/failure.h"
#include "tools/files/name.h"

namespace stp::files {
namespace {

struct CloseTree {
  void operator()(FTS* tree) const { ::fts_close(tree); }
};
using Tree = std::unique_ptr<FTS, CloseTree>;

int by_name(const FTSENT** a, const FTSENT** b) {
  return std::strcmp((*a)->fts_name, (*b)->fts_name);
}

Tree open_tree(std::string root) {
  char* paths[] = {root.data(), nullptr};
  Tree tree(::fts_open(paths, FTS_PHYSICAL | FTS_NOCHDIR, by_name));
  if (!tree) throw std::bad_alloc();
  return tree;
}

// What stands below `root` in `path`, which begins with it.
std::string below(const std::string& root, std::string_view path) {
  path.remove_prefix(root.size());
  while (path.starts_with('/')) path.remove_prefix(1);
  auto const top = base_name(root);
  if (top.empty() || path.empty()) return top + std::string(path);
  return top + '/' + std::string(path);
}

}  // namespace

void walk_tree(const std::string& root,
               const std::function<void(const std::string&, const std::string&)>& visit,
               const std::function<void(const std::string&, const std::string&)>& failed) {
  auto const tree = open_tree(root);
  while (auto const* const entry = ::fts_read(tree.get())) {
    std::string const path = entry->fts_path;
    switch (entry->fts_info) {
      case FTS_D:
        break;  // comes again as FTS_DP
      case FTS_DNR:
      case FTS_ERR:
      case FTS_NS:
        failed(path, "cannot read it: " + error_text(entry->fts_errno));
        break;
      default:
        // "." itself has no name there.
        if (auto const there = below(root, path); !there.empty()) visit(path, there);
        break;
    }
  }
}

}  // namespace stp::files
