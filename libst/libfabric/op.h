// SPDX-License-Identifier: BSD-3-Clause
// Operations, from a program's call to its completion, and who hears of what happens on the link.
#pragma once

#include <rdma/fabric.h>
#include <rdma/fi_atomic.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "libst/include/stp/managed.h"
#include "libst/libfabric/memory.h"

namespace stp::fi {

class FabricLink;
struct Op;
struct RxBuffer;

// ---- who is told of what happens on the link: under its mutex ----

// Of a connection, and of the operations on it.
class Owner {
 public:
  // The connection is up, or has ended.
  virtual void connection_event(const stm_event_t& event) = 0;
  // Connecting could not begin.
  virtual void not_dialed(int status) = 0;
  // It has begun: operations may be posted.
  virtual void dialed() {}
  // A message has arrived in `buffer`, or the receive has failed.
  virtual void arrived(RxBuffer& buffer, const stm_event_t& event) = 0;
  // The peer asks to read.
  virtual void serve(const stm_event_t& event) = 0;
  // A part of the operation has ended.
  virtual void part_done(Op& op, int status) = 0;
  // It has asked for it (FabricLink::await).
  virtual void look_again() {}
  // It has asked for it (FabricLink::tell_later).
  virtual void tell() {}
  // It has asked for it (FabricLink::leave_soon).
  virtual void leave() {}

 protected:
  ~Owner() = default;

 private:
  friend class FabricLink;
  bool awaits_ = false, leaves_soon_ = false;
};

// Of connection requests.
class Acceptor {
 public:
  virtual void requested(stm_connection_t connection) = 0;
  // It has asked for it (FabricLink::clean_up_later).
  virtual void clean_up() {}

 protected:
  ~Acceptor() = default;
};

// ---- atomic operations ----

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

// A number's bits: as many as its type has, the others are 0.
using Bits = std::uint64_t;

// An atomic operation on its way: on one number in the memory of a peer. A FetchOp acts on 8 bytes
// there: it adds a number, or stores one where another one stands. What is no such operation reads
// the 8 bytes that hold the number, and stores others where those still stand, until nobody has
// come in between.
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
  // Whether others can come in between: then it may consist of several steps.
  [[nodiscard]] bool repeats() const { return repeats_; }
  // Before its first step: `word` may stand there. If it does, that step stores at once; if not, it
  // reads what stands there, as it would have done anyway.
  void expect(std::uint64_t word) {
    if (repeats_) step_from(word);
  }
  // Before the step, `old` stood there. True: there is another step. False: all is done, and the
  // program has its result.
  bool goes_on(std::uint64_t old);
  // All is done: what it has left there.
  [[nodiscard]] std::uint64_t left() const { return left_; }

 private:
  // Another number is to stand there, where `old` does. False: the same one.
  bool step_from(std::uint64_t old);
  [[nodiscard]] Bits number_in(std::uint64_t word) const { return word >> shift_ & mask_; }

  const fi_datatype type_;
  const fi_op op_;
  void* const result_;
  const std::uint64_t address_;
  unsigned shift_ = 0;  // of the number in the 8 bytes
  Bits mask_ = 0, operand_ = 0, compare_ = 0;
  bool repeats_ = false;
  Step step_;
  std::uint64_t left_ = 0;
};

// ---- operations ----

struct Shared;

// Selects the counter and the queue of the operation.
enum class Direction : std::uint8_t { kSend, kReceive, kRead, kWrite };

// What an operation of an endpoint of FI_EP_RDM does on its connection.
enum class Action : std::uint8_t {
  kMessage,
  kSeveral,  // messages
  kParts,
  kLaned,
  kAnnounce,
  kWrite,
  kRead,
  kAtomic,
  kAsk,   // one of the last three, made by the program of the peer
  kWord,  // to the peer, about its messages
};

// What is told of an operation when it is complete.
struct Outcome {
  void* context = nullptr;
  std::uint64_t flags = 0;  // FI_SEND | FI_MSG and the like
  std::size_t length = 0, overflow = 0;
  std::uint64_t data = 0;
  std::uint64_t tag = 0;                // of a tagged message that was received
  fi_addr_t source = FI_ADDR_NOTAVAIL;  // who sent what was received
  void* buffer = nullptr;               // where in a buffer of several messages it landed
  int status = 0;
  Direction direction = Direction::kSend;
  bool told = false;      // report success, too
  bool injected = false;  // by fi_inject and similar calls: report nothing
  bool reported = false;  // before its end, when its bytes had been copied
};

// What an operation is, besides what it holds.
struct OpState : Outcome {
  Owner* owner = nullptr;
  unsigned parts = 0;  // parts under way
  unsigned stm_flags = 0;
  bool in_steps = false;         // it may take further ones
  bool owes_note = false;        // its put is under way, and its note waits for that
  bool placeless = false;        // it takes none of the places that a program may count on
  std::uint32_t remote_key = 0;  // what is written, read or changed

  // ---- of FI_EP_RDM ----
  std::uint32_t id = 0;  // of an announced message
  std::uint64_t remote_address = 0;
  std::uint64_t asked_key = 0;  // of memory that the peer's program accesses
  Action action = Action::kMessage;
};

// An operation of a program, from its call to its completion. It consists of one or more operations
// of the managed API, which have it as their context.
struct Op : OpState {
  Span span;
  std::unique_ptr<Atomic> atomic;  // of an atomic operation
  Span note;                       // of a write with immediate data: the message that reports it
  std::vector<Span> more;          // of a message in parts: those after the first
  std::shared_ptr<Shared> shared;  // the buffer of FI_MULTI_RECV in which it lands
  Segments landing;                // the destination of the data that arrives in `span`

  // A part of it has ended, with that status. True: it was the last one.
  bool end_part(int of_part) {
    if (of_part != 0 && status == 0) status = of_part;
    return --parts == 0;
  }
  // As it was made. Many are used again, so what they do not hold is not touched.
  void clear() {
    span.release();
    note.release();
    for (auto& each : more) each.release();
    more.clear();
    if (atomic) atomic.reset();
    if (shared) shared.reset();
    landing.count = landing.length = 0;
    static_cast<OpState&>(*this) = {};
  }
};

// ---- the arguments of a program's call that transfers bytes ----

// An internal flag of fi_inject and similar calls: they report nothing, not even an error.
inline constexpr std::uint64_t kUntold = std::uint64_t{1} << 63;

struct Request {
  Segments segments;
  void* context = nullptr;
  std::uint64_t flags = 0;  // FI_COMPLETION, FI_INJECT, FI_REMOTE_CQ_DATA, FI_FENCE, kUntold
  std::uint64_t data = 0;
};

struct Target {
  std::uint64_t address = 0;
  std::uint64_t key = 0;
};

// ---- the steps of an atomic operation ----

// Makes `op` that operation, with memory for what comes back. A libfabric error, or a status.
int prepare_atomic(FabricLink& link, Op& op, const Target& target, const Function& function);
// Posts its next step. A status: it is not on its way.
int post_step(stm_connection_t connection, Op& op);

// The 8 bytes that the last operation of several steps has left at the peer. Mostly nobody else has
// changed them when the next one comes to them, as with a counter: so that takes one step.
class LastWord {
 public:
  void begin(Op& op) const;
  // A step of `op` has ended with `status`, which may change. True: the next one is on its way.
  bool go_on(stm_connection_t connection, Op& op, int& status);

 private:
  std::uint32_t key_ = 0;
  std::uint64_t address_ = 0, word_ = 0;
};

}  // namespace stp::fi
