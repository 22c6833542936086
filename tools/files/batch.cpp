// SPDX-License-Identifier: BSD-3-Clause
#include "tools/files/batch.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <map>
#include <system_error>
#include <utility>

namespace stp::files {
namespace {

constexpr std::size_t kMostItems = 2'048;
constexpr std::uint64_t kMostBytes = std::uint64_t{256} << 20;

int synchronize(int fd) {
  return ::fsync(fd) == 0 ? 0 : -errno;
}

}  // namespace

Batch::~Batch() {
  for (const auto& item : items_)
    if (!item.file.temporary.empty())
      ::unlinkat(item.file.directory->get(), item.file.temporary.c_str(), 0);
}

void Batch::add(std::uint32_t number, WholeFile file) {
  if (items_.empty() || items_.back().file.directory != file.directory) ++directories_;
  bytes_ += file.bytes;
  open_files_ += file.keep_open ? 1 : 0;
  Item item;
  item.number = number;
  item.file = std::move(file);
  items_.push_back(std::move(item));
  // From here on the files are synchronized together and need no descriptors.
  if (++files_ == most_.few + 1) {
    for (auto& each : items_)
      if (!each.file.keep_open) each.file.fd.reset();
  } else if (files_ > most_.few && !items_.back().file.keep_open) {
    items_.back().file.fd.reset();
  }
}

void Batch::add_directory(std::uint32_t number, Directory directory, const Metadata& metadata) {
  if (items_.empty() || items_.back().file.directory != directory) ++directories_;
  Item item;
  item.number = number;
  item.file.directory = std::move(directory);
  item.metadata = metadata;
  item.is_directory = true;
  items_.push_back(std::move(item));
}

bool Batch::is_full() const {
  return items_.size() >= kMostItems || directories_ >= most_.directories ||
         open_files_ >= most_.open_files || bytes_ >= kMostBytes;
}

void Batch::settle() {
  make_durable();
  give_names();
  sync_directories();
}

void Batch::report(const Report& report) const {
  for (const auto& item : items_) report(item.number, item.error);
}

void Batch::make_durable() {
  if (files_ > most_.few) return sync_file_systems();
  for (auto& item : items_)
    if (item.file.fd && !item.file.temporary.empty()) item.error = synchronize(item.file.fd.get());
}

// Usually the root directory holds one file system; others may be mounted below it.
void Batch::sync_file_systems() {
  std::map<dev_t, int> results;
  const os::UniqueFd* last = nullptr;
  int result = 0;
  for (auto& item : items_) {
    if (item.file.temporary.empty() || item.error != 0) continue;
    if (const auto* const at = item.file.directory.get(); at != last) {
      last = at;
      struct stat found {};
      result = ::fstat(at->get(), &found) == 0 ? 0 : -errno;
      if (result == 0) {
        const auto [place, is_new] = results.try_emplace(found.st_dev, 0);
        if (is_new && ::syncfs(at->get()) != 0) place->second = -errno;
        result = place->second;
      }
    }
    item.error = result;
  }
}

void Batch::give_names() {
  for (auto& item : items_) {
    auto& file = item.file;
    if (item.is_directory) {
      item.error = apply(file.directory->get(), item.metadata);
    } else if (!file.temporary.empty()) {
      const auto at = file.directory->get();
      if (item.error == 0 && ::renameat(at, file.temporary.c_str(), at, file.name.c_str()) != 0)
        item.error = -errno;
      // The kernel leaves the old name where the new one is of the same file already.
      if (item.error != 0 || file.is_link) ::unlinkat(at, file.temporary.c_str(), 0);
    }
  }
}

// Makes the names as durable as the content. Consecutive files in one directory need only one
// fsync(), at the last of them.
void Batch::sync_directories() {
  if (directories_ > most_.few) {
    sync_file_systems();
  } else {
    for (std::size_t i = 0; i < items_.size(); ++i) {
      auto& item = items_[i];
      if (item.file.temporary.empty() || item.error != 0) continue;
      const auto is_last = i + 1 == items_.size() || items_[i + 1].file.temporary.empty() ||
                           items_[i + 1].file.directory != item.file.directory;
      if (is_last) item.error = synchronize(item.file.directory->get());
    }
  }
  for (auto& item : items_) item.file.temporary.clear();
}

Settler::~Settler() {
  if (thread_.valid()) thread_.wait();
}

void Settler::begin(std::unique_ptr<Batch> batch) {
  batch_ = std::move(batch);
  done_ = false;
  try {
    thread_ = std::async(std::launch::async, [this] {
      batch_->settle();
      done_ = true;
      settled_();
    });
  } catch (const std::system_error&) {  // no thread is to be had
    batch_->settle();
    done_ = true;
  }
}

std::unique_ptr<Batch> Settler::collect() {
  return done_ ? wait() : nullptr;
}

std::unique_ptr<Batch> Settler::wait() {
  if (thread_.valid()) thread_.get();
  done_ = false;
  return std::move(batch_);
}

}  // namespace stp::files
