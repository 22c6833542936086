// SPDX-License-Identifier: BSD-3-Clause
// Helpers of the functions of the managed C API.
#pragma once

#include <algorithm>
#include <cstring>
#include <string>

#include "libst/client/error.h"
#include "libst/client/wait.h"
#include "libst/managed/connection.h"

namespace stp::managed::api {

using client::fail;
using client::find;
using client::guarded;

inline int missing(const char* argument) {
  return fail(-EINVAL, std::string("argument '") + argument + "' is NULL");
}

// Copies a structure whose size may differ in the program: older programs have a smaller one, newer
// programs a larger one.
template <typename Attributes>
int read_attributes(const Attributes* given, Attributes& out) {
  out = {};
  if (given == nullptr) return 0;
  if (given->size < sizeof(std::size_t))
    return fail(-EINVAL, "'size' of the attributes is not set");
  std::memcpy(&out, given, std::min(given->size, sizeof out));
  return 0;
}
template <typename Info>
int write_info(const Info& known, Info* out) {
  if (out == nullptr) return missing("info");
  if (out->size < sizeof(std::size_t)) return fail(-EINVAL, "'size' of the info is not set");
  const auto size = out->size;
  std::memcpy(out, &known, std::min(size, sizeof known));
  out->size = size;
  return 0;
}

// `microseconds` must not be negative.
inline Time duration(std::int64_t microseconds) {
  constexpr std::int64_t kMost = INT64_MAX / static_cast<std::int64_t>(kMicrosecond) / 2;
  return static_cast<Time>(std::min(microseconds, kMost)) * kMicrosecond;
}
// The deadline of a timeout in microseconds; a negative timeout never expires.
inline Time deadline_of(std::int64_t timeout) {
  return timeout < 0 ? kNever : client::now() + duration(timeout);
}

// Makes a handle of `domain` for `object`. 0: no handle is free.
template <typename Object>
Handle publish(Domain& domain, const std::shared_ptr<Object>& object) {
  const auto handle = client::HandleTable::instance().add(Object::kKind, object);
  if (handle == 0) return 0;
  const stp::Lock guard(domain.mutex());
  domain.adopt(handle, Object::kKind);
  return handle;
}

template <typename Object>
int publish(Domain& domain, const std::shared_ptr<Object>& object, auto* out) {
  const auto handle = publish(domain, object);
  if (handle == 0) return fail(-EMFILE, "too many handles");
  *out = reinterpret_cast<std::remove_pointer_t<decltype(out)>>(handle);
  return 0;
}

template <typename Object>
client::Ref<Object> retire(const void* handle) {
  return client::retire<Object>(reinterpret_cast<Handle>(handle));
}

// Checks the part of `memory` that an operation uses. `given`: the argument was not NULL; NULL is
// legal for zero bytes.
int what_is_wrong(const Memory* memory, bool given, const void* ptr, std::size_t length);
inline int check_part(const Memory* memory, bool given, const void* ptr, std::size_t length,
                      bool written) {
  const bool good = memory != nullptr
                        ? memory->contains(ptr, length) && (!written || memory->writable())
                        : !given && length == 0;
  return good ? 0 : what_is_wrong(memory, given, ptr, length);
}

int other_domain();

// Gives `post` what a program posts to `object`, a connection or a pool: where to receive a
// message.
template <typename Object, typename Post>
int post_receive(Object& object, std::uint64_t context, stm_memory_t memory, void* ptr,
                 std::size_t length, Post&& post) {
  const auto into = find<Memory>(memory);
  if (const auto error = check_part(into.get(), memory != nullptr, ptr, length, true); error != 0)
    return error;
  auto& domain = *object.domain();
  if (into && into->domain().get() != &domain) return other_domain();
  const stp::Lock guard(domain.mutex());
  PostedReceive receive;
  receive.context = context;
  if (into) receive.memory = MemoryUse(into.share());
  receive.ptr = ptr;
  receive.length = length;
  return post(domain, std::move(receive));
}

}  // namespace stp::managed::api
