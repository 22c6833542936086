// SPDX-License-Identifier: BSD-3-Clause
// Complete files that do not have their names yet. settle() syncs all of them to disk together and
// then renames them: one sync per file would take longer than everything else.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <vector>

#include "libst/os/unique_fd.h"
#include "tools/files/directory.h"
#include "tools/files/metadata.h"

namespace stp::files {

// How many descriptors the files of one sender may take at the receiver.
struct Descriptors {
  std::size_t directories = 256;  // of a batch; two batches and a pack are under way at once
  std::size_t small_files = 256;  // of a pack that are written at once
  std::size_t open_files = 16;    // of a batch: large ones, whose temporaries are locked
  std::size_t compared = 8;       // files that are compared or written, with up to 3 each
  // Up to this many files of a batch are synchronized one by one. More are synchronized with their
  // whole file system, which is expensive if other programs have much to write there.
  std::size_t few = 8;
};

// So that `senders` at once stay within the limit of the process.
inline Descriptors descriptors_within(std::size_t limit, std::size_t senders) {
  constexpr std::size_t kOthers = 128;       // of the program itself and its link
  constexpr std::size_t kOfConnection = 24;  // of each sender: its link, directories to remove
  constexpr std::size_t kShares = 8;         // see below
  const auto each = limit > kOthers ? (limit - kOthers) / senders : 0;
  const auto share = (each > kOfConnection ? each - kOfConnection : 0) / kShares;
  const Descriptors most;
  const auto at_most = [share](std::size_t wanted) {
    return std::clamp<std::size_t>(share, 1, wanted);
  };
  // 3 shares of directories, 1 of small files, 2 of large and 1 of few files; 1 of compared ones.
  return {at_most(most.directories), at_most(most.small_files), at_most(most.open_files),
          std::clamp<std::size_t>(share / 3, 1, most.compared), at_most(most.few)};
}

// Written, with its permissions and time, and not yet under its name.
struct WholeFile {
  Directory directory;
  std::string temporary;  // "": it has had its name before
  std::string name;
  os::UniqueFd fd;  // may be given up
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

// Settles batches in a thread of its own, one at a time, while the next one fills: nobody waits for
// the disk meanwhile.
class Settler {
 public:
  // `settled` is called from that thread when a batch can be collected.
  explicit Settler(std::function<void()> settled) : settled_(std::move(settled)) {}
  ~Settler();  // waits for the batch
  Settler(const Settler&) = delete;
  Settler& operator=(const Settler&) = delete;

  // Collect the one before first.
  void begin(std::unique_ptr<Batch> batch);
  // A batch was begun and not collected.
  [[nodiscard]] bool is_busy() const { return batch_ != nullptr; }
  // The batch, if it is settled.
  std::unique_ptr<Batch> collect();
  // The batch, as soon as it is settled. nullptr: there is none.
  std::unique_ptr<Batch> wait();

 private:
  const std::function<void()> settled_;
  std::unique_ptr<Batch> batch_;
  std::atomic<bool> done_{false};
  std::future<void> thread_;
};

}  // namespace stp::files
