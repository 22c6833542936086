// SPDX-License-Identifier: BSD-3-Clause
// What an atomic operation does, and the calls of FI_ATOMIC.
#include <algorithm>
#include <bit>
#include <concepts>
#include <cstring>
#include <type_traits>
#include <utility>

#include "libst/libfabric/endpoint.h"
#include "libst/libfabric/info.h"
#include "libst/libfabric/link.h"
#include "libst/libfabric/op.h"
#include "libst/libfabric/provider.h"

namespace stp::fi {
namespace {

constexpr std::size_t kWord = sizeof(std::uint64_t);

// 0: numbers of that type are not offered.
std::size_t size_of(fi_datatype type) {
  switch (type) {
    case FI_INT8:
    case FI_UINT8:
      return 1;
    case FI_INT16:
    case FI_UINT16:
      return 2;
    case FI_INT32:
    case FI_UINT32:
    case FI_FLOAT:
      return 4;
    case FI_INT64:
    case FI_UINT64:
    case FI_DOUBLE:
      return 8;
    default:
      return 0;
  }
}

bool is_integer(fi_datatype type) {
  return type != FI_FLOAT && type != FI_DOUBLE;
}

Bits mask_of(std::size_t size) {
  return ~Bits{0} >> 8 * (kWord - size);
}

template <std::size_t size>
using Unsigned = std::conditional_t<
    size == 1, std::uint8_t,
    std::conditional_t<size == 2, std::uint16_t,
                       std::conditional_t<size == 4, std::uint32_t, std::uint64_t>>>;

template <class T>
T number_of(Bits bits) {
  return std::bit_cast<T>(static_cast<Unsigned<sizeof(T)>>(bits));
}
template <class T>
Bits bits_of(T number) {
  return std::bit_cast<Unsigned<sizeof(T)>>(number);
}

// A number of the program's memory, which need not be aligned.
Bits load(const void* from, std::size_t size) {
  const auto read = [&]<class T>(T value) -> Bits {
    std::memcpy(&value, from, sizeof value);
    return value;
  };
  switch (size) {
    case 1:
      return read(std::uint8_t{});
    case 2:
      return read(std::uint16_t{});
    case 4:
      return read(std::uint32_t{});
    default:
      return read(std::uint64_t{});
  }
}

void store(Bits bits, void* to, std::size_t size) {
  const auto write = [&](auto value) { std::memcpy(to, &value, sizeof value); };
  switch (size) {
    case 1:
      return write(static_cast<std::uint8_t>(bits));
    case 2:
      return write(static_cast<std::uint16_t>(bits));
    case 4:
      return write(static_cast<std::uint32_t>(bits));
    default:
      return write(bits);
  }
}

// What `old` becomes. Integers wrap around.
template <class T>
T replaced(fi_op op, T old, T operand, T compare) {
  // In 64 bits without a sign nothing overflows that has to be right.
  using Wide = std::conditional_t<std::integral<T>, std::uint64_t, T>;
  const auto wide_old = static_cast<Wide>(old), wide_operand = static_cast<Wide>(operand);
  const auto swapped_if = [&](bool swaps) { return swaps ? operand : old; };
  switch (op) {
    case FI_MIN:
      return std::min(old, operand);
    case FI_MAX:
      return std::max(old, operand);
    case FI_SUM:
      return static_cast<T>(wide_old + wide_operand);
    case FI_PROD:
      return static_cast<T>(wide_old * wide_operand);
    case FI_LOR:
      return static_cast<T>(old != T{} || operand != T{});
    case FI_LAND:
      return static_cast<T>(old != T{} && operand != T{});
    case FI_LXOR:
      return static_cast<T>((old != T{}) != (operand != T{}));
    case FI_ATOMIC_WRITE:
      return operand;
    case FI_CSWAP:
      return swapped_if(compare == old);
    case FI_CSWAP_NE:
      return swapped_if(compare != old);
    case FI_CSWAP_LE:
      return swapped_if(compare <= old);
    case FI_CSWAP_LT:
      return swapped_if(compare < old);
    case FI_CSWAP_GE:
      return swapped_if(compare >= old);
    case FI_CSWAP_GT:
      return swapped_if(compare > old);
    default:
      break;
  }
  if constexpr (std::integral<T>) {
    if (op == FI_BOR) return static_cast<T>(old | operand);
    if (op == FI_BAND) return static_cast<T>(old & operand);
    if (op == FI_BXOR) return static_cast<T>(old ^ operand);
    if (op == FI_MSWAP) return static_cast<T>((operand & compare) | (old & ~compare));
  }
  return old;  // FI_ATOMIC_READ
}

Bits replaced(fi_datatype type, fi_op op, Bits old, Bits operand, Bits compare) {
  const auto as = [&]<class T>(T) {
    return bits_of(replaced(op, number_of<T>(old), number_of<T>(operand), number_of<T>(compare)));
  };
  switch (type) {
    case FI_INT8:
      return as(std::int8_t{});
    case FI_UINT8:
      return as(std::uint8_t{});
    case FI_INT16:
      return as(std::int16_t{});
    case FI_UINT16:
      return as(std::uint16_t{});
    case FI_INT32:
      return as(std::int32_t{});
    case FI_UINT32:
      return as(std::uint32_t{});
    case FI_INT64:
      return as(std::int64_t{});
    case FI_FLOAT:
      return as(float{});
    case FI_DOUBLE:
      return as(double{});
    default:
      return as(std::uint64_t{});
  }
}

// Where a number lies in the 8 bytes around it. The peer has this machine's byte order.
unsigned shift_of(std::uint64_t address, std::size_t size) {
  const auto offset = address % kWord;
  return 8 * static_cast<unsigned>(
                 std::endian::native == std::endian::little ? offset : kWord - size - offset);
}

// 0: it is offered, of `count` numbers at a time. Else -FI_EOPNOTSUPP, or -FI_EINVAL.
int what_is_offered(fi_datatype type, fi_op op, Function::Kind kind, fi_atomic_attr& attr) {
  if (op > FI_MSWAP || type > FI_UINT128) return -FI_EINVAL;
  const auto size = size_of(type);
  if (size == 0) return -FI_EOPNOTSUPP;
  if ((op >= FI_CSWAP) != (kind == Function::Kind::kCompare)) return -FI_EOPNOTSUPP;
  if (op == FI_ATOMIC_READ && kind == Function::Kind::kPlain) return -FI_EOPNOTSUPP;
  const auto on_bits = op == FI_BOR || op == FI_BAND || op == FI_BXOR || op == FI_MSWAP;
  if (on_bits && !is_integer(type)) return -FI_EOPNOTSUPP;
  attr = {.count = 1, .size = size};
  return 0;
}

}  // namespace

int query_atomic(fi_datatype type, fi_op op, fi_atomic_attr* attr, std::uint64_t flags) {
  auto kind = Function::Kind::kPlain;
  if (flags == FI_FETCH_ATOMIC)
    kind = Function::Kind::kFetch;
  else if (flags == FI_COMPARE_ATOMIC)
    kind = Function::Kind::kCompare;
  else if (flags != 0)
    return -FI_EINVAL;
  fi_atomic_attr told{};
  const auto error = what_is_offered(type, op, kind, told);
  if (error == 0 && attr != nullptr) *attr = told;
  return error;
}

Atomic::Atomic(const Function& function, std::uint64_t address)
    : type_(function.type),
      op_(function.op),
      result_(function.kind != Function::Kind::kPlain ? function.result : nullptr),
      address_(address / kWord * kWord) {
  const auto size = size_of(type_);
  shift_ = shift_of(address, size);
  mask_ = mask_of(size);
  if (op_ == FI_ATOMIC_READ) return;  // adds 0
  operand_ = load(function.operand, size);
  if (function.kind == Function::Kind::kCompare) compare_ = load(function.compare, size);
  // Above the number there is none that a sum could carry into.
  const auto is_highest = is_integer(type_) && shift_ + 8 * size == 8 * kWord;
  if (is_highest && op_ == FI_SUM)
    step_.operand = operand_ << shift_;
  else if (is_highest && size == kWord && op_ == FI_CSWAP)
    step_ = {STM_COMPARE_AND_SWAP, operand_, compare_};
  else
    repeats_ = true;
}

bool Atomic::step_from(std::uint64_t old) {
  const auto number = number_in(old);
  const auto next = replaced(type_, op_, number, operand_, compare_);
  if (next == number) return false;
  step_ = {STM_COMPARE_AND_SWAP, (old & ~(mask_ << shift_)) | next << shift_, old};
  return true;
}

bool Atomic::goes_on(std::uint64_t old) {
  const auto stored = step_.op == STM_COMPARE_AND_SWAP && step_.compare == old;
  if (repeats_ && !stored && step_from(old)) return true;
  left_ = stored ? step_.operand : old;
  if (result_ != nullptr) store(number_in(old), result_, size_of(type_));
  return false;
}

int prepare_atomic(FabricLink& link, Op& op, const Target& target, const Function& function) {
  op.atomic = std::make_unique<Atomic>(function, target.address);
  op.remote_key = static_cast<std::uint32_t>(target.key);
  return link.slots().take(op.span);
}

int post_step(stm_connection_t connection, Op& op) {
  const auto& step = op.atomic->step();
  const auto flags = std::exchange(op.stm_flags, 0U);  // those of the first step
  return stm_fetch(connection, reinterpret_cast<std::uintptr_t>(&op), flags, step.op, step.operand,
                   step.compare, op.span.memory, op.span.data, op.remote_key, op.atomic->address());
}

void LastWord::begin(Op& op) const {
  if (op.remote_key == key_ && op.atomic->address() == address_) op.atomic->expect(word_);
}

bool LastWord::go_on(stm_connection_t connection, Op& op, int& status) {
  if (status != 0 || !op.atomic) return false;
  auto& atomic = *op.atomic;
  if (atomic.goes_on(load(op.span.data, kWord))) {
    status = post_step(connection, op);
    return status == 0;
  }
  if (atomic.repeats()) {
    key_ = op.remote_key;
    address_ = atomic.address();
    word_ = atomic.left();
  }
  return false;
}

// ---- what the calls say ----
namespace {

// The number is in the peer's memory when the operation is complete: FI_DELIVERY_COMPLETE asks for
// nothing more.
constexpr std::uint64_t kAtomicFlags = kTxOpFlags | FI_FENCE | FI_MORE;

// What one call says.
struct AtomicCall {
  void* context = nullptr;
  std::uint64_t flags = 0;
  fi_addr_t to = FI_ADDR_UNSPEC;
  Target target;
  Function function;
  std::size_t count = 1;  // of numbers
};

// Of vectors: one number in one segment. nullptr: there is none.
void* only(const fi_ioc* iov, std::size_t count) {
  return iov != nullptr && count == 1 && iov[0].count == 1 ? iov[0].addr : nullptr;
}

// 0: an endpoint may begin it.
int check_atomic(const AtomicCall& call) {
  const auto& f = call.function;
  fi_atomic_attr attr{};
  if (const auto error = what_is_offered(f.type, f.op, f.kind, attr); error != 0) return error;
  if (call.count != attr.count || call.target.address % attr.size != 0) return -FI_EINVAL;
  const auto needs_operand = f.op != FI_ATOMIC_READ;
  const auto complete = (!needs_operand || f.operand != nullptr) &&
                        (f.kind != Function::Kind::kCompare || f.compare != nullptr) &&
                        (f.kind == Function::Kind::kPlain || f.result != nullptr);
  return complete ? 0 : -FI_EINVAL;
}

// A call with a message: 0, or what is wrong with it. `call` has the function.
int read_message(const fi_msg_atomic& msg, std::uint64_t flags, AtomicCall& call) {
  if ((flags & ~kAtomicFlags) != 0) return -FI_EBADFLAGS;
  if (msg.rma_iov_count != 1 || msg.rma_iov[0].count != 1) return -FI_EINVAL;
  call.context = msg.context;
  call.flags = flags;
  call.to = msg.addr;
  call.target = {msg.rma_iov[0].addr, msg.rma_iov[0].key};
  call.function.type = msg.datatype;
  call.function.op = msg.op;
  call.function.operand = only(msg.msg_iov, msg.iov_count);
  return 0;
}

int is_valid_atomic(fi_datatype type, fi_op op, std::size_t* count, Function::Kind kind) {
  fi_atomic_attr attr{};
  const auto error = what_is_offered(type, op, kind, attr);
  if (error == 0 && count != nullptr) *count = attr.count;
  return error;
}

using AtomicKind = Function::Kind;

ssize_t fetch(fid_ep* ep, const AtomicCall& call) {
  return guarded([&]() -> ssize_t {
    if (const auto error = check_atomic(call); error != 0) return error;
    return endpoint_of(ep).fetch({.segments = {}, .context = call.context, .flags = call.flags},
                                 call.to, call.target, call.function);
  });
}
ssize_t fetch(fid_ep* ep, void* context, fi_addr_t to, const Target& target,
              const Function& function, std::size_t count) {
  return fetch(ep, {context, endpoint_of(ep).tx_flags(), to, target, function, count});
}
ssize_t fetch(fid_ep* ep, const fi_msg_atomic* msg, std::uint64_t flags, const Function& function) {
  AtomicCall call{.target = {}, .function = function};
  const auto error = read_message(*msg, flags, call);
  return error != 0 ? error : fetch(ep, call);
}

}  // namespace

fi_ops_atomic atomic_calls{
    .size = sizeof(fi_ops_atomic),
    .write =
        [](fid_ep* ep, const void* buffer, std::size_t count, void*, fi_addr_t to,
           std::uint64_t address, std::uint64_t key, fi_datatype type, fi_op op, void* context) {
          return fetch(ep, context, to, {address, key}, {AtomicKind::kPlain, type, op, buffer},
                       count);
        },
    .writev =
        [](fid_ep* ep, const fi_ioc* iov, void**, std::size_t count, fi_addr_t to,
           std::uint64_t address, std::uint64_t key, fi_datatype type, fi_op op, void* context) {
          return fetch(ep, context, to, {address, key},
                       {AtomicKind::kPlain, type, op, only(iov, count)}, 1);
        },
    .writemsg =
        [](fid_ep* ep, const fi_msg_atomic* msg, std::uint64_t flags) {
          return fetch(ep, msg, flags, {.kind = AtomicKind::kPlain});
        },
    .inject =
        [](fid_ep* ep, const void* buffer, std::size_t count, fi_addr_t to, std::uint64_t address,
           std::uint64_t key, fi_datatype type, fi_op op) {
          return fetch(ep, {nullptr,
                            FI_INJECT | kUntold,
                            to,
                            {address, key},
                            {AtomicKind::kPlain, type, op, buffer},
                            count});
        },
    .readwrite =
        [](fid_ep* ep, const void* buffer, std::size_t count, void*, void* result, void*,
           fi_addr_t to, std::uint64_t address, std::uint64_t key, fi_datatype type, fi_op op,
           void* context) {
          return fetch(ep, context, to, {address, key},
                       {AtomicKind::kFetch, type, op, buffer, nullptr, result}, count);
        },
    .readwritev =
        [](fid_ep* ep, const fi_ioc* iov, void**, std::size_t count, fi_ioc* results, void**,
           std::size_t result_count, fi_addr_t to, std::uint64_t address, std::uint64_t key,
           fi_datatype type, fi_op op, void* context) {
          return fetch(ep, context, to, {address, key},
                       {AtomicKind::kFetch, type, op, only(iov, count), nullptr,
                        only(results, result_count)},
                       1);
        },
    .readwritemsg =
        [](fid_ep* ep, const fi_msg_atomic* msg, fi_ioc* results, void**, std::size_t result_count,
           std::uint64_t flags) {
          return fetch(ep, msg, flags,
                       {.kind = AtomicKind::kFetch, .result = only(results, result_count)});
        },
    .compwrite =
        [](fid_ep* ep, const void* buffer, std::size_t count, void*, const void* compare, void*,
           void* result, void*, fi_addr_t to, std::uint64_t address, std::uint64_t key,
           fi_datatype type, fi_op op, void* context) {
          return fetch(ep, context, to, {address, key},
                       {AtomicKind::kCompare, type, op, buffer, compare, result}, count);
        },
    .compwritev =
        [](fid_ep* ep, const fi_ioc* iov, void**, std::size_t count, const fi_ioc* compares, void**,
           std::size_t compare_count, fi_ioc* results, void**, std::size_t result_count,
           fi_addr_t to, std::uint64_t address, std::uint64_t key, fi_datatype type, fi_op op,
           void* context) {
          return fetch(ep, context, to, {address, key},
                       {AtomicKind::kCompare, type, op, only(iov, count),
                        only(compares, compare_count), only(results, result_count)},
                       1);
        },
    .compwritemsg =
        [](fid_ep* ep, const fi_msg_atomic* msg, const fi_ioc* compares, void**,
           std::size_t compare_count, fi_ioc* results, void**, std::size_t result_count,
           std::uint64_t flags) {
          return fetch(ep, msg, flags,
                       {.kind = AtomicKind::kCompare,
                        .compare = only(compares, compare_count),
                        .result = only(results, result_count)});
        },
    .writevalid =
        [](fid_ep*, fi_datatype type, fi_op op, std::size_t* count) {
          return is_valid_atomic(type, op, count, AtomicKind::kPlain);
        },
    .readwritevalid =
        [](fid_ep*, fi_datatype type, fi_op op, std::size_t* count) {
          return is_valid_atomic(type, op, count, AtomicKind::kFetch);
        },
    .compwritevalid =
        [](fid_ep*, fi_datatype type, fi_op op, std::size_t* count) {
          return is_valid_atomic(type, op, count, AtomicKind::kCompare);
        },
};

}  // namespace stp::fi
