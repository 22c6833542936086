// SPDX-License-Identifier: BSD-3-Clause
// The managed C API: receives and operations.
#include <limits>

#include "libst/managed/api.h"

using stp::managed::Connection;
using stp::managed::Domain;
using stp::managed::Memory;
using stp::managed::Operation;
using stp::managed::Pieces;
using stp::managed::PostedReceive;
using namespace stp::managed::api;

namespace stp::managed::api {

[[gnu::noinline]] int what_is_wrong(const Memory* memory, bool given, const void* ptr,
                                    std::size_t length) {
  if (!given) return missing("memory");
  if (memory == nullptr) return -EBADF;
  if (!memory->contains(ptr, length)) return fail(-EINVAL, "these bytes are not in the memory");
  return fail(-EACCES, "the memory was not registered with STM_LOCAL_WRITE");
}

[[gnu::noinline]] int other_domain() {
  return fail(-EINVAL, "the memory is of another domain");
}

}  // namespace stp::managed::api

namespace {

constexpr unsigned kAllFlags = STM_QUIET | STM_FENCE | STM_URGENT | STM_LAZY;
constexpr std::size_t kWord = 8;

// Posts what has been filled in. The caller holds the domain's mutex.
int post(Connection& connection, Operation& draft, stm_memory_t memory, bool written) {
  if ((draft.flags & ~kAllFlags) != 0) return fail(-EINVAL, "flags has unknown bits");
  auto& domain = *connection.domain();
  const bool given = memory != nullptr;
  if (given) draft.memory = domain.find_memory(reinterpret_cast<stp::client::Handle>(memory));
  if (given && draft.memory == nullptr && find<Memory>(memory)) return other_domain();
  if (const auto error = check_part(draft.memory, given, draft.ptr, draft.length, written);
      error != 0)
    return error;
  return connection.post();
}

// What all operations have.
struct Posting {
  Operation::Kind kind;
  std::uint64_t context;
  unsigned flags;
  stm_memory_t memory;
  const void* ptr;
  std::size_t length;
  bool written;
};

// `fill` adds what is peculiar to one. Runs once per operation, so it is one function.
template <typename Fill>
[[gnu::always_inline]] inline int post(Connection& connection, const Posting& posting,
                                       const Fill& fill) {
  auto& draft = connection.draft();
  draft.clear();
  draft.kind = posting.kind;
  draft.flags = posting.flags;
  draft.context = posting.context;
  draft.ptr = const_cast<void*>(posting.ptr);  // written to only after a check that this is allowed
  draft.length = posting.length;
  fill(draft);
  return post(connection, draft, posting.memory, posting.written);
}

template <typename Fill>
[[gnu::flatten]] int post(stm_connection_t handle, const Posting& posting, const Fill& fill) {
  const auto connection = find<Connection>(handle);
  if (!connection) return -EBADF;
  const stp::Lock guard(connection->domain()->mutex());
  return post(*connection, posting, fill);
}

int not_empty(std::size_t length) {
  return length != 0 ? 0 : fail(-EINVAL, "length must not be 0");
}

// Posts one operation of a list.
int post_listed(Connection& connection, const stm_operation_t& wanted) {
  using Kind = Operation::Kind;
  if (wanted.reserved != 0) return fail(-EINVAL, "reserved is not 0");
  auto kind = Kind::kPut;
  bool written = false;
  switch (wanted.kind) {
    case STM_SEND:
      kind = Kind::kSend;
      break;
    case STM_PUT:
      break;
    case STM_READ:
    case STM_GET:
      if (const auto error = not_empty(wanted.length); error != 0) return error;
      kind = wanted.kind == STM_READ ? Kind::kRead : Kind::kGet;
      written = true;
      break;
    default:
      return fail(-EINVAL, "kind is none of STM_SEND, STM_READ, STM_PUT and STM_GET");
  }
  return post(
      connection,
      {kind, wanted.context, wanted.flags, wanted.memory, wanted.ptr, wanted.length, written},
      [&](Operation& draft) {
        draft.tag = wanted.tag;
        draft.key = wanted.key;
        draft.address = wanted.address;
      });
}

}  // namespace

int stm_receive(stm_connection_t connection, uint64_t context, stm_memory_t memory, void* ptr,
                size_t length) {
  return guarded([&] {
    const auto found = find<Connection>(connection);
    if (!found) return -EBADF;
    return post_receive(
        *found, context, memory, ptr, length,
        [&](Domain&, PostedReceive&& receive) { return found->post_receive(std::move(receive)); });
  });
}

int stm_set_watermark(stm_connection_t connection, uint64_t receives) {
  return guarded([&] {
    const auto found = find<Connection>(connection);
    if (!found) return -EBADF;
    const stp::Lock guard(found->domain()->mutex());
    return found->set_watermark(receives);
  });
}

int stm_send(stm_connection_t connection, uint64_t context, unsigned flags, uint32_t tag,
             stm_memory_t memory, const void* ptr, size_t length) {
  return guarded([&] {
    return post(connection, {Operation::Kind::kSend, context, flags, memory, ptr, length, false},
                [&](Operation& draft) { draft.tag = tag; });
  });
}

int stm_send_short(stm_connection_t connection, uint64_t context, unsigned flags, uint32_t tag,
                   const void* head, size_t head_length, const struct iovec* parts, size_t count) {
  return guarded([&] {
    const auto found = find<Connection>(connection);
    if (!found) return -EBADF;
    if ((flags & ~kAllFlags) != 0) return fail(-EINVAL, "flags has unknown bits");
    if (head_length > STM_HEAD) return fail(-EINVAL, "head_length is more than STM_HEAD");
    if (head == nullptr && head_length != 0) return missing("head");
    if (parts == nullptr && count != 0) return missing("parts");
    const Pieces bytes{head, head_length, {parts, count}};
    if (bytes.lacks_some()) return missing("parts[].iov_base");
    const auto length = bytes.length();
    if (length > stp::managed::eager_most(stp::managed::kEagerSpan))
      return fail(-EMSGSIZE, "a message of that length never begins at once");
    const stp::Lock guard(found->domain()->mutex());
    auto& draft = found->draft();
    draft.clear();
    draft.kind = Operation::Kind::kSend;
    draft.ptr = nullptr;
    draft.flags = flags;
    draft.context = context;
    draft.length = length;
    draft.tag = tag;
    return found->send_at_once(bytes);
  });
}

int stm_read(stm_connection_t connection, uint64_t context, unsigned flags, stm_memory_t memory,
             void* ptr, size_t length) {
  return guarded([&] {
    if (const auto error = not_empty(length); error != 0) return error;
    return post(connection, {Operation::Kind::kRead, context, flags, memory, ptr, length, true},
                [](Operation&) {});
  });
}

int stm_serve_read(stm_connection_t connection, uint32_t request, uint64_t context, unsigned flags,
                   stm_memory_t memory, const void* ptr, size_t length) {
  return guarded([&] {
    return post(connection, {Operation::Kind::kServe, context, flags, memory, ptr, length, false},
                [&](Operation& draft) { draft.request = request; });
  });
}

int stm_refuse_read(stm_connection_t connection, uint32_t request) {
  return guarded([&] {
    const auto found = find<Connection>(connection);
    if (!found) return -EBADF;
    const stp::Lock guard(found->domain()->mutex());
    return found->refuse_read(request);
  });
}

int stm_put(stm_connection_t connection, uint64_t context, unsigned flags, stm_memory_t memory,
            const void* ptr, size_t length, uint32_t key, uint64_t address) {
  return guarded([&] {
    return post(connection, {Operation::Kind::kPut, context, flags, memory, ptr, length, false},
                [&](Operation& draft) {
                  draft.key = key;
                  draft.address = address;
                });
  });
}

int stm_get(stm_connection_t connection, uint64_t context, unsigned flags, stm_memory_t memory,
            void* ptr, size_t length, uint32_t key, uint64_t address) {
  return guarded([&] {
    if (const auto error = not_empty(length); error != 0) return error;
    return post(connection, {Operation::Kind::kGet, context, flags, memory, ptr, length, true},
                [&](Operation& draft) {
                  draft.key = key;
                  draft.address = address;
                });
  });
}

int stm_post_list(stm_connection_t connection, const stm_operation_t* operations, size_t count) {
  return guarded([&] {
    const auto found = find<Connection>(connection);
    if (!found) return -EBADF;
    if (operations == nullptr && count != 0) return missing("operations");
    if (count > static_cast<std::size_t>(std::numeric_limits<int>::max()))
      return fail(-EINVAL, "count is more than INT_MAX");
    auto& domain = *found->domain();
    const stp::Lock guard(domain.mutex());
    Domain::PostingList list(domain);
    for (std::size_t i = 0; i < count; ++i) {
      if (const auto error = post_listed(*found, operations[i]); error != 0)
        return i != 0 ? static_cast<int>(i) : error;
      list.posted(operations[i].length);
    }
    return static_cast<int>(count);
  });
}

int stm_fetch(stm_connection_t connection, uint64_t context, unsigned flags, enum stm_fetch_op op,
              uint64_t operand, uint64_t compare, stm_memory_t memory, void* ptr, uint32_t key,
              uint64_t address) {
  return guarded([&] {
    if (op < STM_FETCH_INCREMENT || op > STM_COMPARE_AND_SWAP)
      return fail(-EINVAL, "op is none of enum stm_fetch_op");
    if (reinterpret_cast<std::uintptr_t>(ptr) % kWord != 0)
      return fail(-EINVAL, "ptr is not aligned to 8 bytes");
    return post(connection, {Operation::Kind::kFetch, context, flags, memory, ptr, kWord, true},
                [&](Operation& draft) {
                  draft.function = static_cast<stp::wire::Function>(op);
                  draft.operands = {.operand = operand, .compare = compare};
                  draft.key = key;
                  draft.address = address;
                });
  });
}

int stm_cancel(stm_connection_t connection, uint64_t context) {
  return guarded([&] {
    const auto found = find<Connection>(connection);
    if (!found) return -EBADF;
    const stp::Lock guard(found->domain()->mutex());
    return found->cancel(context);
  });
}

int stm_withdraw(stm_connection_t connection, uint64_t context) {
  return guarded([&] {
    const auto found = find<Connection>(connection);
    if (!found) return -EBADF;
    const stp::Lock guard(found->domain()->mutex());
    return found->withdraw(context);
  });
}
