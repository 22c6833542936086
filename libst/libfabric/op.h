// SPDX-License-Identifier: BSD-3-Clause
// Operations: the bytes that they work on, the operations themselves, and where an endpoint reports
// what is done.
#pragma once

#include <rdma/fabric.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "libst/include/stp/managed.h"
#include "libst/libfabric/atomics.h"
#include "libst/libfabric/info.h"
#include "libst/libfabric/slots.h"

namespace stp::fi {

struct Completion;
class Cntr;
class Cq;

// Who is told of what happens on the link. All calls come under the link's mutex.
struct Op;
struct RxBuffer;

// Of a connection, and of the operations on it.
class Owner {
 public:
  // The connection is up, or has ended.
  virtual void connection_event(const stm_event_t& event) = 0;
  // Connecting could not begin.
  virtual void not_dialed(int status) = 0;
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

 protected:
  ~Owner() = default;

 private:
  friend class FabricLink;
  bool awaits_ = false;
};

// Of connection requests.
class Acceptor {
 public:
  virtual void requested(stm_connection_t connection) = 0;

 protected:
  ~Acceptor() = default;
};

struct Shared;

// Selects the counter and the queue of the operation.
enum class Direction : std::uint8_t { kSend, kReceive, kRead, kWrite };

struct Segments {
  std::array<iovec, kSegments> iov{};
  std::array<void*, kSegments> desc{};
  std::size_t count = 0;
  std::size_t length = 0;  // of all
};

// Fills `out` from a call's arguments. -FI_EINVAL: too many segments.
int read_segments(const iovec* iov, void** desc, std::size_t count, Segments& out);
// A segment that is not empty is nowhere.
inline bool lacks_some(const iovec* iov, std::size_t count) {
  return std::any_of(iov, iov + count, [](const iovec& part) {
    return part.iov_base == nullptr && part.iov_len != 0;
  });
}
inline std::size_t length_of(const iovec* iov, std::size_t count) {
  std::size_t length = 0;
  for (std::size_t i = 0; i < count; ++i) length += iov[i].iov_len;
  return length;
}
Segments one_segment(const void* buffer, std::size_t length, void* desc);
// The segments without their first `length` bytes.
Segments without(const Segments& segments, std::size_t length);
// Cuts the segments to their first `length` bytes.
Segments shortened(const Segments& segments, std::size_t length);
void scatter(const std::byte* from, const Segments& to, std::size_t length);
inline void scatter(const std::byte* from, const Segments& to) {
  scatter(from, to, to.length);
}
void gather(const Segments& from, std::byte* to);

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

// The arguments of a program's call that transfers bytes.

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

// Where an endpoint reports what is done: its completion queues and counters. Under the link's
// mutex.
class Reports {
 public:
  int bind_cq(fid_t other, std::uint64_t flags);
  // `accesses`: of peers may be counted, too.
  int bind_cntr(fid_t other, std::uint64_t flags, bool accesses);
  // The queues and counters may be closed.
  void release();

  [[nodiscard]] bool has_rx_queue() const { return rx_cq_ != nullptr; }
  [[nodiscard]] bool has_queue() const { return tx_cq_ != nullptr || rx_cq_ != nullptr; }
  [[nodiscard]] bool has_counter() const;
  // The program has to read its queue before more is told that none of its operations stands for.
  [[nodiscard]] bool are_full() const;
  // A peer has written, with immediate data.
  void tell_written(std::uint64_t length, std::uint64_t data, fi_addr_t source);
  // Whether the success of an operation with those flags is told, too.
  [[nodiscard]] bool tells(Direction direction, std::uint64_t flags) const;
  void complete(const Outcome& op);
  // The same to the queue alone: a look at a message (FI_PEEK) receives nothing.
  void tell(const Outcome& op);
  // A message is complete that no operation stands for. `kind`: FI_SEND | FI_MSG and the like;
  // `flags`: those of its call.
  void sent(void* context, std::uint64_t kind, std::uint64_t flags);
  // The same of a receive with those flags, but the caller fills in the entry of the queue.
  // nullptr: there is none.
  Completion* received(std::uint64_t flags);
  void count_access(bool reads);

 private:
  Cq* tx_cq_ = nullptr;
  Cq* rx_cq_ = nullptr;
  // By Direction; then reads and writes of peers.
  std::array<Cntr*, 6> counters_{};
  bool tx_selective_ = false, rx_selective_ = false;
};

}  // namespace stp::fi
