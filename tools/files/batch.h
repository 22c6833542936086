// SPDX-License-Identifier: BSD-3-Clause
// Complete files that do not have their names yet. settle() syncs all of them to disk together and
// then renames them: one sync per file would take longer than everything else. Functions return 0
// or a negative errno.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "libst/os/unique_fd.h"
#include "tools/files/directory.h"
#include "tools/files/metadata.h"

namespace stp::files {

// Written, with its permissions and time, and not yet under its name.
struct WholeFile {
  Directory directory;
  std::string temporary;  // "": it has had its name before
  std::string name;
  service::UniqueFd fd;  // may be given up
  std::uint64_t bytes = 0;
  bool keep_open = false;  // the temporary is locked by it
};

class Batch {
 public:
  // Called by settle() for each, in the order in which they were added.
  using Report = std::function<void(std::uint32_t number, int error)>;

  Batch() = default;
  // Removes the temporaries of files that have not got their names.
  ~Batch();
  Batch(const Batch&) = delete;
  Batch& operator=(const Batch&) = delete;

  void add(std::uint32_t number, WholeFile file);
  // The directory gets its permissions and time after everything that was added before it.
  void add_directory(std::uint32_t number, Directory directory, const Metadata& metadata);
  // The batch is large enough: call settle().
  [[nodiscard]] bool is_full() const;
  [[nodiscard]] bool is_empty() const { return items_.empty(); }
  void settle(const Report& report);

 private:
  struct Item {
    std::uint32_t number = 0;
    WholeFile file;
    Metadata metadata;  // of a directory
    bool is_directory = false;
    int error = 0;
  };

  void make_durable();
  void sync_file_systems();
  void give_names();
  void sync_directories();

  std::vector<Item> items_;
  std::size_t files_ = 0, open_files_ = 0, directories_ = 0;
  std::uint64_t bytes_ = 0;
};

}  // namespace stp::files
