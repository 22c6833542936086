// SPDX-License-Identifier: BSD-3-Clause
// The C API: memory (libst document, section 9).
#include "libst/client/address_space.h"
#include "libst/client/connection.h"
#include "libst/client/error.h"
#include "libst/client/region.h"
#include "libst/include/stp/st.h"

using stp::Direction;
using stp::MutableBytes;
using stp::client::Connection;
using stp::client::Endpoint;
using stp::client::fail;
using stp::client::find;
using stp::client::guarded;
using stp::client::Handle;
using stp::client::Region;

namespace {

constexpr std::int64_t kMostEntries = 65'536;

// len and count say the same; one of them may be -1.
int whole_buffers(int len, int count, unsigned bufsize, std::size_t& bytes) {
  auto const size = std::int64_t{1} << bufsize;
  if (len == -1 && count == -1)
    return fail(-EINVAL, "one of len and count says how much, both are -1");
  if ((len <= 0 && len != -1) || (count <= 0 && count != -1))
    return fail(-EINVAL, "len and count are positive, or one of them is -1");
  auto const entries = len == -1 ? count : len / size;
  if (len != -1 && len % size != 0)
    return fail(-EINVAL, "len is not a multiple of the buffer size " + std::to_string(size));
  if (count != -1 && count != entries) return fail(-EINVAL, "len and count do not agree");
  if (entries > kMostEntries) return fail(-EINVAL, "more than 65536 buffers");
  bytes = static_cast<std::size_t>(entries * size);
  return 0;
}

int check_memory(void* ptr, int len, int count, bool receive, unsigned bufsize,
                 MutableBytes& memory) {
  if (ptr == nullptr) return fail(-EINVAL, "argument 'ptr' is NULL");
  auto const size = std::uintptr_t{1} << bufsize;
  if (reinterpret_cast<std::uintptr_t>(ptr) % size != 0)
    return fail(-EINVAL, "ptr is not aligned to the buffer size " + std::to_string(size));
  std::size_t bytes = 0;
  if (auto const error = whole_buffers(len, count, bufsize, bytes); error != 0) return error;
  memory = {static_cast<std::byte*>(ptr), bytes};
  return stp::client::check_access(memory, receive);
}

int check_range(std::uint32_t base, std::uint64_t count, std::uint32_t range_base,
                std::uint32_t range_count) {
  if (base >= range_base && base - range_base + count <= range_count) return 0;
  return fail(-ERANGE, "Bufx " + std::to_string(base) + " and the " + std::to_string(count - 1) +
                           " after it are not in the range that the options set");
}

int map(Endpoint& endpoint, int flags, void* ptr, int len, int base, int count, Handle& handle,
        int* mx) {
  if (flags != ST_MAP_TX && flags != ST_MAP_RX)
    return fail(-EINVAL, "flags is either ST_MAP_TX or ST_MAP_RX");
  bool const receive = flags == ST_MAP_RX;
  auto const config = endpoint.config();
  MutableBytes memory;
  if (auto const error = check_memory(ptr, len, count, receive, config.bufsize, memory); error != 0)
    return error;
  auto const first = static_cast<std::uint32_t>(base);
  auto const error = check_range(first, memory.size() >> config.bufsize,
                                 receive ? config.rx_bufx_base : config.tx_bufx_base,
                                 receive ? config.rx_bufx_count : config.tx_bufx_count);
  if (error != 0) return error;
  std::uint16_t allocated = 0;
  bool const wants_mx = receive && mx != nullptr;
  auto const failed = endpoint.map(receive ? Direction::kReceive : Direction::kTransmit, memory,
                                   first, handle, wants_mx ? &allocated : nullptr);
  if (failed == 0 && wants_mx) *mx = allocated;
  return failed;
}

}  // namespace

int st_map(st_ehandle_t ehandle, int flags, void* ptr, int len, int base, int count,
           st_mhandle_t* mhandle, int* mx) {
  return guarded([&] {
    auto const endpoint = find<Endpoint>(ehandle);
    if (!endpoint) return -EBADF;
    if (mhandle == nullptr) return fail(-EINVAL, "argument 'mhandle' is NULL");
    Handle handle = 0;
    auto const error = map(*endpoint, flags, ptr, len, base, count, handle, mx);
    if (error == -EBUSY) return fail(error, "a Bufx of these has memory already");
    if (error == 0) *mhandle = reinterpret_cast<st_mhandle_t>(handle);
    return error;
  });
}

int st_unmap(st_mhandle_t mhandle) {
  return guarded([&] {
    auto const region = stp::client::retire<Region>(reinterpret_cast<Handle>(mhandle));
    return region ? region->unmap() : -EBADF;
  });
}

int st_mx_alloc(st_chandle_t chandle, st_mhandle_t mhandle, int* mx) {
  return guarded([&] {
    auto const connection = find<Connection>(chandle);
    auto const region = find<Region>(mhandle);
    if (!connection || !region) return -EBADF;
    if (mx == nullptr) return fail(-EINVAL, "argument 'mx' is NULL");
    if (region->direction() != Direction::kReceive)
      return fail(-EINVAL, "an Mx names receive memory, this is mapped with ST_MAP_TX");
    if (&region->endpoint() != &connection->endpoint())
      return fail(-EINVAL, "the memory is mapped on another endpoint");
    std::uint16_t allocated = 0;
    auto const error = region->allocate_mx(connection->vc(), allocated);
    if (error == 0) *mx = allocated;
    return error;
  });
}

int st_mx_free(st_chandle_t chandle, int mx) {
  return guarded([&] {
    auto const connection = find<Connection>(chandle);
    if (!connection) return -EBADF;
    if (mx < 0 || mx > 0xffff) return fail(-ERANGE, "an Mx is a number of 16 bits");
    return connection->free_mx(static_cast<std::uint16_t>(mx));
  });
}
