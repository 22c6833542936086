// SPDX-License-Identifier: BSD-3-Clause
// A provider of DAT: handles, and what is the same in all calls. Its sources are compiled for each
// interface, 1.2 and 2.0, against that one's headers; interface.h is the one in dat1/provider/ or
// dat2/, which has what differs.
#pragma once

#include <netinet/in.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

#include "interface.h"
#include "libst/udapl/core/ia.h"
#include "libst/udapl/core/memory.h"
#include "libst/udapl/core/service_point.h"
#include "libst/udapl/core/srq.h"
#include "stp/base/fetch_ahead.h"
#include "stp/base/mutex.h"

namespace stp::udapl::front {

// What a DAT handle points to. The registry reads the first word, also of a stale one: so shells
// are never freed, but used again.
struct alignas(2 * kCacheLine) Shell {
  const DAT_PROVIDER* provider = nullptr;
  std::atomic<Mutex*> mutex{nullptr};  // of the object's IA: under it the object stays
  std::shared_ptr<Object> object;
  sockaddr_in local{}, remote{};    // what queries give out the addresses of: of an IA, of an EP
  DAT_OS_WAIT_PROXY_AGENT agent{};  // of a CNO
};

DAT_HANDLE add_shell(const DAT_PROVIDER* provider, std::shared_ptr<Object> object);
// Null: no handle of ours, or of an object that is no more.
std::shared_ptr<Object> find_object(DAT_HANDLE handle);
// Locks the mutex of the object's IA, and returns it. nullptr: as find_object(), and nothing is
// locked.
Mutex* lock_object(DAT_HANDLE handle) STP_THREAD_SAFETY(no_thread_safety_analysis);
void drop_shell(DAT_HANDLE handle);
// Its own and those of all that lived on it.
void drop_shells_of(Ia& ia);
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

// An object that stays because this holds its IA's mutex: for calls that move data, which so take
// one lock. False: as where find() returns nullptr.
template <typename Wanted, Object::Kind kKind>
class Held {
 public:
  explicit Held(DAT_HANDLE handle) STP_THREAD_SAFETY(no_thread_safety_analysis)
      : mutex_(lock_object(handle)) {
    if (mutex_ == nullptr) return;
    auto* const object = shell_of(handle).object.get();
    if (is_one_of<kKind>(*object)) object_ = static_cast<Wanted*>(object);
  }
  ~Held() STP_THREAD_SAFETY(no_thread_safety_analysis) {
    if (mutex_ != nullptr) mutex_->unlock();
  }
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;

  explicit operator bool() const { return object_ != nullptr; }
  Wanted* operator->() const { return object_; }

 private:
  Mutex* const mutex_;
  Wanted* object_ = nullptr;
};
using HeldEvd = Held<Evd, Object::Kind::kEvd>;
using HeldEp = Held<Ep, Object::Kind::kEp>;
using HeldSrq = Held<Srq, Object::Kind::kSrq>;

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
inline auto find_ep(DAT_HANDLE h) {
  return find<Ep, Object::Kind::kEp>(h);
}
inline auto find_srq(DAT_HANDLE h) {
  return find<Srq, Object::Kind::kSrq>(h);
}
inline auto find_lmr(DAT_HANDLE h) {
  return find<Lmr, Object::Kind::kLmr>(h);
}

inline auto find_rmr(DAT_HANDLE h) {
  return find<Rmr, Object::Kind::kRmr>(h);
}
inline auto find_cr(DAT_HANDLE h) {
  return find<Cr, Object::Kind::kCr>(h);
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
  const auto result = object->free();
  if (result == Result::kSuccess) drop_shell(handle);
  return to_dat(result);
}

// What a decision on a request said: it destroys it.
inline DAT_RETURN decided(DAT_CR_HANDLE handle, Result result) {
  if (result == Result::kSuccess) drop_shell(handle);
  return to_dat(result);
}

inline DAT_HANDLE handle_of(const std::shared_ptr<const Object>& object) {
  return object ? object->handle() : DAT_HANDLE_NULL;
}
template <std::size_t kSize>
void copy_name(char (&to)[kSize], std::string_view from) {
  const auto length = std::min(from.size(), kSize - 1);
  std::copy_n(from.begin(), length, to);
  to[length] = '\0';
}
// Over UDP its port is the UDP port.
sockaddr_in address_of(std::uint32_t ipv4, std::uint16_t udp_port);
// The IA's address, which is the present one as of each of these calls.
DAT_IA_ADDRESS_PTR local_address(const Ia& ia);
// Whether `size` bytes of private data may be at `data`.
inline bool is_data(DAT_COUNT size, const void* data) {
  return size == 0 || (size > 0 && data != nullptr);
}
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
Registration& registration_for(const DAT_PROVIDER_INFO& info, const char* link);
const Registration& registration_of(DAT_HANDLE handle);

// dat_lmr_create and dat_rmr_bind, whose arguments differ.
struct LmrRequest {
  DAT_MEM_TYPE type;
  DAT_REGION_DESCRIPTION region;
  DAT_VLEN length;
  DAT_PZ_HANDLE pz;
  DAT_MEM_PRIV_FLAGS privileges;
  bool zero_based;
};
// Where the call puts what it made; any but the handle may be null.
struct LmrResult {
  DAT_LMR_HANDLE* handle;
  DAT_LMR_CONTEXT* lmr_context;
  DAT_RMR_CONTEXT* rmr_context;
  DAT_VLEN* length;
  DAT_VADDR* address;
};
DAT_RETURN create_lmr(DAT_IA_HANDLE ia, const LmrRequest& request, const LmrResult& out);
struct BindRequest {
  const DAT_LMR_TRIPLET* triplet;
  DAT_MEM_PRIV_FLAGS privileges;
  bool zero_based;
  DAT_EP_HANDLE ep;
  DAT_RMR_COOKIE cookie;
  DAT_COMPLETION_FLAGS flags;
};
DAT_RETURN bind_rmr(DAT_RMR_HANDLE rmr, const BindRequest& request, DAT_RMR_CONTEXT* out);

// ---- what differs: in dat1/provider/ and dat2/ ----

// The IA's handle as calls of the interface take it.
DAT_IA_HANDLE consumers_ia(const Ia& ia);
// The calls that only this interface has, or that take other arguments in the other.
void fill_own(DAT_PROVIDER& table);
// Attributes that only this interface has, or that say another thing in the other.
void fill_own(const Registration& registration, DAT_IA_ATTR& attr);
void fill_own(DAT_PROVIDER_ATTR& attr);
void fill_own(const Event& event, DAT_DTO_COMPLETION_EVENT_DATA& data);
void fill_own(const Lmr::Attr& attr, DAT_LMR_PARAM& param);
void fill_own(DAT_RMR_PARAM& param);
// How the CNO tells of a trigger to whom does not wait in it.
void fill_own(const Cno& cno, const DAT_OS_WAIT_PROXY_AGENT& agent, DAT_CNO_PARAM& param);

// Segment lists of DAT as those of the core.
class Segments {
 public:
  Segments(const DAT_LMR_TRIPLET* given, DAT_COUNT count)
      : valid_(count >= 0 && count <= kMaxIov && (count == 0 || given != nullptr)) {
    if (!valid_) return;
    count_ = static_cast<std::size_t>(count);
    for (std::size_t i = 0; i < count_; ++i)
      segments_[i] = {given[i].virtual_address, given[i].segment_length, given[i].lmr_context};
  }
  [[nodiscard]] bool valid() const { return valid_; }
  [[nodiscard]] std::span<const LmrTriplet> get() const { return {segments_.data(), count_}; }

 private:
  bool valid_;
  std::size_t count_ = 0;
  std::array<LmrTriplet, kMaxIov> segments_;
};

}  // namespace stp::udapl::front
