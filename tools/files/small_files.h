// SPDX-License-Identifier: BSD-3-Clause
// Small files that came in packs, each whole. Two threads write them.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <span>
#include <string>
#include <thread>

#include "tools/files/batch.h"
#include "tools/files/directory.h"
#include "tools/files/metadata.h"
#include "tools/files/note.h"

namespace stp::files {

// A second thread for work that two can do at once.
class Helper {
 public:
  Helper() = default;
  ~Helper();
  Helper(const Helper&) = delete;
  Helper& operator=(const Helper&) = delete;

  // Calls `work` in this thread, and at the same time in the other one, unless that comes too late.
  // Returns when no call is under way. `work` takes its pieces itself, and must not throw.
  void share(const std::function<void()>& work);

 private:
  void run();

  std::mutex mutex_;  // of the following
  std::condition_variable changed_;
  const std::function<void()>* offered_ = nullptr;
  bool busy_ = false, end_ = false;
  std::thread thread_;
};

struct SmallFile {
  Packed packed;
  const Metadata* metadata = nullptr;
  const std::string* name = nullptr;
  Directory directory;
  Note result;     // a reason at the start: not to be written
  WholeFile file;  // if there is no reason in `result`
};

class SmallFiles {
 public:
  // Each holds a descriptor until it is in a batch.
  void write(std::span<SmallFile> files);

 private:
  Helper helper_;
};

}  // namespace stp::files
