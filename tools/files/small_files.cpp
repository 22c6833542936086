// SPDX-License-Identifier: BSD-3-Clause
#include "tools/files/small_files.h"

#include <atomic>
#include <system_error>
#include <utility>
#include <vector>

#include "tools/files/digest.h"
#include "tools/files/file_writer.h"

namespace stp::files {

Helper::~Helper() {
  if (!thread_.joinable()) return;
  {
    std::lock_guard const lock(mutex_);
    end_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void Helper::share(const std::function<void()>& work) {
  try {
    if (!thread_.joinable()) thread_ = std::thread([this] { run(); });
  } catch (const std::system_error&) {  // no thread is to be had
    return work();
  }
  {
    std::lock_guard const lock(mutex_);
    offered_ = &work;
  }
  changed_.notify_all();
  work();
  std::unique_lock lock(mutex_);
  offered_ = nullptr;
  changed_.wait(lock, [this] { return !busy_; });
}

void Helper::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return offered_ != nullptr || end_; });
    if (end_) return;
    const auto& work = *std::exchange(offered_, nullptr);
    busy_ = true;
    lock.unlock();
    work();
    lock.lock();
    busy_ = false;
    changed_.notify_all();
  }
}

namespace {

void write_one(SmallFile& file) {
  if (file.result.reason != Reason::kNone) return;
  const auto& content = file.packed.content;
  if (digest_of(content) != file.packed.digest)
    file.result = because(Reason::kDigest);
  else
    file.result =
        result_of(write_whole(file.directory, *file.name, *file.metadata, content, file.file));
}

}  // namespace

// In one directory two threads would wait for each other, so each takes all files of a directory.
void SmallFiles::write(std::span<SmallFile> files) {
  std::vector<std::span<SmallFile>> by_directory;
  for (std::size_t begin = 0, end = 0; begin < files.size(); begin = end) {
    while (end < files.size() && files[end].directory == files[begin].directory) ++end;
    by_directory.push_back(files.subspan(begin, end - begin));
  }
  std::atomic<std::size_t> next{0};
  const auto work = [&] {
    for (auto i = next++; i < by_directory.size(); i = next++)
      for (auto& file : by_directory[i]) write_one(file);
  };
  if (by_directory.size() > 1)
    helper_.share(work);
  else
    work();
}

}  // namespace stp::files
