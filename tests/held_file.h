// SPDX-License-Identifier: BSD-3-Clause
// A memory file whose lock is held, as by a program that takes pages away for as long as it likes:
// whoever seals the file, or looks for its holes, sleeps in the kernel. Here a thread writes to the
// file from a page that is not there (userfaultfd) until release().
#pragma once

#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <thread>

namespace stp::test {

class HeldFile {
 public:
  // `file` is open for writing, and not sealed against it.
  explicit HeldFile(int file) {
    watcher_ = static_cast<int>(::syscall(SYS_userfaultfd, O_CLOEXEC));
    uffdio_api wanted{};
    wanted.api = UFFD_API;
    page_ = ::mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    uffdio_register range{};
    range.range = {.start = reinterpret_cast<std::uintptr_t>(page_), .len = size_};
    range.mode = UFFDIO_REGISTER_MODE_MISSING;
    if (watcher_ < 0 || ::ioctl(watcher_, UFFDIO_API, &wanted) != 0 ||
        ::ioctl(watcher_, UFFDIO_REGISTER, &range) != 0)
      return;
    writer_ = std::thread([this, file] { written_ = ::pwrite(file, page_, 1, 0); });
    uffd_msg missing{};
    held_ = ::read(watcher_, &missing, sizeof missing) == sizeof missing;
  }
  ~HeldFile() {
    release();
    ::munmap(page_, size_);
    if (watcher_ >= 0) ::close(watcher_);
  }
  HeldFile(const HeldFile&) = delete;
  HeldFile& operator=(const HeldFile&) = delete;

  // False: this system or this user may not.
  [[nodiscard]] bool held() const { return held_; }
  void release() {
    if (!writer_.joinable()) return;
    uffdio_zeropage zeros{};
    zeros.range = {.start = reinterpret_cast<std::uintptr_t>(page_), .len = size_};
    ::ioctl(watcher_, UFFDIO_ZEROPAGE, &zeros);
    writer_.join();
  }

 private:
  const std::size_t size_ = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  int watcher_ = -1;
  void* page_ = nullptr;
  bool held_ = false;
  ssize_t written_ = 0;
  std::thread writer_;
};

}  // namespace stp::test
