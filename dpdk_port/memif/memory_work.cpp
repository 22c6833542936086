// SPDX-License-Identifier: BSD-3-Clause
#include "dpdk_port/memif/memory_work.h"

#include <fcntl.h>

#include <csignal>
#include <system_error>
#include <thread>
#include <utility>

namespace stp::port::memif {
namespace {

// A thread that is made meanwhile handles no signal of the program.
class SignalsForOthers {
 public:
  SignalsForOthers() {
    sigset_t all;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~SignalsForOthers() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsForOthers(const SignalsForOthers&) = delete;
  SignalsForOthers& operator=(const SignalsForOthers&) = delete;

 private:
  sigset_t before_{};
};

}  // namespace

template <typename Work>
std::shared_ptr<MemoryWork> MemoryWork::begin(FileDescriptor file, Work work) {
  auto made = std::make_shared<MemoryWork>(std::move(file));
  const SignalsForOthers blocked;
  try {
    std::thread([made, work] {
      work(*made);
      made->file_ = {};
      made->done_.store(true, std::memory_order_release);
    }).detach();
  } catch (const std::system_error&) {
    return nullptr;
  }
  return made;
}

std::shared_ptr<MemoryWork> MemoryWork::map(FileDescriptor file, std::uint64_t size) {
  return begin(std::move(file), [size](MemoryWork& work) {
    work.region = Region::map(work.file_, size, work.error);
  });
}

std::shared_ptr<MemoryWork> MemoryWork::seal(const FileDescriptor& file) {
  FileDescriptor copy(::fcntl(file.get(), F_DUPFD_CLOEXEC, 0));
  return begin(std::move(copy), [](MemoryWork& work) { keep_pages(work.file_); });
}

}  // namespace stp::port::memif
