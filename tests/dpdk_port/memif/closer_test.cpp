// SPDX-License-Identifier: BSD-3-Clause
#include "dpdk_port/memif/closer.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <array>

#include "tests/lingering_socket.h"

namespace stp::port::memif {
namespace {

// Ends when the other end of the pipe has been closed.
void await_end(int pipe) {
  char byte;
  EXPECT_EQ(::read(pipe, &byte, 1), 0);
}

TEST(MemifCloser, ClosesAndUnmaps) {
  Closer closer;
  std::array<int, 2> pipe{};
  ASSERT_EQ(::pipe2(pipe.data(), O_CLOEXEC), 0);
  const FileDescriptor reader(pipe[0]);
  constexpr std::size_t kSize = 4096;
  void* const memory = ::mmap(nullptr, kSize, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  closer.unmap({static_cast<std::byte*>(memory), kSize});
  closer.close(FileDescriptor(pipe[1]));
  await_end(reader.get());
  EXPECT_NE(::msync(memory, kSize, MS_ASYNC), 0) << "it was unmapped before";
}

TEST(MemifCloser, WaitsForNobody) {
  test::LingeringSocket blocks;
  {
    Closer closer;
    closer.close(FileDescriptor(blocks.fd.release()));
    EXPECT_EQ(closer.waiting(), 1U);
    EXPECT_FALSE(closer.is_full());
    for (std::size_t i = 1; i < Closer::kMost; ++i)
      closer.close(FileDescriptor(::fcntl(0, F_DUPFD_CLOEXEC, 0)));
    EXPECT_TRUE(closer.is_full());
  }  // nor does its end
}

TEST(MemifCloser, ClosesTheRestAfterItsEnd) {
  std::array<int, 2> pipe{};
  ASSERT_EQ(::pipe2(pipe.data(), O_CLOEXEC), 0);
  const FileDescriptor reader(pipe[0]);
  {
    test::LingeringSocket blocks;
    Closer closer;
    closer.close(FileDescriptor(blocks.fd.release()));
    closer.close(FileDescriptor(pipe[1]));
  }  // the other side of the socket closes it after the Closer has ended
  await_end(reader.get());
}

}  // namespace
}  // namespace stp::port::memif
