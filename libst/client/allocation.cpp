// SPDX-License-Identifier: BSD-3-Clause
#include "libst/client/allocation.h"

#include <linux/mempolicy.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cinttypes>
#include <climits>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <map>
#include <mutex>
#include <optional>
#include <string>

#include "libst/client/error.h"
#include "libst/client/shared_pages.h"

namespace stp::client {
namespace {

using service::page_size;
using service::SharedMemory;

constexpr std::size_t kHugePage = std::size_t{2} << 20;
constexpr std::size_t kMostNodes = 1024;

struct Allocation {
  std::byte* at = nullptr;
  std::size_t size = 0;
  std::shared_ptr<const SharedMemory> lent;  // so that st_map recognizes the pages as shared
  std::optional<Lease> lease;                // lends all of it to stpd
};

struct Allocations {
  std::mutex mutex;
  std::map<const void*, Allocation> live;
};

Allocations& allocations() {
  static auto* const all = new Allocations;  // never destroyed, as HandleTable
  return *all;
}

std::size_t round_up(std::size_t size, std::size_t unit) {
  return (size + unit - 1) / unit * unit;
}

// Reserves `size` aligned bytes of address space, followed by a page that cannot be accessed. That
// page stops writes beyond the end, and keeps the kernel from merging the memory with a neighbour.
std::byte* reserve(std::size_t size, std::size_t alignment) {
  const auto whole = size + alignment + page_size();
  auto* const at =
      ::mmap(nullptr, whole, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (at == MAP_FAILED) return nullptr;
  const auto begin = reinterpret_cast<std::uintptr_t>(at);
  const auto wanted = round_up(begin, alignment);
  const auto end = wanted + size + page_size();
  if (wanted != begin) ::munmap(at, wanted - begin);
  if (end != begin + whole) ::munmap(reinterpret_cast<void*>(end), begin + whole - end);
  return reinterpret_cast<std::byte*>(wanted);
}

void give_back(Allocation& what) {
  const auto size = what.size + page_size();
  if (what.lease)
    SharedPages::instance().unmap({what.at, size}, *what.lease);
  else
    ::munmap(what.at, size);
}

bool place(const Allocation& what, int flags, int fd) {
  return ::mmap(what.at, what.size, PROT_READ | PROT_WRITE, flags | MAP_FIXED, fd, 0) != MAP_FAILED;
}

// Maps private pages. Reserved huge pages (MAP_HUGETLB) are used only if no NUMA node is chosen: a
// chosen node could run out of them at the first touch, which raises SIGBUS. Otherwise the kernel
// is asked for transparent huge pages.
bool place_private(const Allocation& what, bool bound) {
  constexpr int kOwn = MAP_PRIVATE | MAP_ANONYMOUS;
  if (!bound && what.size % kHugePage == 0 && place(what, kOwn | MAP_HUGETLB, -1)) return true;
  if (!place(what, kOwn, -1)) return false;
  ::madvise(what.at, what.size, MADV_HUGEPAGE);
  return true;
}

int bind(const Allocation& what, int node) {
  if (node == kAnyNode) return 0;
  constexpr std::size_t kBits = sizeof(unsigned long) * CHAR_BIT;
  std::array<unsigned long, kMostNodes / kBits> mask{};
  const auto at = static_cast<std::size_t>(node);
  mask[at / kBits] = 1UL << at % kBits;
  if (::syscall(SYS_mbind, what.at, what.size, MPOL_BIND, mask.data(), kMostNodes, 0) == 0)
    return 0;
  // The kernel has no NUMA support, or does not permit mbind(). That is no error: st_meminfo tells
  // where the memory is.
  if (errno == ENOSYS || errno == EPERM) return 0;
  return fail(-errno, "memory of NUMA node " + std::to_string(node) + ": " + std::strerror(errno));
}

// Returns how many bytes of `what` are on huge pages, according to /proc/self/smaps.
std::size_t huge_bytes(const Allocation& what) {
  std::ifstream maps("/proc/self/smaps");
  std::size_t huge = 0, length = 0;
  const auto begin = reinterpret_cast<std::uintptr_t>(what.at);
  for (std::string line; std::getline(maps, line);) {
    std::uintptr_t from = 0, to = 0;
    std::size_t kilobytes = 0;
    if (std::sscanf(line.c_str(), "%" SCNxPTR "-%" SCNxPTR " ", &from, &to) == 2)
      length = from >= begin && to <= begin + what.size ? to - from : 0;
    else if (length == 0)
      continue;
    else if (std::sscanf(line.c_str(), "AnonHugePages: %zu", &kilobytes) == 1 ||
             std::sscanf(line.c_str(), "ShmemPmdMapped: %zu", &kilobytes) == 1)
      huge += kilobytes * 1024;
    else if (std::sscanf(line.c_str(), "KernelPageSize: %zu", &kilobytes) == 1)
      huge += kilobytes * 1024 >= kHugePage ? length : 0;
  }
  return std::min(huge, what.size);
}

int node_of(const void* page) {
  int node = kAnyNode;
  const auto asked =
      ::syscall(SYS_get_mempolicy, &node, nullptr, 0, page, MPOL_F_NODE | MPOL_F_ADDR);
  return asked == 0 ? node : kAnyNode;
}

}  // namespace

int allocate(const MemoryRequest& wanted, void*& out) {
  if (wanted.size == 0 || wanted.size > PTRDIFF_MAX / 2)
    return fail(-EINVAL, "size is " + std::to_string(wanted.size) + ": it must be 1 to " +
                             std::to_string(PTRDIFF_MAX / 2));
  if (wanted.node < kAnyNode || wanted.node >= static_cast<int>(kMostNodes))
    return fail(-EINVAL, "node is " + std::to_string(wanted.node) + ": it must be -1 (any) to " +
                             std::to_string(kMostNodes - 1));
  const auto unit = std::max(
      {wanted.alignment, page_size(), wanted.size >= kHugePage ? kHugePage : std::size_t{0}});
  Allocation made;
  made.size = round_up(wanted.size, unit);
  made.at = reserve(made.size, unit);
  if (made.at == nullptr) return -ENOMEM;
  bool placed = false;
  if (wanted.lent) {
    made.lent = SharedPages::instance().create({made.at, made.size}, made.lease);
    placed = made.lent != nullptr;
    if (placed) ::madvise(made.at, made.size, MADV_HUGEPAGE);
  } else {
    placed = place_private(made, wanted.node != kAnyNode);
  }
  const auto error = placed ? bind(made, wanted.node) : -ENOMEM;
  if (error != 0) {
    give_back(made);
    return error;
  }
  std::lock_guard const guard(allocations().mutex);
  out = made.at;
  allocations().live.emplace(made.at, std::move(made));
  return 0;
}

int release(void* memory) {
  std::lock_guard const guard(allocations().mutex);
  const auto at = allocations().live.find(memory);
  if (at == allocations().live.end()) return fail(-EINVAL, "st_malloc did not give this memory");
  give_back(at->second);
  allocations().live.erase(at);
  return 0;
}

int describe_memory(const void* memory, MemoryFacts& out) {
  std::lock_guard const guard(allocations().mutex);
  const auto at = allocations().live.find(memory);
  if (at == allocations().live.end()) return fail(-EINVAL, "st_malloc did not give this memory");
  out = {at->second.size, huge_bytes(at->second), node_of(memory)};
  return 0;
}

}  // namespace stp::client
