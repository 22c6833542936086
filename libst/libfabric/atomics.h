// SPDX-License-Identifier: BSD-3-Clause
// Atomic operations on one number in the memory of a peer. A FetchOp acts on 8 bytes there: it adds
// a number, or stores one where another one stands. What is no such operation reads the 8 bytes
// that hold the number, and stores others where those still stand, until nobody has come in
// between.
#pragma once

#include <rdma/fi_atomic.h>

#include <cstdint>

#include "libst/include/stp/managed.h"

namespace stp::fi {

class FabricLink;
struct Op;
struct Target;

// One atomic operation of a program. Its kind tells which of the pointers it needs.
struct Function {
  enum class Kind : std::uint8_t { kPlain, kFetch, kCompare };
  Kind kind = Kind::kPlain;
  fi_datatype type = FI_UINT64;
  fi_op op = FI_SUM;
  const void* operand = nullptr;  // FI_ATOMIC_READ has none
  const void* compare = nullptr;
  void* result = nullptr;
};

// 0: it is offered, of `count` numbers at a time. Else -FI_EOPNOTSUPP, or -FI_EINVAL: there is no
// such thing.
int query_atomic(fi_datatype type, fi_op op, Function::Kind kind, fi_atomic_attr& attr);
// As a domain's call.
int query_atomic(fi_datatype type, fi_op op, fi_atomic_attr* attr, std::uint64_t flags);

// A number's bits: as many as its type has, the others are 0.
using Bits = std::uint64_t;

// An atomic operation on its way.
class Atomic {
 public:
  struct Step {
    stm_fetch_op op = STM_FETCH_ADD;
    std::uint64_t operand = 0, compare = 0;
  };

  // `function` is offered; the address is a multiple of the number's size.
  Atomic(const Function& function, std::uint64_t address);
  // Of the 8 bytes.
  [[nodiscard]] std::uint64_t address() const { return address_; }
  // What the peer is to do next.
  [[nodiscard]] const Step& step() const { return step_; }
  // Whether others can come in between: then it consists of several steps.
  [[nodiscard]] bool repeats() const { return repeats_; }
  // Before the step, `old` stood there. True: there is another step. False: all is done, and the
  // program has its result.
  bool goes_on(std::uint64_t old);

 private:
  [[nodiscard]] Bits number_in(std::uint64_t word) const { return word >> shift_ & mask_; }

  const fi_datatype type_;
  const fi_op op_;
  void* const result_;
  const std::uint64_t address_;
  unsigned shift_ = 0;  // of the number in the 8 bytes
  Bits mask_ = 0, operand_ = 0, compare_ = 0;
  bool repeats_ = false;
  Step step_;
};

// The calls of FI_ATOMIC, of endpoints of either kind.
extern fi_ops_atomic atomic_calls;

// Makes `op` that operation, with memory for what comes back. A libfabric error, or a status.
int prepare_atomic(FabricLink& link, Op& op, const Target& target, const Function& function);
// Posts its next step. A status: it is not on its way.
int post_step(stm_connection_t connection, Op& op);
// A step of `op` has ended with `status`, which may change. True: the next one is on its way.
bool continue_atomic(stm_connection_t connection, Op& op, int& status);

}  // namespace stp::fi
