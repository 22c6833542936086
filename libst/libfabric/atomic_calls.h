// SPDX-License-Identifier: BSD-3-Clause
// The calls of FI_ATOMIC, the same for endpoints of either kind. An `End` has tx_flags(), and
// fetch(request, to, target, function).
#pragma once

#include "libst/libfabric/atomics.h"
#include "libst/libfabric/op.h"
#include "libst/libfabric/provider.h"

namespace stp::fi {

// What one call says.
struct AtomicCall {
  void* context = nullptr;
  std::uint64_t flags = 0;
  fi_addr_t to = FI_ADDR_UNSPEC;
  Target target;
  Function function;
  std::size_t count = 1;  // of numbers
};

// 0: an endpoint may begin it.
int check_atomic(const AtomicCall& call);
// A call with a message: 0, or what is wrong with it. `call` has the function.
int read_message(const fi_msg_atomic& msg, std::uint64_t flags, AtomicCall& call);
// Of vectors: one number in one segment. nullptr: there is none.
void* only(const fi_ioc* iov, std::size_t count);
int is_valid_atomic(fi_datatype type, fi_op op, std::size_t* count, Function::Kind kind);

template <class End>
class AtomicCalls {
  using Kind = Function::Kind;

  static End& end_of(fid_ep* ep) { return *static_cast<End*>(ep); }
  static ssize_t fetch(fid_ep* ep, const AtomicCall& call) {
    return guarded([&]() -> ssize_t {
      if (const auto error = check_atomic(call); error != 0) return error;
      return end_of(ep).fetch({.segments = {}, .context = call.context, .flags = call.flags},
                              call.to, call.target, call.function);
    });
  }
  static ssize_t fetch(fid_ep* ep, void* context, fi_addr_t to, const Target& target,
                       const Function& function, std::size_t count) {
    return fetch(ep, {context, end_of(ep).tx_flags(), to, target, function, count});
  }
  static ssize_t fetch(fid_ep* ep, const fi_msg_atomic* msg, std::uint64_t flags,
                       const Function& function) {
    AtomicCall call{.target = {}, .function = function};
    const auto error = read_message(*msg, flags, call);
    return error != 0 ? error : fetch(ep, call);
  }

 public:
  static inline fi_ops_atomic table{
      .size = sizeof(fi_ops_atomic),
      .write =
          [](fid_ep* ep, const void* buffer, std::size_t count, void*, fi_addr_t to,
             std::uint64_t address, std::uint64_t key, fi_datatype type, fi_op op, void* context) {
            return fetch(ep, context, to, {address, key}, {Kind::kPlain, type, op, buffer}, count);
          },
      .writev =
          [](fid_ep* ep, const fi_ioc* iov, void**, std::size_t count, fi_addr_t to,
             std::uint64_t address, std::uint64_t key, fi_datatype type, fi_op op, void* context) {
            return fetch(ep, context, to, {address, key},
                         {Kind::kPlain, type, op, only(iov, count)}, 1);
          },
      .writemsg = [](fid_ep* ep, const fi_msg_atomic* msg,
                     std::uint64_t flags) { return fetch(ep, msg, flags, {.kind = Kind::kPlain}); },
      .inject =
          [](fid_ep* ep, const void* buffer, std::size_t count, fi_addr_t to, std::uint64_t address,
             std::uint64_t key, fi_datatype type, fi_op op) {
            return fetch(ep, {nullptr,
                              FI_INJECT | kUntold,
                              to,
                              {address, key},
                              {Kind::kPlain, type, op, buffer},
                              count});
          },
      .readwrite =
          [](fid_ep* ep, const void* buffer, std::size_t count, void*, void* result, void*,
             fi_addr_t to, std::uint64_t address, std::uint64_t key, fi_datatype type, fi_op op,
             void* context) {
            return fetch(ep, context, to, {address, key},
                         {Kind::kFetch, type, op, buffer, nullptr, result}, count);
          },
      .readwritev =
          [](fid_ep* ep, const fi_ioc* iov, void**, std::size_t count, fi_ioc* results, void**,
             std::size_t result_count, fi_addr_t to, std::uint64_t address, std::uint64_t key,
             fi_datatype type, fi_op op, void* context) {
            return fetch(
                ep, context, to, {address, key},
                {Kind::kFetch, type, op, only(iov, count), nullptr, only(results, result_count)},
                1);
          },
      .readwritemsg =
          [](fid_ep* ep, const fi_msg_atomic* msg, fi_ioc* results, void**,
             std::size_t result_count, std::uint64_t flags) {
            return fetch(ep, msg, flags,
                         {.kind = Kind::kFetch, .result = only(results, result_count)});
          },
      .compwrite =
          [](fid_ep* ep, const void* buffer, std::size_t count, void*, const void* compare, void*,
             void* result, void*, fi_addr_t to, std::uint64_t address, std::uint64_t key,
             fi_datatype type, fi_op op, void* context) {
            return fetch(ep, context, to, {address, key},
                         {Kind::kCompare, type, op, buffer, compare, result}, count);
          },
      .compwritev =
          [](fid_ep* ep, const fi_ioc* iov, void**, std::size_t count, const fi_ioc* compares,
             void**, std::size_t compare_count, fi_ioc* results, void**, std::size_t result_count,
             fi_addr_t to, std::uint64_t address, std::uint64_t key, fi_datatype type, fi_op op,
             void* context) {
            return fetch(ep, context, to, {address, key},
                         {Kind::kCompare, type, op, only(iov, count), only(compares, compare_count),
                          only(results, result_count)},
                         1);
          },
      .compwritemsg =
          [](fid_ep* ep, const fi_msg_atomic* msg, const fi_ioc* compares, void**,
             std::size_t compare_count, fi_ioc* results, void**, std::size_t result_count,
             std::uint64_t flags) {
            return fetch(ep, msg, flags,
                         {.kind = Kind::kCompare,
                          .compare = only(compares, compare_count),
                          .result = only(results, result_count)});
          },
      .writevalid =
          [](fid_ep*, fi_datatype type, fi_op op, std::size_t* count) {
            return is_valid_atomic(type, op, count, Kind::kPlain);
          },
      .readwritevalid =
          [](fid_ep*, fi_datatype type, fi_op op, std::size_t* count) {
            return is_valid_atomic(type, op, count, Kind::kFetch);
          },
      .compwritevalid =
          [](fid_ep*, fi_datatype type, fi_op op, std::size_t* count) {
            return is_valid_atomic(type, op, count, Kind::kCompare);
          },
  };
};

}  // namespace stp::fi
