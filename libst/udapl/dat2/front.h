// SPDX-License-Identifier: BSD-3-Clause
// The front for libdat2 (uDAPL 2.0): handles, and what is the same in all calls.
#pragma once

#include <dat2/udat.h>
// The registry's header wants udat.h before it.
#include <dat2/dat_registry.h>
#include <netinet/in.h>

#include <memory>
#include <span>
#include <type_traits>

#include "libst/udapl/core/ia.h"

namespace stp::udapl::dat2 {

// What a DAT handle points to. The registry reads the first word, also of a stale one: so shells
// are never freed, but used again.
struct Shell {
  const DAT_PROVIDER* provider = nullptr;
  std::shared_ptr<Object> object;
  sockaddr_in local{}, remote{};  // whose addresses queries give out
};

DAT_HANDLE add_shell(const DAT_PROVIDER* provider, std::shared_ptr<Object> object);
// Null: no handle of ours, or of an object that is no more.
std::shared_ptr<Object> find_object(DAT_HANDLE handle);
void drop_shell(DAT_HANDLE handle);
inline Shell& shell_of(DAT_HANDLE handle) {
  return *static_cast<Shell*>(handle);
}

template <Object::Kind... kKinds>
bool is_one_of(const Object& object) {
  return ((object.kind() == kKinds) || ...);
}

// The object of a handle, if it is of (one of) the kinds.
template <typename Wanted, Object::Kind... kKinds>
std::shared_ptr<Wanted> find(DAT_HANDLE handle) {
  auto object = find_object(handle);
  if (!object || !is_one_of<kKinds...>(*object)) return nullptr;
  return std::static_pointer_cast<Wanted>(std::move(object));
}
inline auto find_ia(DAT_HANDLE h) {
  return find<Ia, Object::Kind::kIa>(h);
}
inline auto find_pz(DAT_HANDLE h) {
  return find<Pz, Object::Kind::kPz>(h);
}
inline auto find_evd(DAT_HANDLE h) {
  return find<Evd, Object::Kind::kEvd>(h);
}
inline auto find_cno(DAT_HANDLE h) {
  return find<Cno, Object::Kind::kCno>(h);
}
inline auto find_srq(DAT_HANDLE h) {
  return find<Srq, Object::Kind::kSrq>(h);
}
inline auto find_lmr(DAT_HANDLE h) {
  return find<Lmr, Object::Kind::kLmr>(h);
}

// Optional handles: false where one is given that is none.
template <typename Wanted, Object::Kind kKind>
bool find_optional(DAT_HANDLE handle, std::shared_ptr<Wanted>& out) {
  if (handle == DAT_HANDLE_NULL) return true;
  out = find<Wanted, kKind>(handle);
  return out != nullptr;
}

// Without the class bit of errors: programs compare with the bare type.
inline DAT_RETURN error(DAT_RETURN_TYPE type) {
  return static_cast<DAT_RETURN>(type);
}
inline DAT_RETURN to_dat(Result result) {
  return static_cast<DAT_RETURN>(result);
}
inline DAT_RETURN bad_handle() {
  return error(DAT_INVALID_HANDLE);
}
inline DAT_RETURN bad_parameter() {
  return error(DAT_INVALID_PARAMETER);
}

// Gives the new object its handle, of the IA's provider.
DAT_HANDLE publish(DAT_HANDLE ia, const std::shared_ptr<Object>& object);
// What free() said; the handle is none afterwards if it succeeded.
template <typename Freed>
DAT_RETURN free_object(const std::shared_ptr<Freed>& object, DAT_HANDLE handle) {
  if (!object) return bad_handle();
  auto const result = object->free();
  if (result == Result::kSuccess) drop_shell(handle);
  return to_dat(result);
}

inline DAT_HANDLE handle_of(const std::shared_ptr<const Object>& object) {
  return object ? object->handle() : DAT_HANDLE_NULL;
}
// The registry's name of the IA, which its calls take; a provider only knows the pointer.
DAT_IA_HANDLE consumers_ia(const Ia& ia);

sockaddr_in address_of(std::uint32_t ipv4);
std::span<const std::byte> bytes(const void* data, DAT_COUNT size);

// Each puts its calls into the provider's table.
void fill_ia(DAT_PROVIDER& table);
void fill_evd(DAT_PROVIDER& table);
void fill_cno(DAT_PROVIDER& table);
void fill_memory(DAT_PROVIDER& table);
void fill_ep(DAT_PROVIDER& table);
void fill_transfer(DAT_PROVIDER& table);
void fill_connect(DAT_PROVIDER& table);
void fill_srq(DAT_PROVIDER& table);

// What dat.conf says of an IA: its link.
struct Registration {
  DAT_PROVIDER provider;
  DAT_PROVIDER_INFO info;
  std::string link;
};
const Registration* find_registration(const char* name);
const Registration& registration_of(DAT_HANDLE handle);

}  // namespace stp::udapl::dat2
