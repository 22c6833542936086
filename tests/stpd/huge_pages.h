// SPDX-License-Identifier: BSD-3-Clause
// What a program can do to the pages of a file that it shares: it asks the kernel for a huge page,
// which takes the pages out of all mappings and copies them.
#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>

#include "libst/os/unique_fd.h"
#include "tools/stpd/region_memory.h"

// Older headers lack it.
#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif

namespace stp::test {

// Whether the kernel makes a huge page of the 2 MiB of the file from `offset` on, a multiple of
// that. The file may be shorter.
inline bool becomes_huge(int file, std::uint64_t offset = 0) {
  constexpr auto kPiece = stpd::PagePins::kPiece;
  auto* const room =
      ::mmap(nullptr, 2 * kPiece, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (room == MAP_FAILED) return false;
  const auto begin = (reinterpret_cast<std::uintptr_t>(room) + kPiece - 1) / kPiece * kPiece;
  auto* const at = ::mmap(reinterpret_cast<void*>(begin), kPiece, PROT_READ, MAP_SHARED | MAP_FIXED,
                          file, static_cast<off_t>(offset));
  const auto done = at != MAP_FAILED && ::madvise(at, kPiece, MADV_COLLAPSE) == 0;
  ::munmap(room, 2 * kPiece);
  return done;
}

// Whether this kernel does that (Linux 6.1, with huge pages), so that a test can show that it does
// not.
inline bool makes_huge_pages() {
  const os::UniqueFd file(::memfd_create("huge", MFD_CLOEXEC));
  return file && ::ftruncate(file.get(), 4'096) == 0 && ::pwrite(file.get(), "x", 1, 0) == 1 &&
         becomes_huge(file.get());
}

}  // namespace stp::test
