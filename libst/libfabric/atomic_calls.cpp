// SPDX-License-Identifier: BSD-3-Clause
#include "libst/libfabric/atomic_calls.h"

#include "libst/libfabric/limits.h"

namespace stp::fi {
namespace {

// The number is in the peer's memory when the operation is complete: FI_DELIVERY_COMPLETE asks for
// nothing more.
constexpr std::uint64_t kAtomicFlags = kTxOpFlags | FI_FENCE | FI_MORE;

}  // namespace

int check_atomic(const AtomicCall& call) {
  const auto& f = call.function;
  fi_atomic_attr attr{};
  if (const auto error = query_atomic(f.type, f.op, f.kind, attr); error != 0) return error;
  if (call.count != attr.count || call.target.address % attr.size != 0) return -FI_EINVAL;
  const auto needs_operand = f.op != FI_ATOMIC_READ;
  const auto complete = (!needs_operand || f.operand != nullptr) &&
                        (f.kind != Function::Kind::kCompare || f.compare != nullptr) &&
                        (f.kind == Function::Kind::kPlain || f.result != nullptr);
  return complete ? 0 : -FI_EINVAL;
}

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

void* only(const fi_ioc* iov, std::size_t count) {
  return iov != nullptr && count == 1 && iov[0].count == 1 ? iov[0].addr : nullptr;
}

int is_valid_atomic(fi_datatype type, fi_op op, std::size_t* count, Function::Kind kind) {
  fi_atomic_attr attr{};
  const auto error = query_atomic(type, op, kind, attr);
  if (error == 0 && count != nullptr) *count = attr.count;
  return error;
}

}  // namespace stp::fi
