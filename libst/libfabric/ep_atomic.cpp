// SPDX-License-Identifier: BSD-3-Clause
// FI_ATOMIC, as far as FetchOps carry it.
#include <cstring>

#include "libst/libfabric/atomics.h"
#include "libst/libfabric/calls.h"
#include "libst/libfabric/ep.h"

namespace stp::fi {
namespace {

constexpr std::uint64_t kKnownFlags = kTxOpFlags | FI_DELIVERY_COMPLETE | FI_FENCE | FI_MORE;

struct Call {
  fid_ep* ep;
  void* context;
  std::uint64_t flags;
  Target target;
  Function function;
  bool compares = false, fetches = false;
};

ssize_t fetch(const Call& call, std::size_t count) {
  return guarded([&]() -> ssize_t {
    const auto& f = call.function;
    if (!fetch_op_of(f.type, f.op, call.compares)) return -FI_EOPNOTSUPP;
    if (f.op == FI_ATOMIC_READ && !call.fetches) return -FI_EOPNOTSUPP;
    if (count != 1) return -FI_EINVAL;
    const auto needs_operand = f.op != FI_ATOMIC_READ;
    if ((needs_operand && f.operand == nullptr) || (call.compares && f.compare == nullptr) ||
        (call.fetches && f.result == nullptr))
      return -FI_EINVAL;
    return ep_of(call.ep).fetch({.segments = {}, .context = call.context, .flags = call.flags},
                                call.target, f);
  });
}

// Of vectors: one element in one segment. nullptr: there is none.
void* only(const fi_ioc* iov, std::size_t count) {
  return iov != nullptr && count == 1 && iov[0].count == 1 ? iov[0].addr : nullptr;
}

ssize_t fetch(fid_ep* ep, const fi_msg_atomic& msg, std::uint64_t flags, const Function& function,
              bool compares, bool fetches) {
  if ((flags & ~kKnownFlags) != 0) return -FI_EBADFLAGS;
  if (msg.rma_iov_count != 1 || msg.rma_iov[0].count != 1) return -FI_EINVAL;
  return fetch({.ep = ep,
                .context = msg.context,
                .flags = flags,
                .target = {msg.rma_iov[0].addr, msg.rma_iov[0].key},
                .function = function,
                .compares = compares,
                .fetches = fetches},
               1);
}

int is_valid(fi_datatype type, fi_op op, std::size_t* count, std::uint64_t kind) {
  fi_atomic_attr attr{};
  const auto error = query_atomic(type, op, &attr, kind);
  if (error == 0 && count != nullptr) *count = attr.count;
  return error;
}

}  // namespace

fi_ops_atomic ep_atomic_calls{
    .size = sizeof(fi_ops_atomic),
    .write =
        [](fid_ep* ep, const void* buffer, std::size_t count, void*, fi_addr_t,
           std::uint64_t address, std::uint64_t key, fi_datatype type, fi_op op, void* context) {
          return fetch({.ep = ep,
                        .context = context,
                        .flags = ep_of(ep).tx_flags(),
                        .target = {address, key},
                        .function = {.type = type, .op = op, .operand = buffer}},
                       count);
        },
    .writev =
        [](fid_ep* ep, const fi_ioc* iov, void**, std::size_t count, fi_addr_t,
           std::uint64_t address, std::uint64_t key, fi_datatype type, fi_op op, void* context) {
          return fetch({.ep = ep,
                        .context = context,
                        .flags = ep_of(ep).tx_flags(),
                        .target = {address, key},
                        .function = {.type = type, .op = op, .operand = only(iov, count)}},
                       1);
        },
    .writemsg =
        [](fid_ep* ep, const fi_msg_atomic* msg, std::uint64_t flags) {
          return fetch(
              ep, *msg, flags,
              {.type = msg->datatype, .op = msg->op, .operand = only(msg->msg_iov, msg->iov_count)},
              false, false);
        },
    .inject =
        [](fid_ep* ep, const void* buffer, std::size_t count, fi_addr_t, std::uint64_t address,
           std::uint64_t key, fi_datatype type, fi_op op) {
          return fetch({.ep = ep,
                        .context = nullptr,
                        .flags = FI_INJECT | kUntold,
                        .target = {address, key},
                        .function = {.type = type, .op = op, .operand = buffer}},
                       count);
        },
    .readwrite =
        [](fid_ep* ep, const void* buffer, std::size_t count, void*, void* result, void*, fi_addr_t,
           std::uint64_t address, std::uint64_t key, fi_datatype type, fi_op op, void* context) {
          return fetch({.ep = ep,
                        .context = context,
                        .flags = ep_of(ep).tx_flags(),
                        .target = {address, key},
                        .function = {.type = type, .op = op, .operand = buffer, .result = result},
                        .fetches = true},
                       count);
        },
    .readwritev =
        [](fid_ep* ep, const fi_ioc* iov, void**, std::size_t count, fi_ioc* results, void**,
           std::size_t result_count, fi_addr_t, std::uint64_t address, std::uint64_t key,
           fi_datatype type, fi_op op, void* context) {
          return fetch({.ep = ep,
                        .context = context,
                        .flags = ep_of(ep).tx_flags(),
                        .target = {address, key},
                        .function = {.type = type,
                                     .op = op,
                                     .operand = only(iov, count),
                                     .result = only(results, result_count)},
                        .fetches = true},
                       1);
        },
    .readwritemsg =
        [](fid_ep* ep, const fi_msg_atomic* msg, fi_ioc* results, void**, std::size_t result_count,
           std::uint64_t flags) {
          return fetch(ep, *msg, flags,
                       {.type = msg->datatype,
                        .op = msg->op,
                        .operand = only(msg->msg_iov, msg->iov_count),
                        .result = only(results, result_count)},
                       false, true);
        },
    .compwrite =
        [](fid_ep* ep, const void* buffer, std::size_t count, void*, const void* compare, void*,
           void* result, void*, fi_addr_t, std::uint64_t address, std::uint64_t key,
           fi_datatype type, fi_op op, void* context) {
          return fetch({.ep = ep,
                        .context = context,
                        .flags = ep_of(ep).tx_flags(),
                        .target = {address, key},
                        .function = {.type = type,
                                     .op = op,
                                     .operand = buffer,
                                     .compare = compare,
                                     .result = result},
                        .compares = true,
                        .fetches = true},
                       count);
        },
    .compwritev =
        [](fid_ep* ep, const fi_ioc* iov, void**, std::size_t count, const fi_ioc* compares, void**,
           std::size_t compare_count, fi_ioc* results, void**, std::size_t result_count, fi_addr_t,
           std::uint64_t address, std::uint64_t key, fi_datatype type, fi_op op, void* context) {
          return fetch({.ep = ep,
                        .context = context,
                        .flags = ep_of(ep).tx_flags(),
                        .target = {address, key},
                        .function = {.type = type,
                                     .op = op,
                                     .operand = only(iov, count),
                                     .compare = only(compares, compare_count),
                                     .result = only(results, result_count)},
                        .compares = true,
                        .fetches = true},
                       1);
        },
    .compwritemsg =
        [](fid_ep* ep, const fi_msg_atomic* msg, const fi_ioc* compares, void**,
           std::size_t compare_count, fi_ioc* results, void**, std::size_t result_count,
           std::uint64_t flags) {
          return fetch(ep, *msg, flags,
                       {.type = msg->datatype,
                        .op = msg->op,
                        .operand = only(msg->msg_iov, msg->iov_count),
                        .compare = only(compares, compare_count),
                        .result = only(results, result_count)},
                       true, true);
        },
    .writevalid = [](fid_ep*, fi_datatype type, fi_op op,
                     std::size_t* count) { return is_valid(type, op, count, 0); },
    .readwritevalid = [](fid_ep*, fi_datatype type, fi_op op,
                         std::size_t* count) { return is_valid(type, op, count, FI_FETCH_ATOMIC); },
    .compwritevalid =
        [](fid_ep*, fi_datatype type, fi_op op, std::size_t* count) {
          return is_valid(type, op, count, FI_COMPARE_ATOMIC);
        },
};

// The old value lands in memory of the provider: it wants 8-aligned, registered one.
ssize_t Ep::fetch(const Request& request, const Target& target, const Function& function) {
  std::lock_guard const lock(link_.mutex());
  if (const auto error = may_post(); error != 0) return error;
  const auto code = *fetch_op_of(function.type, function.op, function.compare != nullptr);
  std::uint64_t operand = 0, compare = 0;
  if (function.op != FI_ATOMIC_READ) std::memcpy(&operand, function.operand, sizeof operand);
  if (function.compare != nullptr) std::memcpy(&compare, function.compare, sizeof compare);
  const auto reads = function.result != nullptr;
  auto& op = begin(request, reads ? Direction::kRead : Direction::kWrite,
                   FI_ATOMIC | (reads ? FI_READ : FI_WRITE));
  Slots::Slot slot;
  if (const auto error = link_.slots().take(slot); error != 0) return posted(op, error);
  op.span.slots = &link_.slots();
  op.span.memory = slot.memory;
  op.span.data = slot.data;
  if (reads) op.landing = one_segment(function.result, sizeof(std::uint64_t), nullptr);
  const auto flags = (request.flags & FI_FENCE) != 0 ? STM_FENCE : 0;
  return posted(op, stm_fetch(connection_, reinterpret_cast<std::uintptr_t>(&op),
                              static_cast<unsigned>(flags), code, operand, compare, slot.memory,
                              slot.data, static_cast<std::uint32_t>(target.key), target.address));
}

}  // namespace stp::fi
