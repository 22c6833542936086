// SPDX-License-Identifier: BSD-3-Clause
// The C API: memory (libst document, section 9 and Appendix A).
#include <linux/mempolicy.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cinttypes>
#include <climits>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "libst/client/address_space.h"
#include "libst/client/connection.h"
#include "libst/client/endpoint.h"
#include "libst/client/error.h"
#include "libst/client/shared_pages.h"
#include "libst/include/stp/st.h"
#include "stp/base/mutex.h"
#include "stp/types.h"

namespace stp::client {

// ---- memory that suits a link, for st_malloc ----

inline constexpr int kAnyNode = -1;

struct MemoryRequest {
  std::size_t size = 0;
  std::size_t alignment = 0;  // a power of two
  int node = kAnyNode;
  bool lent = false;  // to stpd: st_map then need not replace its pages
};

// Allocates zeroed whole pages, huge ones if the kernel has any free. release() frees them. Returns
// 0 or a negative errno.
int allocate(const MemoryRequest& wanted, void*& out);
// -EINVAL: `memory` does not come from allocate().
int release(void* memory);

struct MemoryFacts {
  std::size_t size = 0;  // usable
  std::size_t huge = 0;  // bytes of it on huge pages at present
  int node = kAnyNode;   // of its first page; kAnyNode: unknown
};
int describe_memory(const void* memory, MemoryFacts& out);

namespace {

using ipc::page_size;
using ipc::SharedMemory;

constexpr std::size_t kHugePage = std::size_t{2} << 20;
constexpr std::size_t kMostNodes = 1024;

struct Allocation {
  std::byte* at = nullptr;
  std::size_t size = 0;
  std::shared_ptr<const SharedMemory> lent;  // so that st_map recognizes the pages as shared
  std::optional<Lease> lease;                // lends all of it to stpd
};

struct Allocations {
  Mutex mutex;
  std::map<const void*, Allocation> live STP_GUARDED_BY(mutex);
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
  Allocations& all = allocations();
  const Lock guard(all.mutex);
  out = made.at;
  all.live.emplace(made.at, std::move(made));
  return 0;
}

int release(void* memory) {
  decltype(Allocations::live)::node_type known;
  {
    Allocations& all = allocations();
    const Lock guard(all.mutex);
    known = all.live.extract(memory);
  }
  if (!known) return fail(-EINVAL, "st_malloc did not give this memory");
  give_back(known.mapped());  // without the lock: it takes that of the shared pages
  return 0;
}

int describe_memory(const void* memory, MemoryFacts& out) {
  Allocations& all = allocations();
  const Lock guard(all.mutex);
  const auto at = all.live.find(memory);
  if (at == all.live.end()) return fail(-EINVAL, "st_malloc did not give this memory");
  out = {at->second.size, huge_bytes(at->second), node_of(memory)};
  return 0;
}

}  // namespace stp::client

// ---- the calls ----

using stp::Direction;
using stp::MutableBytes;
using stp::client::Connection;
using stp::client::Endpoint;
using stp::client::fail;
using stp::client::find;
using stp::client::guarded;
using stp::client::Handle;
using stp::client::not_set;
using stp::client::Region;

static_assert(ST_MAX_PIECES == stp::ipc::kMaxPieces);

namespace {

constexpr std::int64_t kMostEntries = 65'536;

// `len` counts bytes and `count` buffers of the same memory; one of them may be -1.
int whole_buffers(int len, int count, unsigned bufsize, std::size_t& bytes) {
  const auto size = std::int64_t{1} << bufsize;
  if (len == -1 && count == -1)
    return fail(-EINVAL, "len and count are both -1: one of them must give the size");
  if ((len <= 0 && len != -1) || (count <= 0 && count != -1))
    return fail(-EINVAL, "len and count must be positive; one of them may be -1");
  const auto entries = len == -1 ? count : len / size;
  if (len != -1 && len % size != 0)
    return fail(-EINVAL, "len is not a multiple of the buffer size " + std::to_string(size));
  if (count != -1 && count != entries)
    return fail(-EINVAL, "len is " + std::to_string(len) + ", but count " + std::to_string(count) +
                             " means " + std::to_string(count * size) + " bytes");
  if (entries > kMostEntries)
    return fail(-EINVAL, std::to_string(entries) + " buffers: the most is 65536");
  bytes = static_cast<std::size_t>(entries * size);
  return 0;
}

int whole_pieces(std::span<const iovec> pieces, unsigned bufsize, std::vector<MutableBytes>& out) {
  const auto size = std::size_t{1} << bufsize;
  std::size_t entries = 0;
  for (const auto& piece : pieces) {
    if (piece.iov_base == nullptr || piece.iov_len == 0 || piece.iov_len % size != 0)
      return fail(-EINVAL, "each piece must be one or more buffers of " + std::to_string(size) +
                               " bytes, and not NULL");
    if ((entries += piece.iov_len / size) > std::size_t{kMostEntries})
      return fail(-EINVAL, "the pieces have more than 65536 buffers");
    out.push_back({static_cast<std::byte*>(piece.iov_base), piece.iov_len});
  }
  return 0;
}

int check_memory(MutableBytes memory, bool receive, unsigned bufsize) {
  const auto size = std::uintptr_t{1} << bufsize;
  if (reinterpret_cast<std::uintptr_t>(memory.data()) % size != 0)
    return fail(-EINVAL, "ptr is not aligned to the buffer size " + std::to_string(size));
  return stp::client::check_access(memory, receive);
}

int check_range(std::uint32_t base, std::uint64_t count, std::uint32_t range_base,
                std::uint32_t range_count) {
  if (base >= range_base && base - range_base + count <= range_count) return 0;
  const auto given = static_cast<std::int32_t>(base);
  const auto last = range_base + std::uint64_t{range_count} - 1;
  return fail(-ERANGE, "base " + std::to_string(given) +
                           (given < 0 ? " (Bufx " + std::to_string(base) + ")" : "") + ", count " +
                           std::to_string(count) + ": not within the Bufx that the options set, " +
                           std::to_string(range_base) + " to " + std::to_string(last));
}

// `pieces`: whole buffers.
int map(Endpoint& endpoint, int flags, std::vector<MutableBytes> pieces, int base, Handle& handle,
        int* mx) {
  if (flags != ST_MAP_TX && flags != ST_MAP_RX)
    return fail(-EINVAL, "flags must be ST_MAP_TX or ST_MAP_RX");
  const bool receive = flags == ST_MAP_RX;
  const auto config = endpoint.config();
  std::size_t bytes = 0;
  for (const auto piece : pieces) {
    if (const auto error = check_memory(piece, receive, config.bufsize); error != 0) return error;
    bytes += piece.size();
  }
  const auto first = static_cast<std::uint32_t>(base);
  if (const auto error = check_range(first, bytes >> config.bufsize,
                                     receive ? config.rx_bufx_base : config.tx_bufx_base,
                                     receive ? config.rx_bufx_count : config.tx_bufx_count);
      error != 0)
    return error;
  std::uint16_t allocated = 0;
  const bool wants_mx = receive && mx != nullptr;
  const auto error =
      endpoint.map(receive ? Direction::kReceive : Direction::kTransmit, std::move(pieces), first,
                   handle, wants_mx ? &allocated : nullptr);
  if (error == -EBUSY) return fail(error, "one of these Bufx has memory already");
  if (error == 0 && wants_mx) *mx = allocated;
  return error;
}

}  // namespace

int st_map(st_ehandle_t ehandle, int flags, void* ptr, int len, int base, int count,
           st_mhandle_t* mhandle, int* mx) {
  return guarded([&] {
    const auto endpoint = find<Endpoint>(ehandle);
    if (!endpoint) return -EBADF;
    if (mhandle == nullptr) return not_set("mhandle");
    if (ptr == nullptr) return not_set("ptr");
    std::size_t bytes = 0;
    const auto bufsize = endpoint->config().bufsize;
    if (const auto error = whole_buffers(len, count, bufsize, bytes); error != 0) return error;
    Handle handle = 0;
    const auto error =
        map(*endpoint, flags, {{static_cast<std::byte*>(ptr), bytes}}, base, handle, mx);
    if (error == 0) *mhandle = reinterpret_cast<st_mhandle_t>(handle);
    return error;
  });
}

int st_mapv(st_ehandle_t ehandle, int flags, const struct iovec* pieces, int piece_count, int base,
            st_mhandle_t* mhandle, int* mx) {
  return guarded([&] {
    const auto endpoint = find<Endpoint>(ehandle);
    if (!endpoint) return -EBADF;
    if (mhandle == nullptr) return not_set("mhandle");
    if (pieces == nullptr) return not_set("pieces");
    if (piece_count < 1 || piece_count > ST_MAX_PIECES)
      return fail(-EINVAL, "piece_count is " + std::to_string(piece_count) + ": it must be 1 to " +
                               std::to_string(ST_MAX_PIECES));
    std::vector<MutableBytes> memory;
    if (const auto error = whole_pieces({pieces, static_cast<std::size_t>(piece_count)},
                                        endpoint->config().bufsize, memory);
        error != 0)
      return error;
    Handle handle = 0;
    const auto error = map(*endpoint, flags, std::move(memory), base, handle, mx);
    if (error == 0) *mhandle = reinterpret_cast<st_mhandle_t>(handle);
    return error;
  });
}

int st_unmap(st_mhandle_t mhandle) {
  return guarded([&] {
    const auto region = stp::client::retire<Region>(reinterpret_cast<Handle>(mhandle));
    return region ? region->unmap() : -EBADF;
  });
}

int st_mx_alloc(st_chandle_t chandle, st_mhandle_t mhandle, int* mx) {
  return guarded([&] {
    const auto connection = find<Connection>(chandle);
    const auto region = find<Region>(mhandle);
    if (!connection || !region) return -EBADF;
    if (mx == nullptr) return not_set("mx");
    if (region->direction() != Direction::kReceive)
      return fail(-EINVAL,
                  "an Mx needs memory mapped with ST_MAP_RX; this is mapped with ST_MAP_TX");
    if (&region->endpoint() != &connection->endpoint())
      return fail(-EINVAL, "the memory is mapped on another endpoint");
    std::uint16_t allocated = 0;
    const auto error = region->allocate_mx(connection->vc(), allocated);
    if (error == 0) *mx = allocated;
    return error;
  });
}

int st_mx_free(st_chandle_t chandle, int mx) {
  return guarded([&] {
    const auto connection = find<Connection>(chandle);
    if (!connection) return -EBADF;
    if (mx < 0 || mx > 0xffff)
      return fail(-ERANGE, "mx is " + std::to_string(mx) + ": it must be 0 to 65535");
    return connection->free_mx(static_cast<std::uint16_t>(mx));
  });
}

// ---- memory that the library finds

int st_malloc(st_ehandle_t ehandle, size_t size, int node, void** ptr) {
  return guarded([&] {
    const auto endpoint = find<Endpoint>(ehandle);
    if (!endpoint) return -EBADF;
    if (ptr == nullptr) return not_set("ptr");
    return stp::client::allocate({.size = size,
                                  .alignment = std::size_t{1} << endpoint->config().bufsize,
                                  .node = node,
                                  .lent = endpoint->backend().lends_memory()},
                                 *ptr);
  });
}

int st_free(void* ptr) {
  return guarded([&] { return ptr == nullptr ? 0 : stp::client::release(ptr); });
}

int st_meminfo(const void* ptr, st_meminfo_t* info) {
  return guarded([&] {
    if (info == nullptr) return not_set("info");
    stp::client::MemoryFacts facts;
    const auto error = stp::client::describe_memory(ptr, facts);
    if (error == 0) *info = {.size = facts.size, .huge = facts.huge, .node = facts.node};
    return error;
  });
}
