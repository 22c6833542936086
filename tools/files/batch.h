// SPDX-License-Identifier: BSD-3-Clause
// Complete files that do not have their names yet. settle() syncs all of them to disk together and
// then renames them: one sync per file would take longer than everything else.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "libst/os/unique_fd.h"
#include "tools/files/descriptors.h"
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
  bool is_link = false;    // the temporary is a further name of a file that has one
};

class Batch {
 public:
  // `error`: 0 or a negative errno.
  using Report = std::function<void(std::uint32_t number, int error)>;

  explicit Batch(const Descriptors& most = {}) : most_(most) {}
  // Removes the temporaries of files that have not got their names.
  ~Batch();
  Batch(const Batch&) = delete;
  Batch& operator=(const Batch&) = delete;

  void add(std::uint32_t number, WholeFile file);
  // The directory gets its permissions and time after everything that was added before it.
  void add_directory(std::uint32_t number, Directory directory, const Metadata& metadata);
  // Large enough for a sync of its own, if no other one is under way.
  [[nodiscard]] bool is_worthwhile() const { return items_.size() >= kWorthwhile; }
  // Call settle() before anything else is added.
  [[nodiscard]] bool is_full() const;
  [[nodiscard]] bool is_empty() const { return items_.empty(); }
  void settle();
  // After settle(), once: calls `report` for each, in the order in which they were added.
  void report(const Report& report) const;

 private:
  struct Item {
    std::uint32_t number = 0;
    WholeFile file;
    Metadata metadata;  // of a directory
    bool is_directory = false;
    int error = 0;
  };

  static constexpr std::size_t kWorthwhile = 256;

  void make_durable();
  void sync_file_systems();
  void give_names();
  void sync_directories();

  const Descriptors most_;
  std::vector<Item> items_;
  std::size_t files_ = 0, open_files_ = 0, directories_ = 0;
  std::uint64_t bytes_ = 0;
};

}  // namespace stp::files
