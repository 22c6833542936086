// SPDX-License-Identifier: BSD-3-Clause
// What the functions of the managed C API have in common.
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

// A structure that may have been smaller, or may be larger, where the program was compiled.
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
  auto const size = out->size;
  std::memcpy(out, &known, std::min(size, sizeof known));
  out->size = size;
  return 0;
}

// Of microseconds, which are not negative.
inline Time duration(std::int64_t microseconds) {
  constexpr std::int64_t kMost = INT64_MAX / static_cast<std::int64_t>(kMicrosecond) / 2;
  return static_cast<Time>(std::min(microseconds, kMost)) * kMicrosecond;
}
// When a timeout in microseconds is over.
inline Time deadline_of(std::int64_t timeout) {
  return timeout < 0 ? kNever : client::now() + duration(timeout);
}

// Makes `object` known by a handle of `domain`. 0: no more handles.
template <typename Object>
Handle publish(Domain& domain, const std::shared_ptr<Object>& object) {
  auto const handle = client::HandleTable::instance().add(Object::kKind, object);
  if (handle == 0) return 0;
  std::lock_guard const guard(domain.mutex());
  domain.adopt(handle, Object::kKind);
  return handle;
}

template <typename Object>
int publish(Domain& domain, const std::shared_ptr<Object>& object, auto* out) {
  auto const handle = publish(domain, object);
  if (handle == 0) return fail(-EMFILE, "too many handles");
  *out = reinterpret_cast<std::remove_pointer_t<decltype(out)>>(handle);
  return 0;
}

template <typename Object>
client::Ref<Object> retire(const void* handle) {
  return client::retire<Object>(reinterpret_cast<Handle>(handle));
}

// The part of `memory` that an operation is about. `given`: it was not NULL, which is legal for no
// bytes.
int check_part(const Memory* memory, bool given, const void* ptr, std::size_t length, bool written);

// 0, with the queues that `attr` names.
int find_outlets(Domain& domain, const stm_connection_attr_t& attr, Connection::Outlets& out);
int read_private_data(const void* data, std::size_t length, Hello& out);

}  // namespace stp::managed::api
