// SPDX-License-Identifier: BSD-3-Clause
#include "dpdk_port/memif/memory_work.h"

#include <fcntl.h>

#include <utility>

#include "dpdk_port/memif/background.h"

namespace stp::port::memif {
template <typename Work>
std::shared_ptr<MemoryWork> MemoryWork::begin(SharedDescriptor file, Work work) {
  auto made = std::make_shared<MemoryWork>(std::move(file));
  const bool begun = in_background([made, work] {
    work(*made);
    made->file_ = {};
    made->done_.store(true, std::memory_order_release);
  });
  return begun ? made : nullptr;
}

std::shared_ptr<MemoryWork> MemoryWork::map(SharedDescriptor file, std::uint64_t size) {
  return begin(std::move(file), [size](MemoryWork& work) {
    work.region = Region::map(work.file_, size, work.error);
  });
}

std::shared_ptr<MemoryWork> MemoryWork::seal(const SharedDescriptor& file) {
  SharedDescriptor copy(FileDescriptor(::fcntl(file.get(), F_DUPFD_CLOEXEC, 0)), file.closer());
  return begin(std::move(copy), [](MemoryWork& work) { keep_pages(work.file_); });
}

}  // namespace stp::port::memif
