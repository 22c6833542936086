// SPDX-License-Identifier: BSD-3-Clause
#include "tools/files/source_directory.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <string_view>
#include <utility>
#include <vector>

namespace stp::files {
namespace {

struct CloseDirectory {
  void operator()(DIR* directory) const { ::closedir(directory); }
};

}  // namespace

SourceDirectory::SourceDirectory(Directory base, Pointer above, std::string name)
    : base_(std::move(base)),
      above_(std::move(above)),
      name_(std::move(name)),
      open_ones_(above_ ? above_->open_ones_ : std::make_shared<OpenOnes>()) {}

SourceDirectory::~SourceDirectory() {
  close();
}

SourceDirectory::Pointer SourceDirectory::open(Pointer above, std::string name) {
  // The constructor is private, so std::make_shared cannot call it.
  Pointer directory(new SourceDirectory(nullptr, std::move(above), std::move(name)));
  return directory->fd() < 0 ? nullptr : directory;
}

SourceDirectory::Pointer SourceDirectory::of(const Directory& directory) {
  Pointer root(new SourceDirectory(directory, nullptr, "."));
  return root->fd() < 0 ? nullptr : root;
}

int SourceDirectory::fd() {
  std::vector<SourceDirectory*> closed;
  auto* last = this;  // of those that are open
  for (; last != nullptr && !last->fd_; last = last->above_.get()) closed.push_back(last);
  if (last != nullptr) last->use();
  for (auto one = closed.rbegin(); one != closed.rend(); last = *one++)
    if (!(*one)->open_below(last != nullptr ? last->fd_.get() : (*one)->base())) return -1;
  return fd_.get();
}

void SourceDirectory::use() {
  open_ones_->splice(open_ones_->begin(), *open_ones_, place_);
}

bool SourceDirectory::open_below(int above) {
  // The parent was used last, and is not the one to close.
  if (open_ones_->size() >= kMostOpen) open_ones_->back()->close();
  service::UniqueFd opened(
      ::openat(above, name_.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  struct stat found {};
  if (!opened || ::fstat(opened.get(), &found) != 0) return false;
  if (!std::exchange(known_, true)) {
    device_ = found.st_dev;
    inode_ = found.st_ino;
  } else if (device_ != found.st_dev || inode_ != found.st_ino) {
    errno = ESTALE;
    return false;
  }
  fd_ = std::move(opened);
  place_ = open_ones_->insert(open_ones_->begin(), this);
  return true;
}

void SourceDirectory::close() {
  if (!fd_) return;
  fd_.reset();
  open_ones_->erase(place_);
}

int each_entry(int directory, const std::function<void(const dirent&)>& use) {
  // A new descriptor, because fdopendir() takes it over.
  service::UniqueFd fd(::openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  // It was opened when that was permitted.
  if (!fd && errno == EACCES) fd = service::UniqueFd(::fcntl(directory, F_DUPFD_CLOEXEC, 0));
  if (!fd) return errno;
  const std::unique_ptr<DIR, CloseDirectory> list(::fdopendir(fd.get()));
  if (!list) return errno;
  [[maybe_unused]] const auto taken = fd.release();
  ::rewinddir(list.get());
  for (;;) {
    errno = 0;
    const auto* const entry = ::readdir(list.get());
    if (entry == nullptr) return errno;
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") use(*entry);
  }
}

int names_in(int directory, std::vector<std::string>& names) {
  const auto error =
      each_entry(directory, [&](const dirent& entry) { names.emplace_back(entry.d_name); });
  std::sort(names.begin(), names.end());
  return error;
}

}  // namespace stp::files
