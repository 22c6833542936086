// SPDX-License-Identifier: BSD-3-Clause
// The managed C API: receives and operations.
#include <limits>

#include "libst/managed/api.h"

using stp::managed::Connection;
using stp::managed::Domain;
using stp::managed::Memory;
using stp::managed::MemoryUse;
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

}  // namespace stp::managed::api

namespace {

constexpr unsigned kAllFlags = STM_QUIET | STM_FENCE | STM_URGENT | STM_LAZY;
constexpr std::size_t kWord = 8;

[[gnu::noinline]] int other_domain() {
  return fail(-EINVAL, "the memory is of another domain");
}

// The caller holds the domain's mutex.
int post_one(Connection& connection, stm_memory_t memory, Operation& operation, bool written) {
  if ((operation.flags & ~kAllFlags) != 0) return fail(-EINVAL, "flags has unknown bits");
  auto& domain = *connection.domain();
  const bool given = memory != nullptr;
  if (given) operation.memory = domain.find_memory(reinterpret_cast<stp::client::Handle>(memory));
  if (given && operation.memory == nullptr && find<Memory>(memory)) return other_domain();
  if (const auto error =
          check_part(operation.memory, given, operation.ptr, operation.length, written);
      error != 0)
    return error;
  return connection.post(operation);
}

// Runs once per operation, so it is one function.
[[gnu::flatten]] int post(stm_connection_t handle, stm_memory_t memory, Operation&& operation,
                          bool written) {
  const auto connection = find<Connection>(handle);
  if (!connection) return -EBADF;
  const stp::Lock guard(connection->domain()->mutex());
  return post_one(*connection, memory, operation, written);
}

int not_empty(std::size_t length) {
  return length != 0 ? 0 : fail(-EINVAL, "length must not be 0");
}

Operation operation(Operation::Kind kind, std::uint64_t context, unsigned flags, const void* ptr,
                    std::size_t length) {
  Operation operation;
  operation.kind = kind;
  operation.context = context;
  operation.flags = flags;
  operation.ptr = const_cast<void*>(ptr);  // written to only after a check that this is allowed
  operation.length = length;
  return operation;
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
  auto posted = operation(kind, wanted.context, wanted.flags, wanted.ptr, wanted.length);
  posted.tag = wanted.tag;
  posted.key = wanted.key;
  posted.address = wanted.address;
  return post_one(connection, wanted.memory, posted, written);
}

}  // namespace

int stm_receive(stm_connection_t connection, uint64_t context, stm_memory_t memory, void* ptr,
                size_t length) {
  return guarded([&] {
    const auto found = find<Connection>(connection);
    const auto into = find<Memory>(memory);
    if (!found) return -EBADF;
    if (const auto error = check_part(into.get(), memory != nullptr, ptr, length, true); error != 0)
      return error;
    auto& domain = *found->domain();
    if (into && into->domain().get() != &domain) return other_domain();
    const stp::Lock guard(domain.mutex());
    PostedReceive receive;
    receive.context = context;
    if (into) receive.memory = MemoryUse(into.share());
    receive.ptr = ptr;
    receive.length = length;
    return found->post_receive(std::move(receive));
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
    auto sending = operation(Operation::Kind::kSend, context, flags, ptr, length);
    sending.tag = tag;
    return post(connection, memory, std::move(sending), false);
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
    const auto length = bytes.length();
    if (length > stp::managed::eager_most(stp::managed::kEagerSpan))
      return fail(-EMSGSIZE, "a message of that length never begins at once");
    auto sending = operation(Operation::Kind::kSend, context, flags, nullptr, length);
    sending.tag = tag;
    const stp::Lock guard(found->domain()->mutex());
    return found->send_at_once(sending, bytes);
  });
}

int stm_read(stm_connection_t connection, uint64_t context, unsigned flags, stm_memory_t memory,
             void* ptr, size_t length) {
  return guarded([&] {
    if (const auto error = not_empty(length); error != 0) return error;
    return post(connection, memory, operation(Operation::Kind::kRead, context, flags, ptr, length),
                true);
  });
}

int stm_serve_read(stm_connection_t connection, uint32_t request, uint64_t context, unsigned flags,
                   stm_memory_t memory, const void* ptr, size_t length) {
  return guarded([&] {
    auto serving = operation(Operation::Kind::kServe, context, flags, ptr, length);
    serving.request = request;
    return post(connection, memory, std::move(serving), false);
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
    auto putting = operation(Operation::Kind::kPut, context, flags, ptr, length);
    putting.key = key;
    putting.address = address;
    return post(connection, memory, std::move(putting), false);
  });
}

int stm_get(stm_connection_t connection, uint64_t context, unsigned flags, stm_memory_t memory,
            void* ptr, size_t length, uint32_t key, uint64_t address) {
  return guarded([&] {
    if (const auto error = not_empty(length); error != 0) return error;
    auto getting = operation(Operation::Kind::kGet, context, flags, ptr, length);
    getting.key = key;
    getting.address = address;
    return post(connection, memory, std::move(getting), true);
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
    auto fetching = operation(Operation::Kind::kFetch, context, flags, ptr, kWord);
    fetching.function = static_cast<stp::wire::Function>(op);
    fetching.operand = operand;
    fetching.compare = compare;
    fetching.key = key;
    fetching.address = address;
    return post(connection, memory, std::move(fetching), true);
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
